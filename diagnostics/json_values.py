"""Checks the type of each value in a JSON document that somebody else wrote."""

from __future__ import annotations

import math
from typing import Any


def string(value: object) -> str:
    """Returns `value` if it is a string, else raises `TypeError`."""
    if not isinstance(value, str):
        raise TypeError(f"expected a string, got {value!r:.60}")
    return value


def seconds(value: object) -> float:
    """Returns `value` as a float if it is a finite number that is not negative, else raises `TypeError`."""
    # NOTE: JSON of Python knows infinities, which no browser reads.
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        raise TypeError(f"expected a finite number of seconds, got {value!r:.60}")
    return float(value)


def integer(value: object, least: int = 0) -> int:
    """Returns `value` if it is an integer of at least `least`, else raises `TypeError`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise TypeError(f"expected an integer of at least {least}, got {value!r:.60}")
    return value


def boolean(value: object) -> bool:
    """Returns `value` if it is true or false, else raises `TypeError`."""
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, got {value!r:.60}")
    return value


def array(value: object) -> list[Any]:
    """Returns `value` if it is an array, else raises `TypeError`."""
    if not isinstance(value, list):
        raise TypeError(f"expected an array, got {value!r:.60}")
    return value
