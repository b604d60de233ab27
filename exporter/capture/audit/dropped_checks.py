"""Run-time checks of the captured program. ONNX has no operator that stops a run, so the model lacks them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import sympy
import torch

from onnxplain.capture.finding import Finding
from onnxplain.capture.observe.numbers_from_data import makes_numbers
from onnxplain.capture.rewrite import packing
from onnxplain.diagnostics import Confidence, Fix, Location
from onnxplain.registry import qualified_name
from onnxplain.rules import CheckDropped
from onnxplain.source import locations
from onnxplain.torch_internals.operators import SQUEEZES
from onnxplain.torch_internals.symbolic_expressions import at, expression_of

from .finished import Finished
from .written_checks import TENSOR_CHECKS, written_check

_NAME_DIMS = Fix("Squeeze only dims that always have size 1, such as squeeze(1).", Confidence.CHANGES_BEHAVIOUR)
_ATEN = torch.ops.aten
_TRIED = range(1, 100)
"""Sizes of dims for which a check is computed."""


def findings(finished: Finished) -> Iterator[Finding]:
    """The findings about checks of data-dependent numbers and of tensors that the user's code does not write as checks.

    A check that only limits a size is not worth a finding.
    """
    # NOTE: if one line has several relations, the later ones mostly follow from the first.
    first: dict[Location, sympy.Basic] = {}
    guards, dims = finished.attempt.guards, finished.request.shapes.dims
    known = guards.symbols.sizes(dims).keys()
    # NOTE: torch 2.11 takes the sizes of slices for sizes from data at first.
    known_from_data = {symbol for node in finished.nodes for symbol in node.meta.get("unbacked_bindings") or ()}
    some_from_data = any(map(makes_numbers, finished.nodes))
    slices = _Slices(finished.nodes)
    for relation, stack in guards.checks():
        # NOTE: ONNX's recurrent layers refuse a sequence that is longer than the batch, as a packed sequence does.
        if written_check(stack) is not None or packing.call_at(stack[-1]) is not None:
            continue
        is_from_data = some_from_data or bool(relation.free_symbols & known_from_data)
        if is_from_data and not _is_range(relation) and stack[-1] not in first and not (_holds_always(relation) or slices.imply(relation)):
            first[stack[-1]] = relation
            names = {dim: dim.name for dim in guards.symbols.places([relation], dims)}
            yield Finding(CheckDropped(check=guards.symbols.text(relation, names)), locations.at_stack(stack))
    for node in finished.nodes:
        for dim, size in _squeezed(node):
            if size.free_symbols - known:
                yield Finding(CheckDropped(check=f"shape[{dim}] != 1"), locations.at_node(node), fixes=(_NAME_DIMS,))
        if qualified_name(node.target) in TENSOR_CHECKS and written_check(locations.stack_of(node)) is None:
            message = node.args[1] if len(node.args) > 1 else ""
            yield Finding(CheckDropped(check=str(message) or "a tensor is true"), locations.at_node(node))


def _squeezed(node: torch.fx.Node) -> Iterator[tuple[int, sympy.Basic]]:
    """The dims, with their sizes, that a squeeze drops where they are 1, and that the graph keeps."""
    if node.target not in SQUEEZES:
        return
    value, *dims = map(_value, node.args)
    if isinstance(value, torch.Tensor):
        named = range(value.dim()) if not dims else dims if isinstance(dims[0], int) else dims[0]
        for dim in named if value.dim() else ():
            if isinstance(size := value.shape[dim], torch.SymInt):
                yield dim % value.dim(), expression_of(size)


def _holds_always(relation: sympy.Basic) -> bool:
    """Whether `relation` says that a multiple of a size is divisible by that size, as in `(4*u0 + 24) % (u0 + 6) == 0`."""
    if not isinstance(relation, sympy.Eq) or relation.rhs != 0 or len(relation.lhs.args) != 2 or "Mod" not in type(relation.lhs).__name__:
        return False
    whole, factor = relation.lhs.args
    ratio = sympy.cancel(whole / factor)
    return bool(ratio.is_polynomial() and all(each.is_Integer for each in ratio.as_coefficients_dict().values()))


class _Slices:
    """The sizes of slices for which torch makes separate symbols, as for `w[:n]` where `w` has 4 rows.

    Args:
        nodes: The operators of the graph.
    """

    def __init__(self, nodes: Iterable[torch.fx.Node]) -> None:
        self._sizes: dict[sympy.Basic, list[sympy.Basic]] = {}
        for node in nodes:
            value = node.meta.get("val")
            if node.target is not _ATEN.slice.Tensor or not isinstance(value, torch.Tensor):
                continue
            given = list(map(_value, node.args))
            whole, dim, start, end = [*given, *[0, None, None][len(given) - 1 :]][:4]
            size = value.shape[dim]
            if isinstance(size, torch.SymInt) and expression_of(size).is_Symbol and len(given) < 5:
                ends = whole.shape[dim], 0 if start is None else start, whole.shape[dim] if end is None else end
                self._sizes[expression_of(size)] = [sympy.Integer(each) if isinstance(each, int) else expression_of(each) for each in ends]

    def imply(self, relation: sympy.Basic) -> bool:
        """Whether `relation` holds for each of many sizes of the dims that the slices are cut by."""
        if not relation.free_symbols & self._sizes.keys():
            return False
        free = {symbol for each in (relation, *itertools.chain(*self._sizes.values())) for symbol in each.free_symbols} - self._sizes.keys()
        ordered = sorted(free, key=str)
        return all(self._is_true(relation, {each: size + place for place, each in enumerate(ordered)}) for size in _TRIED)

    def _is_true(self, relation: sympy.Basic, sizes: dict[sympy.Basic, int]) -> bool:
        known = dict(sizes)
        for symbol, ends in self._sizes.items():
            found = [int(value) for each in ends if (value := at(each, known)) is not None and value.is_Integer]
            if len(found) < len(ends):
                return False
            whole, start, end = found
            known[symbol] = len(range(whole)[start:end])
        return bool(at(relation, known) == sympy.true)


def _value(argument: Any) -> Any:
    return argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument


def _is_range(relation: sympy.Basic) -> bool:
    """Whether `relation` compares one symbol with a number."""
    sides = relation.args if isinstance(relation, sympy.core.relational.Relational) else ()
    order = isinstance(relation, sympy.core.relational.GreaterThan | sympy.core.relational.LessThan | sympy.Gt | sympy.Lt)
    return order and all(side.is_Symbol or side.is_number for side in sides)
