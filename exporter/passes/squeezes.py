"""Squeezes of computed sizes that are 1 for the example, such as `min(n, 4)`: torch drops the dim, and so does the graph."""

from __future__ import annotations

import itertools

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import OnnxRegistry
from onnxplain.torch_internals.operators import SQUEEZES

from .graphs import arguments, inherit


def drop_computed_dims(context: DiagnosticContext, module: torch.fx.GraphModule, registry: OnnxRegistry) -> None:
    """Replaces each such squeeze by a reshape. It fails at run time where the size is not 1, as the graph has no dim for it."""
    del context, registry
    for node in list(module.graph.nodes):
        if node.target in SQUEEZES and (kept := _kept(node)) is not None:
            _replace(module.graph, node, kept)


def _kept(node: torch.fx.Node) -> tuple[int, ...] | None:
    """The dims that are left, if torch dropped others than those of the fixed size 1."""
    given = arguments(node)
    before, after = given["self"].meta.get("val"), node.meta.get("val")
    if not isinstance(before, torch.Tensor) or not isinstance(after, torch.Tensor):
        return None
    dims = given.get("dim", range(before.ndim))
    named = {each % max(before.ndim, 1) for each in ([dims] if isinstance(dims, int) else dims)}
    fixed = {dim for dim in named if dim < before.ndim and isinstance(before.shape[dim], int) and before.shape[dim] == 1}
    if before.ndim - len(fixed) == after.ndim:
        return None
    computed = sorted(dim for dim in named - fixed if isinstance(before.shape[dim], torch.SymInt))
    wanted = [str(size) for size in after.shape]
    for dropped in itertools.combinations(computed, before.ndim - len(fixed) - after.ndim):
        kept = tuple(dim for dim in range(before.ndim) if dim not in fixed and dim not in dropped)
        if [str(before.shape[dim]) for dim in kept] == wanted:
            return kept
    return None


def _replace(graph: torch.fx.Graph, node: torch.fx.Node, kept: tuple[int, ...]) -> None:
    source = node.args[0]
    assert isinstance(source, torch.fx.Node)
    sizes: list[int | torch.fx.Node] = []
    with graph.inserting_before(node):
        for dim in kept:
            size = source.meta["val"].shape[dim]
            if isinstance(size, int):
                sizes.append(size)
            else:
                sizes.append(made := graph.call_function(torch.ops.aten.sym_size.int, (source, dim)))
                inherit(node, made)
                made.meta["val"] = size
        reshaped = graph.call_function(torch.ops.aten.reshape.default, (source, sizes))
    inherit(node, reshaped)
    reshaped.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(reshaped)
