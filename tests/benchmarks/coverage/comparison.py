"""What becomes of an export, and how its results differ from those of eager PyTorch."""

from __future__ import annotations

import enum

import torch

_TOLERANCES = {torch.float64: 1e-6, torch.float32: 2e-4, torch.float16: 2e-2}
"""How large `|got - want| / (1 + |want|)` may be."""


class Outcome(enum.Enum):
    """What became of a sample."""

    OK = "ok"
    REFUSED = "refused"
    INTERNAL = "internal error"
    INVALID = "invalid model"
    NO_KERNEL = "not run by ONNX Runtime"
    TOLD = "different, with a finding"
    DIFFERENT = "silently different"
    SLOW = "too slow"
    CRASHED = "crashed"
    FIXED = "all dims fixed"
    NO_SAMPLE = "not run by eager PyTorch"


def difference(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest distance; 0 within the tolerance, infinite for other shapes and where only one is NaN or infinite."""
    if got.shape != wanted.shape:
        return float("inf")
    if not got.numel():
        return 0.0
    got, wanted = (torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in (got, wanted))
    if got.layout is not torch.strided or wanted.layout is not torch.strided:
        got, wanted = got.to_dense(), wanted.to_dense()
    left, right = got.detach().double(), wanted.detach().double()
    apart = torch.where((left == right) | (left.isnan() & right.isnan()), 0.0, (left - right).abs() / (1 + right.abs()))
    worst = float(apart.nan_to_num(nan=float("inf"), posinf=float("inf")).max())
    return worst if worst > _TOLERANCES.get(wanted.dtype, 0.0) else 0.0


def first_line(error: BaseException) -> str:
    """The class and the first line of an exception."""
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:300]
