"""The body of a random program while it is drawn: the lines so far, and the values that they have for the example."""

from __future__ import annotations

import contextlib
import math
import random
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F

FLOATS = (torch.float32, torch.float32, torch.float32, torch.float32, torch.float64, torch.float16)
INTS = (torch.int64, torch.int64, torch.int32, torch.int8, torch.uint8)
_ELEMENTS = 2000
"""A program makes no larger tensors for its example."""


class Body:
    """The lines of a program while they are drawn, with the values that they have for the example."""

    def __init__(self, chance: random.Random, inputs: Mapping[str, torch.Tensor]) -> None:
        self.chance = chance
        self.lines: list[str] = []
        self.names = list(inputs)
        # NOTE: the order of a set of strings differs between processes, and so would the programs of a seed.
        self.inputs = tuple(self.names)
        self.space: dict[str, Any] = {"torch": torch, "F": F, "math": math, **inputs}
        self.exact = set(self.names)
        self.dtypes = {each.dtype for each in inputs.values()}

    def of(self, name: str) -> torch.Tensor:
        """The example's value."""
        value = self.space[name]
        assert isinstance(value, torch.Tensor)
        return value

    def choose(self, *options: Any) -> Any:
        """One of `options`."""
        return self.chance.choice(options)

    def number(self, least: int, most: int) -> int:
        """An int."""
        return self.chance.randint(least, most)

    def pick(self, wanted: Callable[[torch.Tensor], bool] = lambda _: True, *, exact: bool = False) -> str:
        """The name of a value; the newest values are the likeliest."""
        found = [name for name in self.names if wanted(self.of(name)) and (name in self.exact or not exact)]
        if not found:
            raise Misfit
        return str(self.choose(*found, *found[-3:], found[-1]))

    def like(self, name: str) -> str:
        """A value that may broadcast with the value `name`."""
        shape = self.of(name).shape

        def fits(value: torch.Tensor) -> bool:
            with contextlib.suppress(RuntimeError):
                return len(torch.broadcast_shapes(shape, value.shape)) > 0
            return False

        return self.pick(fits)

    def axis(self, name: str) -> int:
        """A dim of a value; from the end in half of the cases."""
        rank = self.of(name).dim()
        if not rank:
            raise Misfit
        return self.number(-rank, rank - 1)

    def size(self, name: str | None = None) -> str:
        """An expression of sizes."""
        tensor = name or self.pick(lambda value: value.dim() > 0)
        axis = self.axis(tensor)
        plain = self.choose(f"{tensor}.shape[{axis}]", f"{tensor}.size({axis})", f"{tensor}.shape[{axis}]")
        other = self.number(1, 4)
        return str(
            self.choose(
                plain,
                plain,
                plain,
                f"({plain} + {other})",
                f"({plain} - 1)",
                f"({plain} * {other})",
                f"({plain} // {other})",
                f"({plain} % {other + 1})",
                f"max({plain}, {other})",
                f"min({plain}, {other})",
                f"(-{plain})",
                f"{tensor}.numel()",
                f"len({tensor})",
            )
        )

    def add(self, line: str, *, exact: bool, inplace: bool = False) -> None:
        """Adds a line if it runs; `{}` in it is the name of its result."""
        name = f"v{len(self.lines)}"
        text = line.replace("{}", name)
        space = dict(self.space)
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(text, space)
            made = space.get(name)
            if "{}" in line and not _is_usable(made):
                raise Misfit
        except Exception:  # noqa: BLE001  the line is random
            raise Misfit from None
        self.space = space
        self.lines.append(text)
        if isinstance(made, torch.Tensor):
            self.names.append(name)
            self.dtypes.add(made.dtype)
            if exact:
                self.exact.add(name)
        if inplace and not exact:
            self.exact.clear()


class Misfit(Exception):
    """The line does not fit the values that there are."""


def _is_usable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and 0 < value.numel() <= _ELEMENTS and value.dim() <= 5


def is_float(value: torch.Tensor) -> bool:
    return value.is_floating_point()


def is_number(value: torch.Tensor) -> bool:
    return value.dtype is not torch.bool and not value.is_complex()


def is_int(value: torch.Tensor) -> bool:
    return not value.is_floating_point() and is_number(value)


def has_dims(value: torch.Tensor) -> bool:
    return value.dim() > 0
