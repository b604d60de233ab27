"""The sizes that the inputs have in a captured program."""

from __future__ import annotations

from collections.abc import Iterable

import sympy
import torch
from torch.export.graph_signature import InputKind

from onnxplain.request import DynamicShapes, InputDim
from onnxplain.torch_internals.symbolic_expressions import expression_of


def constant_dims(shapes: DynamicShapes, program: torch.export.ExportedProgram) -> dict[InputDim, int]:
    """The dims that must stay dynamic and have only one size in `program`."""
    return {dim: size for dim, size in sizes_in(program, shapes.dynamic).items() if isinstance(size, int)}


def sizes_in(program: torch.export.ExportedProgram, dims: Iterable[InputDim]) -> dict[InputDim, int | sympy.Expr]:
    """The size of each of `dims` in `program`: a number if it has only one size, or else an expression of torch's symbols."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    names = [getattr(each.arg, "name", "") for each in program.graph_signature.input_specs if each.kind is InputKind.USER_INPUT]
    found: dict[InputDim, int | sympy.Expr] = {}
    for dim in dims:
        tensor = values.get(names[dim.flat_index]) if dim.flat_index < len(names) else None
        size = tensor.shape[dim.axis] if isinstance(tensor, torch.Tensor) else None
        if isinstance(size, torch.SymInt):
            sizes = program.range_constraints.get(expression_of(size))
            size = int(sizes.lower) if sizes is not None and sizes.lower == sizes.upper else expression_of(size)
        if size is not None:
            found[dim] = size
    return found
