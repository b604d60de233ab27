"""Run-time checks of the captured program: ONNX has no operator that stops a run, so they are not in the model."""

from __future__ import annotations

import ast

import sympy
import torch

from onnxplain import syntax, where
from onnxplain.diagnostics import DiagnosticContext, Evidence, Location
from onnxplain.registry import qualified_name
from onnxplain.rules import BoundUnchecked, CheckDropped

from .guards import Guards

_TENSOR_CHECKS = frozenset({"aten::_assert_async", "aten::_assert_async.msg"})


def report(context: DiagnosticContext, guards: Guards, program: torch.export.ExportedProgram) -> None:
    """Reports the checks of numbers that depend on data, and of tensors. What only says how large a size may be is no news to anybody."""
    # NOTE: of several relations at one line the later ones mostly follow from the first.
    first: dict[Location, sympy.Basic] = {}
    for relation, stack in guards.checks():
        if not _is_range(relation) and stack[-1] not in first:
            first[stack[-1]] = relation
            context.report(CheckDropped(check=str(relation)), at=where.at_stack(stack))
    for place in dict.fromkeys(guard.stack[-1] for guard in guards.made if guard.stack and _is_range(guard.relation)):
        if (bound := _stated(place)) is not None:
            context.report(BoundUnchecked(bound=bound), at=Evidence(place))
    for node in program.graph.nodes:
        if qualified_name(node.target) in _TENSOR_CHECKS:
            message = node.args[1] if len(node.args) > 1 else ""
            context.report(CheckDropped(check=str(message) or "a tensor is true"), at=where.at_node(node))


def _stated(place: Location) -> str | None:
    """The bound that a call of `torch._check` at `place` states."""
    call = None if place.region is None else syntax.innermost(place.file, place.region, ast.Call)
    if call is None or not call.args or syntax.last_name(call.func) != "_check" or where.origin(place.file) is not where.Origin.USER:
        return None
    return syntax.text(place.file, call.args[0])


def _is_range(relation: sympy.Basic) -> bool:
    """Whether `relation` compares one symbol with a number."""
    sides = relation.args if isinstance(relation, sympy.core.relational.Relational) else ()
    order = isinstance(relation, sympy.core.relational.GreaterThan | sympy.core.relational.LessThan | sympy.Gt | sympy.Lt)
    return order and all(side.is_Symbol or side.is_number for side in sides)
