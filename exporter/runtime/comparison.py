"""How far the output of ONNX Runtime is from that of eager PyTorch, and how far it may be."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import to_torch_dtype

from onnxplain.weights import as_real

TOLERANCES = {torch.float64: 1e-7, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""The tolerance for each dtype in which a tensor was computed. Tensors of other dtypes have to be equal."""
_ROUNDING = 4
"""How many times further than eager PyTorch a result may be from that in float64."""


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


def compare(got: torch.Tensor, want: torch.Tensor, tolerance: float = 0.0) -> Comparison:
    """Compares two tensors. Compares complex tensors as pairs of real numbers, as ONNX represents them.

    Args:
        got: The result of ONNX Runtime.
        want: That of eager PyTorch.
        tolerance: The tolerance for the dtypes that floating tensors were computed in, if that is larger than the one for their own.
    """
    got, want = as_real(got), as_real(want)
    tolerance = max(tolerance, TOLERANCES.get(want.dtype, 0.0)) if want.is_floating_point() else 0.0
    if got.shape != want.shape or got.dtype != want.dtype:
        return Comparison(float("inf"), tolerance)
    distances = _distances(got, want)
    return Comparison(float(distances.max()) if distances.numel() else 0.0, tolerance)


def distances(got: torch.Tensor, want: torch.Tensor) -> tuple[float, float]:
    """The largest difference of an element, and the largest in relation to an element of `want` other than 0.

    Both are infinite for different shapes.
    """
    got, want = (as_real(each).detach().cpu().double() for each in (got, want))
    if got.shape != want.shape:
        return float("inf"), float("inf")
    apart = torch.where((got == want) | (got.isnan() & want.isnan()), 0.0, torch.nan_to_num((got - want).abs(), nan=float("inf")))
    relative = torch.where((want == 0) | (apart == 0), 0.0, apart / want.abs())
    return (float(apart.max()), float(relative.max())) if apart.numel() else (0.0, 0.0)


def is_rounding(got: torch.Tensor, want: torch.Tensor, exact: torch.Tensor) -> bool:
    """Whether `got` is about as near to the result of a computation in float64 as `want` is, so that both are that result, rounded.

    That holds for the largest distance and for the mean: where one element of `want` is far off, all others still count.

    Args:
        got: The result of ONNX Runtime.
        want: That of eager PyTorch.
        exact: That of eager PyTorch with float64 in place of all floating dtypes.
    """
    got, want, exact = as_real(got), as_real(want), as_real(exact)
    if not got.shape == want.shape == exact.shape or got.dtype != want.dtype:
        return False
    ours, eagers = _distances(got, exact), _distances(want, exact)
    return all(bool(of(ours) <= _ROUNDING * of(eagers) < float("inf")) for of in (torch.max, torch.mean))


def tolerances(graph: ir.Graph, values: Sequence[ir.Value] | None = None) -> list[float]:
    """The tolerance for each output of `graph`: that of the lowest precision on the way to it. A cast to float64 adds no precision.

    Args:
        graph: The graph.
        values: The values that count instead of the outputs.
    """
    known: dict[ir.Value, float] = {}
    _spread(graph, known)
    return [known.get(value, _own(value)) for value in (graph.outputs if values is None else values)]


def _spread(nodes: Iterable[ir.Node], known: dict[ir.Value, float]) -> float:
    """Notes the tolerance for every value that `nodes` compute. Returns the largest."""
    largest = 0.0
    for node in nodes:
        worst = max((known.get(value, _own(value)) for value in node.inputs if value is not None), default=0.0)
        for attribute in node.attributes.values():
            if attribute.type is ir.AttributeType.GRAPH:
                worst = max(worst, _spread(attribute.as_graph(), known))
        for value in node.outputs:
            known[value] = max(worst, _own(value))
            largest = max(largest, known[value])
    return largest


def _own(value: ir.Value) -> float:
    if value.dtype is None or not value.dtype.is_floating_point():
        return 0.0
    return TOLERANCES.get(to_torch_dtype(value.dtype), 0.0)


def _distances(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`|left - right| / (1 + |right|)` for each element, in float64; infinite where only one of them is NaN."""
    left, right = left.detach().cpu().double(), right.detach().cpu().double()
    apart = (left - right).abs() / (1 + right.abs())
    same = (left == right) | (left.isnan() & right.isnan())
    return torch.where(same, 0.0, torch.nan_to_num(apart, nan=float("inf"), posinf=float("inf")))
