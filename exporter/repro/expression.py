"""Python expressions as trees: compared as a whole, written over as many lines as they need."""

from __future__ import annotations

import dataclasses
import keyword
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

_WIDTH = 120


@dataclasses.dataclass(frozen=True)
class Ref:
    """A class or a function that the script has to have or to import, and what follows its name, such as `.method`."""

    value: Any
    after: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and self.value is other.value and self.after == other.after

    def __hash__(self) -> int:
        return hash((id(self.value), self.after))


@dataclasses.dataclass(frozen=True)
class Text:
    """Source text as it stands. What comes from a user's model is in it by `repr` only."""

    text: str


@dataclasses.dataclass(frozen=True)
class Items:
    """Expressions between brackets.

    Attributes:
        head: What is called; None where the brackets stand alone.
        brackets: The opening and the closing text.
        items: Each with the text before it, such as `key: ` or `name=`.
    """

    head: Expression | None
    brackets: tuple[str, str]
    items: tuple[tuple[str, Expression], ...]


Expression = Ref | Text | Items

INDEX = Text("index")
"""The number of a repeated part."""

_REPEATED = 3
_NONE: Mapping[str, Expression] = {}


def call(head: Expression, *items: Expression, keywords: Mapping[str, Expression] = _NONE) -> Items:
    """`head(*items, **keywords)`."""
    plain = {name: value for name, value in keywords.items() if name.isidentifier() and not keyword.iskeyword(name)}
    others = tuple((f"{name!r}: ", value) for name, value in keywords.items() if name not in plain)
    given = (*(("", item) for item in items), *((f"{name}=", value) for name, value in plain.items()))
    return Items(head, ("(", ")"), (*given, ("**", Items(None, ("{", "}"), others))) if others else given)


def in_a_row(items: Sequence[Expression]) -> tuple[tuple[str, Expression], ...]:
    """`items` for brackets; those that are equal, or count up in some place, are written once."""
    written: list[tuple[str, Expression]] = []
    start = 0
    while start < len(items):
        end, numbered = start + 1, items[start]
        while end < len(items) and (longer := _numbered(items[start : end + 1])) is not None:
            end, numbered = end + 1, longer
        if end - start < _REPEATED:
            written.append(("", items[start]))
            start += 1
            continue
        written.append(("*", Items(None, ("[", f" for {INDEX.text} in range({end - start})]"), (("", numbered),))))
        start = end
    return tuple(written)


def _numbered(items: Sequence[Expression]) -> Expression | None:
    """An expression that is each of `items` in turn, as `INDEX` counts from 0."""
    first = items[0]
    if all(item == first for item in items[1:]):
        return first
    if isinstance(first, Text):
        if not first.text.isdecimal() or any(item != Text(str(int(first.text) + number)) for number, item in enumerate(items)):
            return None
        return INDEX if first.text == "0" else Text(f"{INDEX.text} + {first.text}")
    alike = [item for item in items if isinstance(item, Items) and isinstance(first, Items) and _frame(item) == _frame(first)]
    if not isinstance(first, Items) or len(alike) < len(items):
        return None
    inner = [(key, _numbered([item.items[number][1] for item in alike])) for number, (key, _) in enumerate(first.items)]
    known = tuple((key, each) for key, each in inner if each is not None)
    return dataclasses.replace(first, items=known) if len(known) == len(inner) else None


def _frame(expression: Items) -> tuple[object, ...]:
    return expression.head, expression.brackets, tuple(key for key, _ in expression.items)


def literal(value: object) -> Text:
    """What `repr` says, which for floats that are no numbers is no Python."""
    text = repr(value)
    return Text(f'float("{text}")' if text in ("nan", "inf", "-inf") else text)


def parts(expression: Expression) -> Iterator[Expression]:
    """`expression` and all that is in it, the inner ones first."""
    if isinstance(expression, Items):
        for inner in (expression.head, *(item for _, item in expression.items)):
            if inner is not None:
                yield from parts(inner)
    yield expression


def render(expression: Expression, name: Callable[[Expression], str | None], indent: int = 0, before: int = 0) -> str:
    """The text of `expression`.

    Args:
        expression: What to write.
        name: Gives the text for a `Ref`, and for anything else that has a name by now.
        indent: How far the line is indented, in spaces.
        before: How much of the line is taken.
    """
    known = name(expression)
    if known is not None:
        return known
    if isinstance(expression, Text):
        return expression.text
    assert isinstance(expression, Items)
    head = "" if expression.head is None else render(expression.head, name, indent, before)
    opening, closing = expression.brackets
    flat = ", ".join(key + render(item, name, 0, -10_000) for key, item in expression.items)
    if opening == "(" and not head and len(expression.items) == 1:
        flat += ","
    if before + len(head) + len(flat) + 2 <= _WIDTH and "\n" not in flat:
        return head + opening + flat + closing
    margin = " " * (indent + 4)
    lines = [margin + key + render(item, name, indent + 4, indent + 5 + len(key)) for key, item in expression.items]
    repeated, _, last = closing.rpartition("]") if closing.startswith(" for ") else ("", "", closing)
    if repeated:
        return "\n".join([head + opening, *lines, margin + repeated.strip(), " " * indent + "]"])
    return "\n".join([head + opening, *(f"{line}," for line in lines), " " * indent + last])
