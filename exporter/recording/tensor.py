"""ONNX values with Python's operators."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from .operators import op

VECTOR = "vector"
"""Key, in the `meta` of a scalar, of the same number as a tensor of one element. Shapes are made of such tensors."""


PRECISE = "precise"
"""Key, in the `meta` of a FLOAT scalar, of the DOUBLE scalar that it was rounded from."""

SIZE = "size"
"""Key, in the `meta` of a scalar, of the symbolic size (torch.SymInt) that it is."""


class Tensor(ir.Value):
    """An ONNX value on which translations may use Python's operators. They become ONNX nodes, with ONNX's broadcasting."""

    @property
    def rank(self) -> int | None:
        """The number of dims, if known."""
        return None if self.shape is None else len(self.shape)

    def __bool__(self) -> bool:
        # NOTE: a translation written for onnxscript's compiler may have an `if` or a `while` on a tensor. As Python, it would take one
        # branch or never end.
        raise TypeError("a translation decides by the value of a tensor, which is not known during an export")

    def __add__(self, other: Any) -> Any:
        return op.Add(self, other)

    def __radd__(self, other: Any) -> Any:
        return op.Add(other, self)

    def __sub__(self, other: Any) -> Any:
        return op.Sub(self, other)

    def __rsub__(self, other: Any) -> Any:
        return op.Sub(other, self)

    def __mul__(self, other: Any) -> Any:
        return op.Mul(self, other)

    def __rmul__(self, other: Any) -> Any:
        return op.Mul(other, self)

    def __truediv__(self, other: Any) -> Any:
        return op.Div(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return op.Div(other, self)

    def __pow__(self, other: Any) -> Any:
        return op.Pow(self, other)

    def __matmul__(self, other: Any) -> Any:
        return op.MatMul(self, other)

    def __mod__(self, other: Any) -> Any:
        return op.Mod(self, other, fmod=int(self.dtype is not None and self.dtype.is_floating_point()))

    def __neg__(self) -> Any:
        return op.Neg(self)

    def __and__(self, other: Any) -> Any:
        return op.And(self, other)

    def __rand__(self, other: Any) -> Any:
        return op.And(other, self)

    def __or__(self, other: Any) -> Any:
        return op.Or(self, other)

    def __ror__(self, other: Any) -> Any:
        return op.Or(other, self)

    def __lt__(self, other: Any) -> Any:
        return op.Less(self, other)

    def __le__(self, other: Any) -> Any:
        return op.LessOrEqual(self, other)

    def __gt__(self, other: Any) -> Any:
        return op.Greater(self, other)

    def __ge__(self, other: Any) -> Any:
        return op.GreaterOrEqual(self, other)

    # NOTE: torchlib compares elements with `!=`, but `==` must stay identity: onnx_ir keeps values in sets.
    def __ne__(self, other: object) -> Any:
        return op.Not(op.Equal(self, other))

    __hash__ = ir.Value.__hash__
