"""Values of a JSON document that were written by others: each is what it has to be, or a `TypeError` says what is there instead."""

from __future__ import annotations

from typing import Any


def text(value: object) -> str:
    """`value`, a text."""
    if not isinstance(value, str):
        raise TypeError(f"it holds {value!r:.60} for a text")
    return value


def number(value: object, least: int = 0) -> int:
    """`value`, a whole number that is not below `least`."""
    if not isinstance(value, int) or value < least:
        raise TypeError(f"it holds {value!r:.60} for a number")
    return value


def flag(value: object) -> bool:
    """`value`, true or false."""
    if not isinstance(value, bool):
        raise TypeError(f"it holds {value!r:.60} for true or false")
    return value


def items(value: object) -> list[Any]:
    """`value`, a list."""
    if not isinstance(value, list):
        raise TypeError(f"it holds {value!r:.60} for a list")
    return value
