"""What the name of a dynamic dim tells. In a model from elsewhere, or of unusual sizes, the name may be any text."""

from __future__ import annotations

import fractions
import functools
import operator
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import onnx_ir as ir

Dim: TypeAlias = "int | ir.SymbolicDim"

_LONGEST = 1000
_DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.])")
_FACTOR = re.compile(r"^\d+\*(?!\*)")
_TOWER = re.compile(r"\*\*(?!\s*\d\b(?!\s*\*\*))")
"""A power that is no number of one digit, which might take forever."""


def size_of(dim: Dim, sizes: Mapping[str, int]) -> int | None:
    """The size of a dim, such as `2*batch + 1`, where dims have these sizes; None if it is not known.

    Args:
        dim: The dim.
        sizes: The sizes by name.
    """
    if isinstance(dim, int):
        return dim
    expression = _expression(dim)
    if expression is None:
        return sizes.get(dim.value or "")
    try:
        found = expression.evaluate(sizes)
    except (ValueError, ArithmeticError):
        return None
    return found if isinstance(found, int) else None


def names_in(dim: Dim) -> frozenset[str]:
    """The names in the expression of a dim; all of its name if that is no expression."""
    if isinstance(dim, int) or dim.value is None:
        return frozenset()
    expression = _expression(dim)
    return frozenset({dim.value}) if expression is None else expression.free_symbols()


def product(shape: Sequence[Dim]) -> str:
    """The product of the dynamic dims of a shape, such as `n*d**2`; empty if there are none."""
    dims = [dim for dim in shape if isinstance(dim, ir.SymbolicDim)]
    read = [each for each in map(_expression, dims) if each is not None]
    if len(read) < len(dims):
        return " * ".join(str(dim.value) for dim in dims)
    multiplied = functools.reduce(operator.mul, read, 1)
    return "" if isinstance(multiplied, int) else _FACTOR.sub("", str(multiplied.simplify().value or ""))


def _expression(dim: ir.SymbolicDim) -> ir.SymbolicDim | None:
    """The dim as an expression that onnx_ir can read; None if it cannot."""
    if dim.value is None or len(dim.value) > _LONGEST or _TOWER.search(dim.value):
        return None
    # NOTE: onnx_ir reads whole numbers and a few functions of sympy. It raises for Python's `int`, torch's `CeilToInt` and all others. No
    # size is negative.
    text = _DECIMAL.sub(lambda number: f"({fractions.Fraction(number[0])})", dim.value.replace("int(", "floor("))
    expression = ir.SymbolicDim(text)
    try:
        expression.free_symbols()
    except (ValueError, ArithmeticError, RecursionError):
        return None
    return expression
