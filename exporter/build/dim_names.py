"""Names of dynamic dims: the user's where there are any, torch's symbols elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import onnx_ir as ir
import torch
from torch.export.graph_signature import ConstantArgument, InputKind

from onnxplain.request import Request, inputs


class Names:
    """Translates sizes of fake tensors to ONNX dims.

    Args:
        program: The captured program.
        request: Its `dim_names` hold the names that the user gave.

    Attributes:
        dropped: Names that were asked for, and the names that those dims have instead: one size has one name.
    """

    def __init__(self, program: torch.export.ExportedProgram, request: Request) -> None:
        self._symbols: dict[Any, str] = {}
        self.dropped: dict[str, str] = {}
        for symbol, name, is_only_a_name in _symbol_names(program, request):
            given = self._symbols.setdefault(symbol, name)
            # NOTE: capture has reported that two Dim objects are one.
            if given != name and is_only_a_name:
                self.dropped[name] = given

    def of(self, size: int | torch.SymInt) -> int | ir.SymbolicDim:
        """A size as an ONNX dim: a number, or a text such as `batch` or `2*batch + 1`."""
        if isinstance(size, int):
            return size
        expression = size.node.expr
        if expression.is_number:
            return int(expression)
        renamed = expression.subs({symbol: _symbol(name) for symbol, name in self._symbols.items()}) if self._symbols else expression
        return ir.SymbolicDim(str(renamed))


def _symbol(name: str) -> Any:
    import sympy

    return sympy.Symbol(name, integer=True, positive=True)


def _symbol_names(program: torch.export.ExportedProgram, request: Request) -> Iterator[tuple[Any, str, bool]]:
    """torch's symbols, the user's names for them, and whether those are only names, read off the inputs side by side with `dim_names`."""
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    values = [
        None if isinstance(spec.arg, ConstantArgument) else placeholders[spec.arg.name].meta.get("val")
        for spec in program.graph_signature.input_specs
        if spec.kind is InputKind.USER_INPUT
    ]
    for value, leaf in zip(values, inputs.leaves(request), strict=False):
        for index, dim in _dims(leaf.names):
            name = dim if isinstance(dim, str) else getattr(dim, "__name__", None)
            size = value.shape[index] if isinstance(value, torch.Tensor) and index < value.ndim else None
            if name and isinstance(size, torch.SymInt) and size.node.expr.is_Symbol and "*" not in name and "+" not in name:
                yield size.node.expr, name, isinstance(dim, str)


def _dims(spec: Any) -> Iterator[tuple[int, Any]]:
    if isinstance(spec, Mapping):
        yield from ((index, dim) for index, dim in spec.items() if isinstance(index, int))
    elif isinstance(spec, list | tuple):
        yield from enumerate(spec)
