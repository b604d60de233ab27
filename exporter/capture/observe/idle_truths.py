"""Tests of sizes that need no answer of the example's, which would fix the sizes.

Another operand may decide, as in `length > 1 and mask is None and causal` where `causal` is False. Or the code says what holds in a trace,
which is for all sizes, as in `if not torch.jit.is_tracing() and height == width`.
"""

from __future__ import annotations

import ast
import collections
import itertools
import types
from collections.abc import Callable, Iterator

import torch

from onnxplain.source import locations, syntax
from onnxplain.torch_internals import python_frames

from . import size_values

_TRACING = "is_tracing"
_HARMLESS = frozenset({"dim", "len", "numel", "size", _TRACING})
"""What may be called within such a test: it changes nothing."""


def answers() -> Callable[[types.FrameType], bool | None]:
    """Tells the frame that asks the truth of an operand in such a test; None for other tests.

    Where another operand decides, it is the truth that makes Python go on to it. Without an answer, torch would ask the example, and the
    graph would be right only for the sizes with the same truth.
    """
    tests_in = python_frames.once_per_instruction(lambda frame: list(_pure_tests(frame)))

    def answer(frame: types.FrameType) -> bool | None:
        for test, is_for_traces in tests_in(frame):
            if _is_decided(test, frame):
                return isinstance(test.op, ast.And)
            if is_for_traces:
                return isinstance(test.op, ast.Or)
        return None

    return answer


def _pure_tests(frame: types.FrameType) -> Iterator[tuple[ast.BoolOp, bool]]:
    """The `and` and `or` in which a frame asks, innermost first, of operands that Python may compute or not.

    Each comes with whether it decides a branch, and how if the code is traced.
    """
    place = None if locations.is_internal_code(frame.f_code) else locations.location(*python_frames.entry_of(frame))
    # NOTE: Python 3.10 tells only the line.
    if place is None or place.region is None or place.region.column is None:
        return
    nodes = syntax.around(place.file, place.region)
    owners = {test: owner for owner, test in itertools.pairwise(nodes)}
    for test in reversed(nodes):
        if isinstance(test, ast.BoolOp) and all(map(_is_pure, test.values)):
            outermost: ast.AST = test
            while isinstance(owners.get(outermost), ast.BoolOp):
                outermost = owners[outermost]
            owner = owners.get(outermost)
            decides = isinstance(owner, ast.If | ast.IfExp) and owner.test is outermost
            yield test, decides and _asks_whether_traced(test)


def _asks_whether_traced(test: ast.BoolOp) -> bool:
    """Whether a trace alone decides `test`: by `is_tracing()` in an `or`, or by `not is_tracing()` in an `and`.

    The others are comparisons, of which Python asks nothing but their truth.
    """
    is_and, asked = isinstance(test.op, ast.And), False
    for operand in test.values:
        inverted = isinstance(operand, ast.UnaryOp)
        call = operand.operand if isinstance(operand, ast.UnaryOp) else operand
        if isinstance(call, ast.Call):
            asked = asked or inverted is is_and
        elif inverted or any(isinstance(node, ast.Tuple | ast.List) for node in ast.walk(operand)):
            return False
    return asked


def _is_pure(operand: ast.expr) -> bool:
    """Whether `operand` is True or False for whatever numbers it compares, and nothing else happens."""
    match operand:
        case ast.Call(func=function):
            return syntax.last_name(function) == _TRACING
        case ast.BoolOp(values=operands):
            return all(map(_is_pure, operands))
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _is_pure(inner)
        case ast.Compare() | ast.Name() | ast.Attribute():
            return all(map(_is_harmless, ast.walk(operand)))
    return False


def _is_harmless(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return syntax.last_name(node.func) in _HARMLESS
    return not isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda | ast.IfExp | ast.comprehension)


def _is_decided(test: ast.BoolOp, frame: types.FrameType) -> bool:
    """Whether an operand alone decides `test`, and the others are True or False."""
    variables = collections.ChainMap(dict(python_frames.variables(frame)), frame.f_globals)
    values = [size_values.of(operand, variables) for operand in test.values]
    decisive = isinstance(test.op, ast.Or)
    compared = (ast.Compare, ast.BoolOp, ast.UnaryOp)
    return any(value is decisive for value in values) and all(
        type(value) in (bool, torch.SymBool) or isinstance(operand, compared) for operand, value in zip(test.values, values, strict=True)
    )
