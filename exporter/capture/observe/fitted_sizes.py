"""Branches that pad a tensor to a size or cut it: `if n < 8: x = F.pad(x, (0, 8 - n))`, `elif n > 8: x = x[:, :8]`.

A negative amount cuts, so the way that pads is right for all sizes.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import types
from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch

from onnxplain.source import locations, syntax
from onnxplain.torch_internals import python_frames
from onnxplain.torch_internals.symbolic_expressions import expression_of

from . import size_limits, size_values
from .idle_branches import limits_of, pads_of, size_expression


@dataclasses.dataclass(frozen=True)
class _Fitting:
    """A branch of which one way pads and the other cuts.

    Attributes:
        pads: What the way that pads assigns: variables and their values.
        cuts: What the other way assigns.
        padding: The test behind which the way that pads is; None if it is the `else`.
        cutting: The test behind which the other way is; None if it is the `else`.
        answer: The truth of the asked test with which Python pads.
    """

    pads: Mapping[str, ast.expr]
    cuts: Mapping[str, ast.expr]
    padding: ast.expr | None
    cutting: ast.expr | None
    answer: bool


class FittedSizes:
    """Tells the frames of a capture to pad. Otherwise torch would ask the example whether to pad or to cut."""

    def __init__(self) -> None:
        self._asked = python_frames.once_per_instruction(_asked)

    def truth(self, frame: types.FrameType) -> bool | None:
        """The truth of the test of such a branch in `frame` with which Python pads; None for other tests."""
        if (fitting := self._asked(frame)) is None:
            return None
        variables = collections.ChainMap({}, dict(python_frames.variables(frame)), frame.f_globals)
        return fitting.answer if _is_right(fitting, variables) else None


def _asked(frame: types.FrameType) -> _Fitting | None:
    place = None if locations.is_internal_code(frame.f_code) else locations.location(*python_frames.entry_of(frame))
    # NOTE: Python 3.10 tells only the line.
    if place is None or place.region is None or place.region.column is None:
        return None
    nodes = syntax.around(place.file, place.region)
    owner = next((node for node in reversed(nodes) if isinstance(node, ast.If)), None)
    function = next((node for node in reversed(nodes) if isinstance(node, ast.FunctionDef)), None)
    if owner is None or function is None or not isinstance(owner.test, ast.Compare):
        return None
    if owner is not nodes[-1] and not any(node is owner.test for node in nodes):
        return None
    first = next((node for node in ast.walk(function) if isinstance(node, ast.If) and node.orelse == [owner]), owner)
    test, other = None, first.orelse
    if len(other) == 1 and isinstance(second := other[0], ast.If) and not second.orelse:
        test, other = second.test, second.body
    ways = _assigned(first.body), _assigned(other)
    for (pads, cuts), pads_first in ((ways, True), (ways[::-1], False)):
        if pads and pads.keys() == cuts.keys() and all(map(_is_pad, pads.values())) and not any(map(_is_pad, cuts.values())):
            padding, cutting = (first.test, test) if pads_first else (test, first.test)
            return _Fitting(pads, cuts, padding, cutting, answer=pads_first if owner is first else not pads_first)
    return None


def _assigned(body: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """What statements assign, if each sets another variable to a copy of it, and reads none that is set before; else nothing."""
    found: dict[str, ast.expr] = {}
    for step in body:
        match step:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[ast.Name(id=tensor), *_]) as value):
                found[name] = value
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript(value=ast.Name(id=tensor)) as value):
                found[name] = value
            case _:
                return {}
        read = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        if tensor != name or read & found.keys() != {name}:
            return {}
    return found if len(found) == len(body) else {}


def _is_pad(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and syntax.last_name(value.func) == "pad"


def _is_right(fitting: _Fitting, variables: Mapping[str, Any]) -> bool:
    """Whether to pad does what the branch does, for all sizes."""
    amounts: set[sympy.Basic] = set()
    for name, pad in fitting.pads.items():
        tensor, given, limits = variables.get(name), pads_of(pad, variables), limits_of(fitting.cuts[name], variables)
        if given is None or limits is None or not isinstance(tensor, torch.Tensor) or len(given) > 2 * tensor.dim():
            return False
        ends = {tensor.dim() - 1 - place: end for place, end in enumerate(given[1::2])}
        others = (end for dim, end in ends.items() if dim not in limits)
        if any(size_expression(each) != 0 for each in (*given[::2], *others)):
            return False
        added = [(limit - tensor.shape[dim], ends.get(dim, 0)) for dim, limit in limits.items()]
        if not all(_is_equal(one, other) for one, other in added):
            return False
        amounts.update(size_expression(end) for _, end in added)
    return len(amounts) == 1 and _tests_fit(fitting, amounts.pop(), variables)


def _is_equal(one: int | torch.SymInt, other: int | torch.SymInt) -> bool:
    difference = sympy.expand(size_expression(one) - size_expression(other))
    # NOTE: two dims of one name have two symbols at first. That they are equal is a guard then.
    are_two = len(difference.free_symbols) == 2 and difference.as_coeff_Add()[0] == 0
    return bool(difference == 0) or (are_two and bool(one == other))


def _tests_fit(fitting: _Fitting, amount: sympy.Basic, variables: Mapping[str, Any]) -> bool:
    """Whether the way that pads is taken for no negative amount, and the other one for no positive one, and one of them for all but 0."""
    padding, cutting = (None if test is None else _relation(test, variables) for test in (fitting.padding, fitting.cutting))
    if (fitting.padding is not None and padding is None) or (fitting.cutting is not None and cutting is None):
        return False
    if padding is None:
        padding = sympy.Not(cutting)
    elif cutting is None:
        cutting = sympy.Not(padding)
    implied = (
        ((padding,), sympy.Ge(amount, 0)),
        ((cutting,), sympy.Le(amount, 0)),
        ((sympy.Not(padding), sympy.Not(cutting)), sympy.Eq(amount, 0)),
    )
    return all(size_limits.implies(known, fact) for known, fact in implied if sympy.And(*known) != sympy.false)


def _relation(test: ast.expr, variables: Mapping[str, Any]) -> sympy.Basic | None:
    value = size_values.of(test, variables)
    return expression_of(value) if isinstance(value, torch.SymBool) else None
