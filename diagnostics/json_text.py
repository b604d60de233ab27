"""JSON text of dicts and of `sarif_om` objects, whose set fields appear under the standard's names in a fixed order."""

from __future__ import annotations

import functools
import json
from typing import Any

import attr

# NOTE: sarif_om 1.0.4 names it `state`; the standard has no such property (2.1.0, section 3.35.3).
_NAMES = {("Suppression", "state"): "status"}

# NOTE: readers take a missing level for the rule's default, so "warning", the class's default, must be written.
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
    """`root` as JSON, valid UTF-8 whatever its strings hold. It is one compact line; with `indent` each value has a line, for diffs."""
    separators = (",", ":") if indent is None else (",", ": ")
    text = json.dumps(root, default=_members, ensure_ascii=False, check_circular=False, separators=separators, indent=indent)
    # NOTE: a Python string may hold half a surrogate pair. Strict readers refuse that even when it is escaped.
    return text.encode("utf-8", "replace").decode("utf-8") + "\n"


def _members(item: Any) -> dict[str, Any]:
    values = item.__dict__
    members = {}
    for name, key, default in _plan(item.__class__):
        value = values[name]
        # NOTE: most fields have no default, and comparing objects costs more than everything else here.
        if value is not None and (default is _UNSET or value != default):
            members[key] = value
    return members


@functools.cache
def _plan(cls: type) -> tuple[tuple[str, str, object], ...]:
    """For each field of `cls`: the attribute, the property, and the default that is not written."""
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
