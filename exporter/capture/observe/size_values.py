"""The values of expressions of sizes in a frame, computed without running the model's code."""

from __future__ import annotations

import ast
import inspect
import operator
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch

UNKNOWN = object()
"""The value of an expression that may run the model's code, or that has none."""
_NUMBERS = (bool, int, float, torch.SymInt, torch.SymFloat)
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
}
_DIVIDING = (ast.Mod, ast.FloorDiv)
_COMPARING: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def of(expression: ast.expr, variables: Mapping[str, Any]) -> Any:
    """The value of `expression`: of variables, attributes that an object holds, items, shapes, sums and comparisons of numbers, `not`.

    `UNKNOWN` for everything else. Nothing asks for the truth of a symbolic number.
    """
    match expression:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return variables.get(name, UNKNOWN)
        case ast.Attribute(value=owner, attr=name):
            return _attribute(of(owner, variables), name)
        case ast.Subscript(value=owner, slice=index):
            return _item(of(owner, variables), of(index, variables))
        case ast.Call(func=ast.Attribute(value=owner, attr="size"), args=[index], keywords=[]):
            tensor = of(owner, variables)
            return _item(tensor.shape, of(index, variables)) if isinstance(tensor, torch.Tensor) else UNKNOWN
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            values = tuple(of(element, variables) for element in elements)
            return UNKNOWN if any(value is UNKNOWN for value in values) else values
        case ast.UnaryOp() | ast.BinOp() | ast.Compare():
            return _computed(expression, variables)
    return UNKNOWN


def _computed(expression: ast.UnaryOp | ast.BinOp | ast.Compare, variables: Mapping[str, Any]) -> Any:
    match expression:
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            value = of(inner, variables)
            return not value if type(value) is bool else UNKNOWN
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            value = of(inner, variables)
            return _ARITHMETIC[ast.Sub](0, value) if isinstance(value, _NUMBERS) else UNKNOWN
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as asked], comparators=[ast.Constant(value=None)]):
            value = of(left, variables)
            return UNKNOWN if value is UNKNOWN else (value is None) == isinstance(asked, ast.Is)
        case ast.Compare(left=left, ops=[asked], comparators=[right]) if type(asked) in _COMPARING:
            one, other = of(left, variables), of(right, variables)
            return _COMPARING[type(asked)](one, other) if isinstance(one, _NUMBERS) and isinstance(other, _NUMBERS) else UNKNOWN
        case ast.BinOp(left=left, op=kind, right=right) if type(kind) in _ARITHMETIC:
            one, other = of(left, variables), of(right, variables)
            # NOTE: a division by a size would make a guard.
            fails = isinstance(kind, _DIVIDING) and (type(other) is not int or other == 0)
            numbers = isinstance(one, _NUMBERS) and isinstance(other, _NUMBERS)
            return _ARITHMETIC[type(kind)](one, other) if numbers and not fails else UNKNOWN
    return UNKNOWN


def _attribute(owner: Any, name: str) -> Any:
    if isinstance(owner, torch.Tensor):
        return owner.shape if name == "shape" else UNKNOWN
    if isinstance(owner, types.ModuleType):
        return vars(owner).get(name, UNKNOWN)
    # NOTE: what else it may be is computed by code of the model's.
    plain = inspect.getattr_static(type(owner), "__getattribute__") is object.__getattribute__
    return inspect.getattr_static(owner, name, UNKNOWN) if plain else UNKNOWN


def _item(owner: Any, index: Any) -> Any:
    holds = type(owner) in (tuple, list, torch.Size) and type(index) is int and -len(owner) <= index < len(owner)
    return owner[index] if holds else UNKNOWN
