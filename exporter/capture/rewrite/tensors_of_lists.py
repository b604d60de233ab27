"""Rewrites calls that make one tensor of a Python list as operators on a tensor whose first dim counts the items of the list."""

from __future__ import annotations

import ast
from typing import TypeGuard

from onnxplain.source import syntax

from . import iterations, scope
from .blocks import Rewrite
from .scope import Scope

_JOINS = ("cat", "concat", "concatenate")


def makes_tensor(node: ast.AST, where: Scope) -> TypeGuard[ast.Call]:
    """Whether it is a call such as torch.stack, or Python's `sum`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=where.torch), attr=name), args=[_, *_]):
            return name in ("stack", "hstack", "vstack", *_JOINS)
        case ast.Call(func=ast.Name(id="sum"), args=[_], keywords=[]):
            return "sum" not in where.locals
    return False


def joins(node: ast.AST, where: Scope) -> TypeGuard[ast.Call]:
    """Whether it is a call of torch.cat."""
    return makes_tensor(node, where) and isinstance(node.func, ast.Attribute) and node.func.attr in _JOINS


def with_last(where: Scope, name: str, last: str, call: ast.Call) -> str | None:
    """As `as_tensor`, for a list that also has the item `last`, whose shape may differ from that of the others."""
    all_others, alone = as_tensor(name, call), as_tensor(f"{last}.unsqueeze(0)", call)
    if all_others is None or alone is None:
        return None
    if isinstance(call.func, ast.Name):
        return f"({all_others} + {alone})"
    dims = [*call.args[1:], *(each.value for each in call.keywords)]
    name_of = syntax.last_name(call.func)
    dim = "-1" if name_of == "hstack" else where.text(dims[0]) if dims else "0"
    return f"{where.torch}.cat([{all_others}, {alone}], {dim})"


def as_tensor(name: str, call: ast.Call) -> str | None:
    """What a call of `makes_tensor` makes of a list, from the tensor `name` that holds the items; None if its dim is not known."""
    dims = [*call.args[1:], *(each.value for each in call.keywords if each.arg in ("dim", "axis"))]
    if len(dims) > 1 or len(call.args) - 1 + len(call.keywords) != len(dims):
        return None
    try:
        dim = ast.literal_eval(dims[0]) if dims else 0
    except ValueError:
        return None
    match call.func:
        case _ if type(dim) is not int:
            return None
        case ast.Name():
            return f"{name}.sum(0)"
        case ast.Attribute(attr="stack"):
            return f"{name}.movedim(0, {dim})" if dim else name
        case ast.Attribute(attr="vstack"):
            return f"{name}.flatten(0, {name}.dim() - 2)"
        case ast.Attribute(attr="hstack"):
            return f"{name}.movedim(0, -2).flatten(-2)"
    first = dim if dim >= 0 else dim - 1
    moved = f"{name}.movedim(0, {first})" if dim else name
    return f"{moved}.flatten({first}, {first + 1})"


def of_rows(where: Scope, call: ast.Call) -> Rewrite | None:
    """A call that makes a tensor of the rows of another one, as in `torch.stack(list(x))`, without the list."""
    if not makes_tensor(call, where):
        return None
    match rows := scope.listed(call.args[0]):
        case ast.Call(func=ast.Attribute(value=ast.Name(id=where.torch), attr="unbind"), args=[rows], keywords=[]):
            pass
        case ast.Call(func=ast.Attribute(value=rows, attr="unbind"), args=[] | [ast.Constant(value=0)], keywords=[]):
            pass
        case ast.Call(func=ast.Attribute(value=ast.Name(id=where.torch), attr="unbind"), args=[rows, ast.Constant(value=0)], keywords=[]):
            pass
    if not isinstance(rows, ast.Name | ast.Attribute | ast.Subscript | ast.Call) or not where.is_tensor(rows):
        return None
    # NOTE: the tensor must not share its data with the rows.
    copied = where.text(rows) + ("" if isinstance(call.func, ast.Name) else ".clone()")
    code = as_tensor(copied, call)
    return None if code is None else Rewrite(where.region(call), code)


def of_numbers(where: Scope, node: ast.expr) -> Rewrite | None:
    """A tensor of a `range`, or an index by one, as in `torch.tensor(range(n))` and `x[:, list(range(n))]`, with torch.arange."""
    options = ""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=where.torch), attr="tensor" | "as_tensor" | "LongTensor"), args=[numbers]):
            options = "".join(f", {each.arg}={where.text(each.value)}" for each in node.keywords)
            place: ast.expr = node
        case _ if _is_index(where, node):
            numbers = place = node
        case _:
            return None
    code = _arange(where, numbers, options)
    return None if code is None else Rewrite(where.region(place), code)


def _is_index(where: Scope, node: ast.expr) -> bool:
    """Whether `node` is an index or a part of one, or the value of a variable that is only that."""
    nodes = list(ast.walk(where.function))
    indices = [each.slice for each in nodes if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load)]
    parts = {id(part) for each in indices for part in (each, *(each.elts if isinstance(each, ast.Tuple) else ()))}
    if id(node) in parts:
        return True
    made = next((each for each in nodes if isinstance(each, ast.Assign) and each.value is node), None)
    match made:
        case ast.Assign(targets=[ast.Name(id=name) as target]):
            uses = [each for each in nodes if isinstance(each, ast.Name) and each.id == name and each is not target]
            return bool(uses) and name in where.locals and all(id(use) in parts for use in uses)
    return False


def _arange(where: Scope, numbers: ast.expr, options: str) -> str | None:
    match scope.listed(numbers):
        case ast.Call(func=ast.Name(id="range"), args=[*bounds], keywords=[]) if not any(isinstance(each, ast.Starred) for each in bounds):
            return f"{where.torch}.arange({', '.join(iterations.count(where, each) for each in bounds)}{options})"
        case ast.Call(func=ast.Name(id="reversed"), args=[inner], keywords=[]):
            pass
        case ast.Subscript(
            value=inner, slice=ast.Slice(lower=None, upper=None, step=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)))
        ):
            pass
        case ast.ListComp(elt=ast.Name(id=item), generators=[ast.comprehension(target=ast.Name(id=name), iter=inner, ifs=[])]) if (
            item == name
        ):
            return _arange(where, inner, options)
        case _:
            return None
    code = _arange(where, inner, options)
    return None if code is None else f"{code}.flip(0)"
