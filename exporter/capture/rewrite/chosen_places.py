"""Rewrites a Python loop over the places where a mask is true, such as the experts that a router chooses, as one over all places."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from onnxplain.diagnostics import Region
from onnxplain.source import syntax

from . import blocks, scope
from .blocks import Rewrite
from .scope import Scope

_PARTIAL = frozenset({"out", "inplace"})
"""Keywords by which a function changes what it is given."""
_OF_SOME = frozenset({"amax", "amin", "aminmax", "argmax", "argmin", "kthvalue", "max", "median", "min", "mode", "quantile", "topk"})
"""Functions that refuse tensors without elements."""


def rewritten(where: Scope, statement: ast.For) -> list[Rewrite] | None:
    """The loop as one over all places, in which an iteration at a place that the mask leaves out changes nothing.

    None if the source does not tell which variables an iteration changes. The iterations that are left out run as well, with tensors that
    may be empty.
    """
    place, found = statement.target, _mask(where, statement)
    if not isinstance(place, ast.Name) or statement.orelse or found is None or where.tensors is None:
        return None
    mask, before = found
    region = where.region(statement)
    changed = _changed(where, statement)
    if changed is None or blocks.read_after(where, region, place.id) or mask in scope.stored(statement.body):
        return None
    # NOTE: a place is a list of numbers then, and not a tensor: the operators of the two differ, but not what an index means.
    nodes = [node for each in statement.body for node in ast.walk(each)]
    operands = [each for node in nodes if isinstance(node, ast.BinOp) for each in (node.left, node.right)]
    exact = not any(isinstance(each, ast.Name) and each.id == place.id for each in operands)
    exact = exact and not any(isinstance(node, ast.Call) and syntax.last_name(node.func) in _OF_SOME for node in nodes)
    chosen, kept = where.unused("is_chosen"), {name: where.unused(f"{name}_before") for name in changed}
    header = f"{chosen}, {place.id} in zip({mask}.flatten() != 0, {where.torch}.ones_like({mask}).nonzero().tolist())"
    start, end = where.region(place), where.region(statement.iter)
    first, last = where.region(statement.body[0]), where.region(statement.body[-1])
    indent = "\n" + " " * first.offset
    return [
        *before,
        Rewrite(Region(start.line, start.column, end.last_line, end.end_column), header, exact),
        Rewrite(_at(first.line, first.column), "".join(f"{old} = {name}.clone(){indent}" for name, old in kept.items())),
        Rewrite(
            _at(last.last_line, last.end_column),
            "".join(f"{indent}{name} = {where.torch}.where({chosen}, {name}, {old})" for name, old in kept.items()),
        ),
    ]


def _at(line: int, column: int | None) -> Region:
    return Region(line, column, line, column)


def _mask(where: Scope, statement: ast.For) -> tuple[str, list[Rewrite]] | None:
    """The name of the mask whose places the loop takes, and what gives it that name."""
    region = where.region(statement)
    match statement.iter:
        case ast.Name(id=rows):
            uses = [node for node in ast.walk(where.function) if isinstance(node, ast.Name) and node.id == rows]
            made = [node for node in ast.walk(where.function) if isinstance(node, ast.Assign) and rows in scope.stored(node.targets)]
            # NOTE: where it is made, and the loop.
            if len(made) != 1 or len(uses) != 2 or made[0].lineno > region.line or (mask := _of_nonzero(where, made[0].value)) is None:
                return None
            return rows, [Rewrite(where.region(made[0].value), where.text(mask))]
        case called if (mask := _of_nonzero(where, called)) is not None:
            name = where.unused("mask")
            indent = " " * region.offset
            return name, [Rewrite(_at(region.line, region.column), f"{name} = {where.text(mask)}\n{indent}")]
    return None


def _of_nonzero(where: Scope, value: ast.expr) -> ast.expr | None:
    """The mask of a call of `nonzero`."""
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=where.torch), attr="nonzero"), args=[mask], keywords=[]):
            return mask
        case ast.Call(func=ast.Attribute(value=mask, attr="nonzero"), args=[], keywords=[]):
            return mask
    return None


def _changed(where: Scope, statement: ast.For) -> list[str] | None:
    """The variables by which iterations tell each other or later code something; None if there may be other ways."""
    place = scope.stored([statement.target])
    rest = list(statement.body)
    while rest and _is_head(rest[0], place):
        rest.pop(0)
    names = list(_written(rest))
    if None in names or not _is_plain(rest) or blocks.changes_others(where, statement.body):
        return None
    outer = [
        name
        for name in dict.fromkeys((*scope.stored(rest), *filter(None, names)))
        if scope.read_first(rest, name) or blocks.read_after(where, where.region(statement), name)
    ]
    return outer if outer and set(outer) <= (where.tensors or frozenset()) - place.keys() else None


def _is_head(statement: ast.stmt, place: dict[str, None]) -> bool:
    """Whether a statement at the start of an iteration only changes the loop's variable, or may leave the iteration."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Subscript()):
            return name in place
        case ast.If(body=[ast.Continue()], orelse=[]):
            return True
    return False


def _is_plain(statements: Sequence[ast.stmt]) -> bool:
    """Whether all statements set local variables or change tensors in place."""
    calls = [node for each in statements for node in ast.walk(each) if isinstance(node, ast.Call)]
    silent = not any(argument.arg in _PARTIAL or argument.arg is None for call in calls for argument in call.keywords)
    plain = [each for each in statements if not (isinstance(each, ast.Expr) and _in_place(each.value))]
    return silent and scope.is_plain(plain, items=True) and not scope.has_return(plain)


def _written(statements: Sequence[ast.stmt]) -> Iterator[str | None]:
    """The names of tensors that change in place; None for other tensors, and for parts of them."""
    for node in (each for statement in statements for each in ast.walk(statement)):
        match node:
            case ast.Call(func=ast.Attribute(value=owner)) if _in_place(node):
                yield owner.id if isinstance(owner, ast.Name) else None
            case ast.Subscript(value=owner, ctx=ast.Store()):
                yield owner.id if isinstance(owner, ast.Name) else None


def _in_place(node: ast.AST) -> bool:
    """Whether `node` is a call of a method that changes its tensor, such as `index_add_`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and blocks.is_in_place(node.func.attr)
