"""Objects of `sarif_om` -> JSON text: what is set, under the standard's names, in a fixed order, and nothing else."""

from __future__ import annotations

import functools
import json
from typing import Any

import attr

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
"""The `$schema` of what we write."""

# NOTE: sarif_om 1.0.4 names it `state`; the standard has no such property (2.1.0, section 3.35.3).
_NAMES = {("Suppression", "state"): "status"}

# NOTE: a reader takes a missing level for the rule's own, so an explicit "warning" is never left out as the class's default.
_ALWAYS = frozenset({"level"})

_FIRST = (
    "$schema",
    "version",
    "id",
    "ruleId",
    "ruleIndex",
    "level",
    "message",
    "name",
    "text",
    "uri",
    "startLine",
    "startColumn",
    "endLine",
)
_UNSET = object()


def to_json(root: object, indent: int | None = None) -> str:
    """`root` as JSON, valid UTF-8 whatever its strings hold: one compact line, or with `indent` lines that a diff shows well."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(root, default=_members, ensure_ascii=False, check_circular=False, separators=separators, indent=indent)
    # NOTE: half of a surrogate pair, which a Python string may hold, is no character: strict readers refuse it even when escaped.
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


def _members(item: Any) -> dict[str, Any]:
    values = item.__dict__
    members = {}
    for name, key, default in _plan(item.__class__):
        value = values[name]
        # NOTE: most fields have no default to compare with, and comparing objects costs more than all the rest.
        if value is not None and (default is _UNSET or value != default):
            members[key] = value
    return members


@functools.cache
def _plan(cls: type) -> tuple[tuple[str, str, object], ...]:
    """For each field of `cls`: the attribute, the property, and the default at which it is left out."""
    plan = [(field.name, _property(cls, field), _default(field)) for field in attr.fields(cls)]
    ranks = {key: rank for rank, key in enumerate(_FIRST)}
    return tuple(sorted(plan, key=lambda entry: ranks.get(entry[1], len(ranks))))


def _property(cls: type, field: attr.Attribute[Any]) -> str:
    return _NAMES.get((cls.__name__, field.name)) or str(field.metadata["schema_property_name"])


def _default(field: attr.Attribute[Any]) -> object:
    default: Any = field.default
    if default is None or default is attr.NOTHING or field.name in _ALWAYS:
        return _UNSET
    return default.factory() if hasattr(default, "factory") else default
