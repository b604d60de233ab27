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
    if place.region is None or not locations.is_users(place.file):
        return []
    function = syntax.innermost(place.file, place.region, ast.FunctionDef)
    statement = syntax.innermost(place.file, place.region, ast.stmt)
    if function is None or statement is None or isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return []
    owner = re.fullmatch(r"(\w+)\.shape\[\d+\]", dim)
    taken = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    visible = owner is not None and owner[1] in {each.arg for each in function.args.args} - taken
    found = []
    for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
        name = syntax.last_name(call.func)
        for number in _numbers(call, value) if name in _RESHAPES | _MAKERS else ():
            region = syntax.region(place.file, number)
            if name in _RESHAPES and not any(_numbers(call, -1)):
                advice = "Let the size follow from the others."
                found.append(Fix(advice, Confidence.SAFE, edits=(Edit(place.file, region, "-1"),)))
            elif visible and function.name == "forward":
                advice = "Use the size of the input."
                found.append(Fix(advice, Confidence.CHANGES_BEHAVIOUR, edits=(Edit(place.file, region, dim),)))
    return found


def _numbers(call: ast.Call, value: int) -> Iterator[ast.expr]:
    """The sizes among the arguments of `call` that are written as `value`."""
    for argument in call.args:
        for node in argument.elts if isinstance(argument, ast.Tuple | ast.List) else [argument]:
            if isinstance(node, ast.Constant | ast.UnaryOp) and ast.unparse(node) == str(value):
                yield node
