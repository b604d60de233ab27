"""Rewrites a Python loop that changes each row of a tensor by itself, such as `y[i] += y[i].sin()`, as operators on all rows."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from . import blocks, iterations, schemas, scope
from .blocks import Rewrite
from .scope import Scope

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr, ast.BitXor)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def rewritten(where: Scope, statement: ast.For) -> Rewrite | None:
    """The statements of the loop on the first rows of their tensors; None if the source does not show that each row stands alone.

    The number of rows must be a size, which is never negative. Where it exceeds that of a tensor, Python raises an IndexError.
    """
    match statement:
        case ast.For(target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"), args=[rows], keywords=[]), orelse=[]):
            pass
        case _:
            return None
    body = statement.body
    if not body or not _is_size(rows) or scope.stored(body) or blocks.read_after(where, where.region(statement), counter):
        return None
    if not all(_changes_a_row(where, each, counter) for each in body) or not scope.written(body).keys() <= (where.tensors or frozenset()):
        return None
    indent = where.region(statement).offset
    limit = where.unused("rounds")
    items = [node for each in body for node in ast.walk(each) if isinstance(node, ast.Subscript) and counter in scope.loaded([node.slice])]
    replaced = [Rewrite(where.region(item), f"{where.text(item.value)}[:{limit}]") for item in items]
    code = f"{limit} = {iterations.count(where, rows)}\n" + " " * indent + blocks.body(where, body, indent, replaced)
    return Rewrite(where.region(statement), code, not blocks.changes_others(where, body))


def _is_size(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[_], keywords=[]):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant(value=int())):
            return True
        case ast.Call(func=ast.Attribute(attr="size"), args=[ast.Constant(value=int())], keywords=[]):
            return True
    return False


def _changes_a_row(where: Scope, statement: ast.stmt, counter: str) -> bool:
    """Whether `statement` sets row `counter` of a tensor to what its elements alone decide."""
    match statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            return _is_elementwise(where, value, target, counter) and _is_row(target, target, counter)
        case ast.AugAssign(target=ast.Subscript() as target, op=operator, value=value):
            return isinstance(operator, _OPERATORS) and _is_elementwise(where, value, target, counter) and _is_row(target, target, counter)
    return False


def _is_row(node: ast.expr, target: ast.Subscript, counter: str) -> bool:
    """Whether `node` is row `counter` of the tensor that `target` belongs to."""
    match node, target.value:
        case ast.Subscript(value=ast.Name(id=owner), slice=ast.Name(id=number)), ast.Name(id=written):
            return owner == written and number == counter
    return False


def _is_elementwise(where: Scope, node: ast.expr, target: ast.Subscript, counter: str) -> bool:
    """Whether each element of `node` depends on numbers and on the element at its place in the row, and on nothing else."""

    def all_are(parts: Iterable[ast.expr]) -> bool:
        return all(_is_elementwise(where, each, target, counter) for each in parts)

    match node:
        case ast.Constant(value=value):
            return isinstance(value, int | float)
        case ast.Name(id=name):
            return name in where.numbers and name != counter
        case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=operand):
            return all_are([operand])
        case ast.BinOp(left=left, op=operator, right=right):
            return isinstance(operator, _OPERATORS) and all_are([left, right])
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return isinstance(operator, _COMPARISONS) and all_are([left, right])
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args, keywords=keywords):
            tensors = args if isinstance(owner, ast.Name) and owner.id == where.torch else [owner, *args]
            constant = all(each.arg is not None and isinstance(each.value, ast.Constant) for each in keywords)
            return constant and schemas.is_elementwise(name) and all_are(tensors)
    return _is_row(node, target, counter)
