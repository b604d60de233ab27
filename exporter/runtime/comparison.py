"""How far the output of ONNX Runtime is from that of eager PyTorch."""

from __future__ import annotations

import dataclasses

import torch

from onnxplain.weights import as_real

TOLERANCES = {torch.float64: 1e-7, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""The tolerance for each dtype. Tensors of other dtypes have to be equal."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """How far two tensors are apart.

    Attributes:
        difference: The largest of `|got - want| / (1 + |want|)` over all elements; infinite for different shapes or dtypes, and where
            only one side is NaN.
        tolerance: How large the difference may be.
    """

    difference: float
    tolerance: float

    @property
    def differs(self) -> bool:
        """Whether the difference is larger than the tolerance."""
        return self.difference > self.tolerance


def compare(got: torch.Tensor, want: torch.Tensor) -> Comparison:
    """Compares two tensors. Compares complex tensors as pairs of real numbers, as ONNX represents them."""
    got, want = as_real(got), as_real(want)
    tolerance = TOLERANCES.get(want.dtype, 0.0)
    if got.shape != want.shape or got.dtype != want.dtype:
        return Comparison(float("inf"), tolerance)
    left, right = got.double(), want.detach().cpu().double()
    apart = (left - right).abs() / (1 + right.abs())
    same = (left == right) | (left.isnan() & right.isnan())
    apart = torch.where(same, 0.0, torch.nan_to_num(apart, nan=float("inf"), posinf=float("inf")))
    return Comparison(float(apart.max()) if apart.numel() else 0.0, tolerance)
