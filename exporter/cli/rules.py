"""`onnxplain rules`: the rule book as a table."""

from __future__ import annotations

import itertools
import json
import textwrap
from collections.abc import Iterator
from typing import Any

import click

import onnxplain.rules  # noqa: F401  (defines the rules)
from onnxplain.diagnostics import Rule, Span


@click.command("rules")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list; see rules.schema.json in onnxplain.schemas.")
def command(as_json: bool) -> None:
    """List all rules by chapter."""
    if as_json:
        click.echo(json.dumps([_as_json(rule) for rule in Rule.all()], indent=2))
        return

    from onnxplain.diagnostics import make_console, show_lines

    console = make_console()
    show_lines(_table(console.width), console)


def _table(width: int) -> Iterator[list[Span]]:
    column = max(len(rule.__name__) for rule in Rule.all()) + 2
    margin = len("  OXP1001  warning  ") + column
    for chapter, rules in itertools.groupby(Rule.all(), key=lambda rule: rule.chapter()):
        yield [(chapter, "headline")]
        for rule in rules:
            summary, *rest = textwrap.wrap(rule.page.summary, max(width - margin, 20))
            level = rule.level.value
            yield [(f"  {rule.id}  ", ""), (f"{level:<9}", level), (f"{rule.__name__:<{column}}", "label"), (summary, "")]
            yield from ([(" " * margin + line, "")] for line in rest)


def _as_json(rule: type[Rule]) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.__name__,
        "level": rule.level.value,
        "chapter": rule.chapter(),
        "summary": rule.page.summary,
        "message": rule.message,
        "arguments": list(rule.arguments()),
        "revision": rule.revision(),
        "since": rule.history[0].version,
    }
