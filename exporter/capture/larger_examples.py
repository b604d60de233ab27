"""Example inputs that are larger where a dim that must stay dynamic has size 1: code often treats that size in a special way."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from onnxplain.request import DynamicShapes, InputDim, Request
from onnxplain.rules import SpecializedDynamicDim
from onnxplain.torch_internals import pytree

from .finding import Finding

_SIZE = 2


def without_ones(request: Request, findings: Sequence[Finding]) -> Request | None:
    """`request` with size 2 instead of 1 for each dim that must stay dynamic; None if no finding says that the model fixes such a dim to 1.

    The values along the dim are repeated.
    """
    if not any(isinstance(finding.rule, SpecializedDynamicDim) and finding.rule.value == 1 for finding in findings):
        return None
    return doubled(request)


def doubled(request: Request) -> Request | None:
    """`request` with size 2 instead of 1 for each dim that must stay dynamic; None if there is no such dim."""
    ones = [dim for dim in request.shapes.dynamic if dim.size == 1 and dim.allows(_SIZE)]
    if not ones:
        return None
    larger = {id(leaf.value): _repeated(leaf.value, index, ones) for index, leaf in enumerate(request.shapes.leaves)}

    def replaced(value: Any) -> Any:
        return larger.get(id(value), value)

    args, kwargs = pytree.tree_map(replaced, (request.args, dict(request.kwargs)))
    shapes = DynamicShapes.parse(request.shapes.given, request.model, args, kwargs, argument=request.shapes.argument)
    return dataclasses.replace(request, args=args, kwargs=kwargs, shapes=shapes)


def without_checks(program: torch.export.ExportedProgram) -> torch.nn.Module:
    """`program` as a module that takes the size 1 as well: torch has recorded that it differs from the size of the example."""
    module = program.module(check_guards=False)
    assert isinstance(module, torch.fx.GraphModule)
    for node in list(module.graph.nodes):
        if str(node.target) == "aten._assert_scalar.default":
            module.graph.erase_node(node)
    module.recompile()
    return module


def _repeated(value: Any, index: int, dims: Sequence[InputDim]) -> Any:
    axes = [dim.axis for dim in dims if dim.flat_index == index]
    return value.repeat([_SIZE if axis in axes else 1 for axis in range(value.ndim)]) if isinstance(value, torch.Tensor) and axes else value
