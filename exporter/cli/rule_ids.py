"""Rules as users write them on the command line: by id, by the beginning of ids, or by name."""

from __future__ import annotations

import difflib
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

import onnxplain.rules  # noqa: F401  (defines the rules)
from onnxplain.diagnostics import Level, Rule

from .nearest import hint

_T = TypeVar("_T")


def find(text: str) -> type[Rule]:
    """The rule with this id or name, in any case.

    Raises:
        ValueError: There is none; the message offers the nearest.
    """
    names = {name.lower(): rule for rule in Rule.all() for name in (rule.id, rule.__name__)}
    rule = names.get(text.lower())
    if rule is None:
        # NOTE: of equally similar ids, those that differ at the fewest positions come first.
        similar = difflib.get_close_matches(text.lower(), names, n=len(names))
        similar.sort(key=lambda name: sum(map(operator.ne, name, text.lower())))
        near = [f"{rule.id} ({rule.__name__})" for rule in map(names.__getitem__, similar[:3])]
        told = f"The nearest are {', '.join(near)}." if near else "`onnxplain rules` lists all rules."
        raise ValueError(f"There is no rule {text}. {told}")
    return rule


def prefix(text: str) -> str:
    """The id, or the beginning of ids such as OXP1, that `text` stands for.

    Raises:
        ValueError: No rule is meant; the message offers the nearest.
    """
    upper = text.strip().upper()
    if upper.startswith("OXP") and any(rule.id.startswith(upper) for rule in Rule.all()):
        return upper
    return find(text.strip()).id


def level(text: str) -> tuple[str, Level]:
    """The rule and the level of a text such as `OXP1007=note`.

    Raises:
        ValueError: The text has another form, or there is no such rule or level.
    """
    rule, _, name = text.partition("=")
    known = [level.value for level in Level]
    if not name.strip():
        raise ValueError(f"Expected RULE=LEVEL, such as OXP1007=note, got {text!r}.")
    if name.strip().lower() not in known:
        raise ValueError(f"Expected one of the levels {', '.join(known)}, got {name.strip()!r}.{hint(name.strip().lower(), known)}")
    return prefix(rule), Level(name.strip().lower())


def prefixes(ctx: click.Context, param: click.Parameter, values: Iterable[str]) -> tuple[str, ...]:
    """The rules of an option, which commas separate."""
    return tuple(_converted(prefix, part, ctx, param) for value in values for part in value.split(","))


def levels(ctx: click.Context, param: click.Parameter, values: Iterable[str]) -> dict[str, Level]:
    """The levels of an option, by rule."""
    return dict(_converted(level, value, ctx, param) for value in values)


def complete_prefixes(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """How a list of rules may go on."""
    before, comma, last = incomplete.rpartition(",")
    return [CompletionItem(before + comma + rule.id, help=rule.__name__) for rule in _beginning(last)]


def complete_levels(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """How a level of a rule may go on."""
    rule, equals, name = incomplete.partition("=")
    if equals:
        return [CompletionItem(f"{rule}={level.value}") for level in Level if level.value.startswith(name)]
    return [CompletionItem(f"{rule.id}=", help=rule.__name__) for rule in _beginning(incomplete)]


def complete_rules(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """How a rule's id or name may go on."""
    named = [CompletionItem(rule.__name__, help=rule.id) for rule in Rule.all() if incomplete and rule.__name__.startswith(incomplete)]
    return [*(CompletionItem(rule.id, help=rule.__name__) for rule in _beginning(incomplete)), *named]


def _converted(convert: Callable[[str], _T], text: str, ctx: click.Context, param: click.Parameter) -> _T:
    try:
        return convert(text)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def _beginning(text: str) -> Iterator[type[Rule]]:
    """The rules whose ids begin with `text`."""
    return (rule for rule in Rule.all() if rule.id.startswith(text.upper()))
