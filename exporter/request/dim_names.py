"""Names of sizes: the user's names where there are any, names of inputs and axes elsewhere, and torch's symbols for sizes from data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import sympy
import torch
from torch.export.graph_signature import InputKind

from onnxplain.torch_internals import dim_entries
from onnxplain.torch_internals.symbolic_expressions import as_python, expression_of, rounds_toward_zero

from .binding import is_constant
from .dynamic_shapes import DynamicShapes, InputDim, Kind


class DimNames:
    """Writes sizes of fake tensors in the names that the user gave to dims of the inputs.

    Attributes:
        dropped: Names that the user gave and that are not used, each with the dim's actual name: one size has one name.
        renamed: Names that the user gave and that are no identifiers, each with the dim's actual name.
    """

    def __init__(self) -> None:
        self._symbols: dict[Any, sympy.Expr] = {}
        # NOTE: a few expressions are the sizes of thousands of values, and sympy takes long to put names into one.
        self._texts: dict[Any, str] = {}
        self.dropped: dict[str, str] = {}
        self.renamed: dict[str, str] = {}

    def learn(self, program: torch.export.ExportedProgram, shapes: DynamicShapes) -> None:
        """Reads the symbols from the inputs of a captured program, and forgets those of an earlier program.

        Args:
            program: The program.
            shapes: The dynamic shapes of its inputs, as the user gave them.
        """
        # NOTE: where two dims are equal, the user's name counts.
        sizes = sorted(_sizes(program, shapes), key=lambda each: each[0].is_nameless)
        self._symbols, self._texts = {}, {}
        for dim, expression in sizes:
            is_taken = dim.is_nameless and _symbol(dim.label) in self._symbols.values()
            if expression.is_Symbol and dim.kind is not Kind.DERIVED and not is_taken:
                self._symbols.setdefault(expression, _symbol(dim.label))
        for dim, expression in sizes:
            root = dim_entries.root(dim.given) if dim.kind is Kind.DERIVED else None
            if root is not None and (symbol := _symbol_of_root(dim, expression)):
                self._symbols.setdefault(symbol, _symbol(root.__name__))
            elif root is not None and expression.is_Symbol:
                # NOTE: torch gives a dim such as `n - 1` its own symbol.
                self._symbols.setdefault(expression, dim_entries.from_root(dim.given)(_symbol(root.__name__)))
        told = ((dim, self.text(expression)) for dim, expression in sizes if dim.kind in (Kind.NAMED, Kind.DIM))
        # NOTE: capture reports that two Dim objects are one.
        objects = {dim.label for dim, _ in sizes if dim.kind is Kind.DIM}
        changed = ((dim, given) for dim, given in told if dim.label != given)
        self.dropped = {dim.label: given for dim, given in changed if dim.kind is Kind.NAMED or given not in objects}
        renamed = {str(dim.given): dim.label for dim, _ in sizes if dim.kind is Kind.NAMED and dim.given != dim.label}
        self.dropped |= {asked: self.dropped.pop(label) for asked, label in renamed.items() if label in self.dropped}
        self.renamed = {asked: label for asked, label in renamed.items() if asked not in self.dropped}

    def text(self, expression: sympy.Basic) -> str:
        """An expression of torch's symbols, such as `batch` or `2*batch + 1`."""
        if expression not in self._texts:
            named = expression.subs(self._symbols) if self._symbols else expression
            self._texts[expression] = as_python(named) if rounds_toward_zero(named) else str(named)
        return self._texts[expression]

    def put_into(self, annotation: str) -> str:
        """An annotation of torch's printed graphs, such as `f32[s77, 4]`, with the names that stand for a symbol alone."""
        names = {str(symbol): str(name) for symbol, name in self._symbols.items() if name.is_Symbol}
        return re.sub(r"\w+", lambda word: names.get(word[0], word[0]), annotation)

    def of(self, size: int | torch.SymInt) -> int | str:
        """A size: a number, or an expression of names."""
        if isinstance(size, int):
            return size
        expression = expression_of(size)
        return int(expression) if expression.is_number else self.text(expression)


def _symbol(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, integer=True, positive=True)


def _sizes(program: torch.export.ExportedProgram, shapes: DynamicShapes) -> Iterator[tuple[InputDim, sympy.Expr]]:
    """The dims with a name that vary in `program`, each with its size."""
    placeholders = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    specs = [spec.arg for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    values = [None if is_constant(arg) else placeholders.get(arg.name) for arg in specs]
    for dim in shapes.dims:
        tensor = values[dim.flat_index] if dim.label and dim.flat_index < len(values) else None
        size = tensor.shape[dim.axis] if isinstance(tensor, torch.Tensor) and dim.axis < tensor.ndim else None
        if isinstance(size, torch.SymInt) and not expression_of(size).is_number:
            yield dim, expression_of(size)


def _symbol_of_root(dim: InputDim, expression: sympy.Expr) -> sympy.Symbol | None:
    """The symbol that `dim` is computed from, if `expression` computes it in the same way."""
    symbols = list(expression.free_symbols)
    if len(symbols) != 1:
        return None
    # NOTE: a dim that is computed from another dim is a linear function of it (torch 2.11 to 2.15, export/dynamic_shapes.py).
    return symbols[0] if all(expression.subs(symbols[0], each) == dim_entries.from_root(dim.given)(each) for each in (5, 7)) else None
