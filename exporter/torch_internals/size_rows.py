"""`range(...)` of sizes, and the lists that Python makes of it with `list`, slices and `+`, without their elements.

Python makes the elements one by one, and so fixes the sizes. A `Row` knows first elements, steps and counts, which stay symbolic. Like a
list, it has a length (see `size_conversions`), elements at single positions, and slices. Whatever else is asked of it ends in an error:
then the model is captured without rows.
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from . import shape_env
from .shape_env import is_true

shape_env.leave_out(__file__)


@dataclass(frozen=True)
class _Part:
    """The whole numbers `first`, `first + step` and so on. Of its fields, all may be symbolic but `step`."""

    first: Any
    step: int
    count: Any

    def at(self, position: Any) -> Any:
        return self.first + position * self.step


class Row:
    """Whole numbers in a row, whose count is symbolic.

    Args:
        parts: Numbers at equal distances, each after the others.
    """

    def __init__(self, parts: Sequence[_Part]) -> None:
        self.parts = parts

    @property
    def count(self) -> Any:
        """How many they are."""
        return functools.reduce(operator.add, (part.count for part in self.parts))

    def __len__(self) -> int:
        raise TypeError("a row of sizes has no plain length")

    def __iter__(self) -> NoReturn:
        raise TypeError("a row of sizes has no plain elements")

    def __getitem__(self, index: Any) -> Any:
        return self._sliced(index) if isinstance(index, slice) else self._at(index)

    def _at(self, position: Any) -> Any:
        behind = _behind(self.parts, position) if position >= 0 else _behind(_backwards(self.parts), -1 - position)
        found = next((part for part in behind if part.count > 0), None)
        if found is None:
            raise IndexError("list index out of range")
        return found.first

    def _sliced(self, index: slice) -> Any:
        start, stop, step = index.start or 0, index.stop, 1 if index.step is None else index.step
        if (index.start, stop, step) == (None, None, -1):
            return _row(_backwards(self.parts))
        if type(step) is not int or step < 1 or start < 0:
            raise TypeError("a row of sizes has no such slice")
        parts = self.parts
        if stop is not None:
            parts = _until(parts, stop) if stop >= 0 else _backwards(_behind(_backwards(parts), -stop))
        left = [part for part in _behind(parts, start) if type(part.count) is not int or part.count]
        if step > 1 and len(left) > 1:
            raise TypeError("a row of sizes has no such slice")
        return _row([_Part(part.first, part.step * step, _whole(part.count, step)) for part in left])

    def __add__(self, other: object) -> Any:
        return _row([*self.parts, *_parts_of(other)])

    def __radd__(self, other: object) -> Any:
        return _row([*_parts_of(other), *self.parts])


def ranging(*bounds: Any) -> Any:
    """`range(*bounds)`; a `Row` if they hold a size, and the step is a plain number."""
    match bounds:
        case (stop,):
            start, step = 0, 1
        case (start, stop):
            step = 1
        case (start, stop, step):
            pass
        case _:
            return builtins.range(*bounds)
    is_symbolic = isinstance(start, torch.SymInt) or isinstance(stop, torch.SymInt)
    if not is_symbolic or type(step) is not int or not step:
        return builtins.range(*bounds)
    length = stop - start if step > 0 else start - stop
    return Row([_Part(start, step, _whole(length if is_true(length >= 0) else torch.sym_max(length, 0), abs(step)))])


def _row(parts: Sequence[_Part]) -> Any:
    """A row, or a list if its length is plain."""
    if any(type(part.count) is not int for part in parts):
        return Row(parts)
    return [part.at(position) for part in parts for position in range(part.count)]


def _parts_of(items: object) -> Sequence[_Part]:
    if isinstance(items, Row):
        return items.parts
    if type(items) is not list:
        raise TypeError(f'can only concatenate list (not "{type(items).__name__}") to list')
    return [_Part(each, 1, 1) for each in items]


def _behind(parts: Sequence[_Part], number: Any) -> list[_Part]:
    """All elements but the first `number`."""
    left: list[_Part] = []
    for part in parts:
        cut = _smaller(number, part.count)
        left.append(_Part(part.at(cut), part.step, part.count - cut))
        number = number - cut
    return left


def _until(parts: Sequence[_Part], number: Any) -> list[_Part]:
    """The first `number` elements."""
    taken: list[_Part] = []
    for part in parts:
        kept = _smaller(number, part.count)
        taken.append(_Part(part.first, part.step, kept))
        number = number - kept
    return taken


def _backwards(parts: Sequence[_Part]) -> list[_Part]:
    return [_Part(part.at(part.count - 1), -part.step, part.count) for part in reversed(parts)]


def _smaller(number: Any, count: Any) -> Any:
    # NOTE: the example decides whether a slice ends in this part, as an `if` of the model would: torch finds few relations between sizes
    # that are the smallest of others.
    return number if number <= count else count


def _whole(size: Any, step: int) -> Any:
    """How many steps reach the end of `size`."""
    return (size + step - 1) // step
