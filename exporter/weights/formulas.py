"""How a weight is computed from other values of the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import onnx_ir as ir

if TYPE_CHECKING:
    from .tensors import Computed


@dataclasses.dataclass(frozen=True)
class Formula:
    """How a weight is computed from values, so that the same can be computed from others.

    Attributes:
        key: Equal for formulas that compute the same from the same values.
        values: The values: weights, computed weights and constants.
        apply: Computes from other values of the same dtypes and shapes.
    """

    key: Hashable
    values: Sequence[ir.Value | None]
    apply: Callable[[Sequence[ir.Value | None]], Computed]
