"""Rules as SARIF's reporting descriptors: what viewers and code scanning show about a rule."""

from __future__ import annotations

from collections.abc import Mapping

import sarif_om

from onnxplain.diagnostics.level import Level
from onnxplain.diagnostics.log import Tool
from onnxplain.diagnostics.rule import Rule
from onnxplain.diagnostics.rule_history import Added, Deprecated, Renamed, described

_SEVERITIES = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "recommendation"}
_DESCRIPTION_LIMIT = 1024
"""Characters of a rule's full description. GitHub code scanning refuses more."""


def descriptor(rule: type[Rule], tool: Tool, messages: Mapping[str, str]) -> sarif_om.ReportingDescriptor:
    """Describes a rule.

    Args:
        rule: The rule.
        tool: What writes the log; its page has the catalogue of rules.
        messages: The message templates that the log's results refer to, by id.
    """
    page, name = rule.page, rule.__name__
    description = f"{page.what}\n\n{page.why}"
    deprecated = next((event for event in rule.history if isinstance(event, Deprecated)), None)
    return sarif_om.ReportingDescriptor(
        id=rule.id,
        name=name,
        deprecated_names=[event.before for event in rule.history if isinstance(event, Renamed)] or None,
        short_description=sarif_om.MultiformatMessageString(text=page.summary),
        full_description=sarif_om.MultiformatMessageString(
            text=description if len(description) <= _DESCRIPTION_LIMIT else description[: _DESCRIPTION_LIMIT - 3] + "..."
        ),
        help=sarif_om.MultiformatMessageString(text=f"{description}\n\n{page.fix}", markdown=page.markdown),
        help_uri=f"{tool.uri.rstrip('/')}/blob/main/rules/CATALOG.md#{rule.id.lower()}-{name.lower()}",
        message_strings={id: sarif_om.MultiformatMessageString(text=text) for id, text in sorted(messages.items())},
        default_configuration=sarif_om.ReportingConfiguration(level=rule.level.value),
        properties=some(
            {
                "tags": [rule.chapter(), "onnx"],
                "precision": rule.precision,
                "problem.severity": _SEVERITIES[rule.level],
                "revision": rule.revision(),
                "since": next(event.version for event in rule.history if isinstance(event, Added)),
                "history": [described(event) for event in rule.history],
                "arguments": list(rule.arguments()),
                "everywhere": rule.everywhere or None,
                "deprecated": deprecated and {"version": deprecated.version, "replacement": deprecated.replacement},
            }
        ),
    )


def some(values: dict[str, object]) -> dict[str, object]:
    """Drops None and empty strings, lists and dicts from `values`."""
    return {name: value for name, value in values.items() if isinstance(value, bool | int) or value}
