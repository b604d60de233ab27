"""Replaces a size that is written as a number, although it could vary."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from onnxplain.diagnostics import Confidence, Edit, Fix, Location
from onnxplain.source import locations, syntax

_RESHAPES = frozenset({"view", "reshape", "unflatten"})
_MAKERS = frozenset({"zeros", "ones", "full", "empty", "rand", "randn", "arange", "expand", "repeat", "broadcast_to", "eye"})


def fixes(place: Location, dim: str, value: int) -> list[Fix]:
    """Fixes that replace `value` on the line at `place` by an expression for the size, one for each number that may be the size.

    Args:
        place: The line.
        dim: The expression of the dim, such as `x.shape[0]`.
        value: The dim's size in the example.
    """
    found = _function_and_statement(place)
    return [] if found is None else _in_statement(place.file, *found, dim, value)


def upstream(place: Location, dim: str, value: int) -> tuple[Location, list[Fix]] | None:
    """The line before `place` that makes a tensor with the only such number, and the fixes as `fixes` has them; None if unsure."""
    found = _function_and_statement(place)
    if found is None:
        return None
    function, statement = found
    read = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    makers = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and node.lineno < statement.lineno and read & {getattr(each, "id", None) for each in node.targets}
    ]
    changed = [(maker, fixes) for maker in makers if (fixes := _in_statement(place.file, function, maker, dim, value))]
    if len(changed) != 1:
        return None
    maker, fixes = changed[0]
    return Location(place.file, syntax.region(place.file, maker.value), place.function), fixes


def _function_and_statement(place: Location) -> tuple[ast.FunctionDef, ast.stmt] | None:
    if place.region is None or not locations.is_users(place.file):
        return None
    function = syntax.innermost(place.file, place.region, ast.FunctionDef)
    statement = syntax.innermost(place.file, place.region, ast.stmt)
    if function is None or statement is None or isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return None
    return function, statement


def _in_statement(file: str, function: ast.FunctionDef, statement: ast.stmt, dim: str, value: int) -> list[Fix]:
    owner = re.fullmatch(r"(\w+)\.shape\[\d+\]", dim)
    taken = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    visible = owner is not None and owner[1] in {each.arg for each in function.args.args} - taken
    found = []
    for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
        name = syntax.last_name(call.func)
        for number in _numbers(call, value) if name in _RESHAPES | _MAKERS else ():
            region = syntax.region(file, number)
            if name in _RESHAPES and not any(_numbers(call, -1)):
                found.append(Fix("Let the size follow from the others.", Confidence.SAFE, edits=(Edit(file, region, "-1"),)))
            elif visible and function.name == "forward":
                found.append(Fix("Use the size of the input.", Confidence.CHANGES_BEHAVIOUR, edits=(Edit(file, region, dim),)))
    return found


def own_size(place: Location) -> list[Fix]:
    """The fix for a `view` at `place` that takes the size of another tensor: it takes that of its tensor instead."""
    call = None if place.region is None else syntax.innermost(place.file, place.region, ast.Call)
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=tensor), attr=name), args=[ast.Name() | ast.Subscript() as size, *_]):
            if name in _RESHAPES and tensor != syntax.name_of_torch(place.file) and locations.is_users(place.file):
                edit = Edit(place.file, syntax.region(place.file, size), f"{tensor}.shape[0]")
                return [Fix("Use the size of the tensor itself.", Confidence.GUESS, edits=(edit,))]
    return []


def _numbers(call: ast.Call, value: int) -> Iterator[ast.expr]:
    """The sizes among the arguments of `call` that are written as `value`."""
    for argument in call.args:
        for node in argument.elts if isinstance(argument, ast.Tuple | ast.List) else [argument]:
            if isinstance(node, ast.Constant | ast.UnaryOp) and ast.unparse(node) == str(value):
                yield node
