"""Tests of sizes that decide nothing, such as that of `length > 1 and mask is None and causal` where `causal` is False."""

from __future__ import annotations

import ast
import collections
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch

from onnxplain.source import locations, syntax
from onnxplain.torch_internals import python_frames

_SIZES = frozenset({"dim", "len", "numel", "size"})
"""What may be called within such a test: it changes nothing."""
_UNKNOWN = object()


def answers() -> Callable[[types.FrameType], bool | None]:
    """Tells the truth of such a test for the frame that asks: the one that makes Python go on. None for other tests.

    Without the answer, torch would ask the example, and the graph would be right only for the sizes with the same truth.
    """
    # NOTE: by id, because code objects hash slowly; the values keep them alive.
    known: dict[tuple[int, int], tuple[types.CodeType, tuple[ast.BoolOp, ...]]] = {}

    def answer(frame: types.FrameType) -> bool | None:
        key = id(frame.f_code), frame.f_lasti
        if key not in known:
            known[key] = frame.f_code, () if locations.is_internal_code(frame.f_code) else _pure_tests(frame)
        tests = known[key][1]
        return next((isinstance(test.op, ast.And) for test in tests if _is_decided(test, frame)), None)

    return answer


def _pure_tests(frame: types.FrameType) -> tuple[ast.BoolOp, ...]:
    """The `and` and `or` in which a frame asks, innermost first, of operands that Python may compute or not."""
    place = locations.location(*python_frames.entry_of(frame))
    # NOTE: Python 3.10 tells only the line.
    if place.region is None or place.region.column is None:
        return ()
    tests = (node for node in reversed(syntax.around(place.file, place.region)) if isinstance(node, ast.BoolOp))
    return tuple(test for test in tests if all(map(_is_pure, test.values)))


def _is_pure(operand: ast.expr) -> bool:
    """Whether `operand` is True or False for whatever numbers it compares, and nothing else happens."""
    match operand:
        case ast.BoolOp(values=operands):
            return all(map(_is_pure, operands))
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return _is_pure(inner)
        case ast.Compare() | ast.Name() | ast.Attribute():
            return all(map(_is_harmless, ast.walk(operand)))
    return False


def _is_harmless(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return syntax.last_name(node.func) in _SIZES
    return not isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.Lambda | ast.IfExp | ast.comprehension)


def _is_decided(test: ast.BoolOp, frame: types.FrameType) -> bool:
    """Whether an operand alone decides `test`, and the others are True or False."""
    variables = collections.ChainMap(dict(python_frames.variables(frame)), frame.f_globals)
    values = [_value(operand, variables) for operand in test.values]
    decisive = isinstance(test.op, ast.Or)
    compared = (ast.Compare, ast.BoolOp, ast.UnaryOp)
    return any(value is decisive for value in values) and all(
        type(value) in (bool, torch.SymBool) or isinstance(operand, compared) for operand, value in zip(test.values, values, strict=True)
    )


def _value(operand: ast.expr, variables: Mapping[str, Any]) -> Any:
    """The value of a variable or of an attribute that an object holds, of `is None`, and of `not` before these."""
    match operand:
        case ast.Name(id=name):
            return variables.get(name, _UNKNOWN)
        case ast.Attribute(value=owner, attr=name):
            holder = _value(owner, variables)
            # NOTE: what else it may be is computed by code of the model's.
            plain = inspect.getattr_static(type(holder), "__getattribute__") is object.__getattribute__
            return inspect.getattr_static(holder, name, _UNKNOWN) if plain else _UNKNOWN
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            value = _value(inner, variables)
            return not value if type(value) is bool else _UNKNOWN
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as asked], comparators=[ast.Constant(value=None)]):
            value = _value(left, variables)
            return _UNKNOWN if value is _UNKNOWN else (value is None) == isinstance(asked, ast.Is)
    return _UNKNOWN
