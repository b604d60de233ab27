"""Python expressions as trees, which can be compared and are written over as many lines as they need."""

from __future__ import annotations

import dataclasses
import keyword
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

_WIDTH = 120


@dataclasses.dataclass(frozen=True)
class Ref:
    """A class or function that the script has to contain or to import.

    Attributes:
        value: The class or function. Equal references have the same object.
        after: The text after its name, such as `.method`.
    """

    value: Any
    after: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ref) and self.value is other.value and self.after == other.after

    def __hash__(self) -> int:
        return hash((id(self.value), self.after))


@dataclasses.dataclass(frozen=True)
class Text:
    """Source text. Names and texts from the user's model are in it only as `repr` shows them."""

    text: str


@dataclasses.dataclass(frozen=True)
class Items:
    """Expressions between brackets.

    Attributes:
        head: The expression before the brackets, such as the function of a call; None if there is none.
        brackets: The opening and the closing text.
        items: The expressions, each with the text before it, such as `key: ` or `name=`.
    """

    head: Expression | None
    brackets: tuple[str, str]
    items: tuple[tuple[str, Expression], ...]


@dataclasses.dataclass(frozen=True)
class Quoted:
    """A string that may tell something about the user. The script has a placeholder for it unless it needs the string.

    Attributes:
        value: The string.
        place: Where it is, such as the path of an attribute. Equal strings are equal wherever they are.
    """

    value: str | bytes
    place: str = dataclasses.field(compare=False)


Expression = Ref | Text | Items | Quoted


class Unknown(Exception):
    """There is no expression for a value.

    Args:
        place: Where the value is; empty for the whole model or input.
        what: What it is, such as the name of its class.
    """

    def __init__(self, place: str, what: str) -> None:
        super().__init__(f"{place} ({what})" if place else what)


INDEX = Text("index")
"""The variable of a comprehension that repeats an expression."""

_REPEATED = 3
"""How many equal expressions in a row become a comprehension."""
_NONE: Mapping[str, Expression] = {}


def call(head: Expression, *items: Expression, keywords: Mapping[str, Expression] = _NONE) -> Items:
    """`head(*items, **keywords)`."""
    plain = {name: value for name, value in keywords.items() if name.isidentifier() and not keyword.iskeyword(name)}
    others = tuple((f"{name!r}: ", value) for name, value in keywords.items() if name not in plain)
    given = (*(("", item) for item in items), *((f"{name}=", value) for name, value in plain.items()))
    return Items(head, ("(", ")"), (*given, ("**", Items(None, ("{", "}"), others))) if others else given)


def in_a_row(items: Sequence[Expression]) -> tuple[tuple[str, Expression], ...]:
    """Items for brackets. Neighbours that are equal, or that differ by a number that counts up, become a comprehension."""
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
    """An expression that equals each item in turn while `INDEX` counts from 0; None if there is none."""
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
    """The `repr` of a value."""
    text = repr(value)
    # NOTE: these floats have no literal in Python.
    return Text(f'float("{text}")' if text in ("nan", "inf", "-inf") else text)


def parts(expression: Expression) -> Iterator[Expression]:
    """`expression` and all expressions in it, the inner ones first."""
    if isinstance(expression, Items):
        for inner in (expression.head, *(item for _, item in expression.items)):
            if inner is not None:
                yield from parts(inner)
    yield expression


def render(expression: Expression, name: Callable[[Expression], str | None], indent: int = 0, before: int = 0) -> str:
    """The text of `expression`.

    Args:
        expression: The expression.
        name: Gives the text for a `Ref` or `Quoted`, and for any other expression that has a name; None for all others.
        indent: The indentation of the line, in spaces.
        before: The number of characters on the line before the expression.
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
