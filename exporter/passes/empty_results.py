"""Tensors without elements: constants, whatever computes them."""

from __future__ import annotations

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import OnnxRegistry

_ZEROS = torch.ops.aten.zeros.default


def replace_empty_results(context: DiagnosticContext, module: torch.fx.GraphModule, registry: OnnxRegistry) -> None:
    """Replaces each operator whose result has no elements, at any size of dynamic dims, by a constant.

    NOTE: kernels of ONNX Runtime keep the dims that a reduction removes, or refuse the input, where a tensor is empty (read in 1.31).
    """
    del context, registry
    for node in module.graph.nodes:
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor) or node.target is _ZEROS or not _is_empty(value.shape):
            continue
        node.target = _ZEROS
        node.args, node.kwargs = (list(value.shape),), {"dtype": value.dtype}


def _is_empty(shape: torch.Size) -> bool:
    # NOTE: a comparison of a symbolic size would add a guard.
    sizes = [size for size in shape if type(size) is int]
    return 0 in sizes and len(sizes) == len(shape)
