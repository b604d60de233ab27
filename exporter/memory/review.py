"""Reports tensors that dominate a model's memory although a reduction soon collapses them, or rewrites them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir
from onnx_ir.passes import common

from onnxplain.diagnostics import Confidence, DiagnosticContext, Evidence, Fix
from onnxplain.rules import BroadcastCollapsed, ComputedInChunks
from onnxplain.source import locations

from .attention import Attention, attentions
from .chunks import LEAST_ROWS, compute_in_chunks
from .collapse import Collapse, collapses
from .cuts import cut_of
from .estimate import estimate
from .planning import Plan
from .records import readable
from .shapes import Shapes, bound

_FLOOR = 64 * 2**20
"""Bytes from which on a tensor counts: ONNX Runtime itself takes as many for its code."""

_REWRITE = Fix("Let the export compute it in chunks.", Confidence.SAFE, snippet='onnxplain.export(..., optimize="memory")')
_REPLACE = Fix("Use an operator that needs no large tensor, such as `torch.matmul` or `torch.einsum`.", Confidence.GUESS)


def review(context: DiagnosticContext, model: ir.Model, shapes: Sequence[Sequence[int]], *, rewrite: bool) -> bool:
    """Looks for tensors that broadcasting makes large and that a reduction soon collapses.

    Args:
        context: It gets a warning for each that dominates: a run without it takes less than half of the memory, weights and inputs
            included. With `rewrite` it gets a note for each that is computed in chunks from now on.
        model: The model. It changes only with `rewrite`.
        shapes: The shapes of the example inputs, in the order of the graph's inputs.
        rewrite: Whether to compute these tensors in chunks, and with them those that dynamic dims may make as large.

    Returns:
        Whether there are large tensors that a reduction collapses, which may dominate or not, or an attention to rewrite.
    """
    names = (value.name or "" for value in model.graph.inputs)
    sizes = bound(model, dict(zip(names, shapes, strict=False)))
    found = [each for each in collapses(model.graph, sizes) if each.size >= _FLOOR or (rewrite and _is_dynamic(each))]
    rows = [each for each in attentions(model.graph, sizes) if _is_long(each)] if rewrite else []
    if not found and not rows:
        return False
    dominating = [each for each in _dominating(model, sizes, found) if each.size >= _FLOOR]
    if rewrite:
        chosen = [each for each in found if each in dominating or _is_dynamic(each)]
        left = _rewritten(context, model, sizes, [*chosen, *_saving(model, sizes, rows)])
        dominating = [each for each in dominating if each in left]
    for each in dominating:
        peak, growth = readable(estimate(model, sizes).peak), Shapes(model, sizes).growth(each.first.outputs[0])
        notes = [f"It grows with {growth}."] if growth else []
        can_rewrite = not rewrite and cut_of(model.graph, each) is not None
        kinds = " and ".join(dict.fromkeys(reduction.op_type for reduction in each.reductions))
        rule = BroadcastCollapsed(shape=_shape(each), size=readable(each.size), peak=peak, reduction=kinds)
        notes += [] if can_rewrite else ['`optimize="memory"` cannot compute it in chunks.']
        context.report(rule, at=_place(each), notes=notes, fixes=[_REWRITE if can_rewrite else _REPLACE])
    return True


def _dominating(model: ir.Model, sizes: Mapping[str, int], found: Sequence[Collapse]) -> Sequence[Collapse]:
    """All of `found`, if a run without them takes less than half of the memory, weights and inputs included; otherwise none."""
    before = estimate(model, sizes)
    without = _peak_without(model, sizes, found)
    always = before.weights + before.inputs
    return found if 2 * (without + always) <= before.peak + always else ()


def _peak_without(model: ir.Model, sizes: Mapping[str, int], found: Sequence[Collapse]) -> int:
    hidden = {value for each in found for node in each.nodes for value in node.outputs}
    return Plan(model.graph, Shapes(model, sizes, hidden)).peak


def _saving(model: ir.Model, sizes: Mapping[str, int], found: Sequence[Attention]) -> list[Attention]:
    """Those of `found` without which the peak is lower by a quarter, and those whose lengths are dynamic."""
    if all(each.is_dynamic for each in found):
        return list(found)
    before, without = estimate(model, sizes).peak, _peak_without(model, sizes, found)
    return [each for each in found if each.is_dynamic or (4 * without <= 3 * before and before - without >= _FLOOR)]


def _rewritten(context: DiagnosticContext, model: ir.Model, sizes: Mapping[str, int], found: Sequence[Collapse]) -> list[Collapse]:
    """Computes each of `found` in chunks. Returns those for which there is no way."""
    before = readable(estimate(model, sizes).peak)
    done = [each for each in found if compute_in_chunks(model, each)]
    common.RemoveUnusedNodesPass()(model)
    after = readable(estimate(model, sizes).peak)
    for each in done:
        context.report(ComputedInChunks(shape=_shape(each), before=before, after=after), at=_place(each))
    return [each for each in found if each not in done]


def _is_long(found: Attention) -> bool:
    """Whether an attention is long enough for chunks, or may be."""
    return found.is_dynamic or (found.size >= _FLOOR and found.sizes[-2] >= 2 * LEAST_ROWS)


def _is_dynamic(found: Collapse) -> bool:
    return not all(isinstance(size, int) for size in found.shape)


def _shape(found: Collapse) -> str:
    return f"[{', '.join(str(size) for size in found.sizes)}]"


def _place(found: Collapse) -> Evidence | None:
    """The line that makes the tensor."""
    node = found.first.meta.get(locations.FX_NODE)
    return None if node is None else locations.at_node(node)
