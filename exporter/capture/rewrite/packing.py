"""Rewrites the lengths of packed sequences, which must stay a tensor in a graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxplain.diagnostics import Confidence, Edit, Fix, Location
from onnxplain.source import locations, syntax

PACKERS = frozenset({"pack_padded_sequence", "pack_sequence"})


def call_at(place: Location) -> ast.Call | None:
    """The call that packs sequences at `place`."""
    if place.region is None:
        return None
    calls = [node for node in syntax.around(place.file, place.region) if isinstance(node, ast.Call)]
    return next((each for each in calls if syntax.last_name(each.func) in PACKERS), None)


def calls_in(place: Location) -> list[ast.Call]:
    """The calls that pack sequences in the function around `place`."""
    function = None if place.region is None else syntax.innermost(place.file, place.region, ast.FunctionDef)
    return [] if function is None else list(_calls(function, *PACKERS))


def fixes(place: Location) -> list[Fix]:
    """The fix that hands lengths to `pack_padded_sequence` as a tensor, where the line at `place` makes Python numbers of them."""
    function = None if place.region is None else syntax.innermost(place.file, place.region, ast.FunctionDef)
    if function is None or place.region is None or not locations.is_users(place.file):
        return []
    for call in _calls(function, "pack_padded_sequence"):
        given = call.args[1] if len(call.args) > 1 else next((each.value for each in call.keywords if each.arg == "lengths"), None)
        value = _assigned(function, given) if isinstance(given, ast.Name) else given
        tensor = None if value is None else _as_tensor(place.file, value)
        if value is None or tensor is None:
            continue
        region = syntax.region(place.file, value)
        if syntax.covers(region, place.region) or syntax.covers(syntax.region(place.file, call), place.region):
            return [Fix("Hand the lengths on as a tensor.", Confidence.SAFE, edits=(Edit(place.file, region, tensor),))]
    return []


def _calls(function: ast.FunctionDef, *names: str) -> Iterator[ast.Call]:
    return (node for node in ast.walk(function) if isinstance(node, ast.Call) and syntax.last_name(node.func) in names)


def _assigned(function: ast.FunctionDef, name: ast.Name) -> ast.expr | None:
    """What the only assignment of a name says, if nothing else reads it."""
    values = [
        statement.value
        for statement in ast.walk(function)
        if isinstance(statement, ast.Assign) and [each.id for each in statement.targets if isinstance(each, ast.Name)] == [name.id]
    ]
    if len(values) != 1:
        return None
    # NOTE: it may make the numbers of the tensor that had the name before.
    own = {id(node) for node in ast.walk(values[0])}
    later = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name.id and id(each) not in own]
    before = [each for each in later if (each.lineno, each.col_offset) < (values[0].lineno, values[0].col_offset)]
    return values[0] if len(later) - len(before) == 1 else None


def _as_tensor(file: str, lengths: ast.expr) -> str | None:
    """The text of the tensor, on the CPU, of whose elements `lengths` makes Python numbers; None if it does not."""
    match lengths:
        case ast.Call(func=ast.Attribute(value=tensor, attr="tolist" | "numpy"), args=[], keywords=[]):
            inner = _as_tensor(file, tensor)
            return _on_cpu(file, tensor) if inner is None else inner
        case ast.Call(func=ast.Name(id="list"), args=[tensor], keywords=[]):
            return _on_cpu(file, tensor)
        case ast.ListComp(
            elt=ast.Call(func=ast.Name(id="int"), args=[ast.Name(id=element)], keywords=[])
            | ast.Call(func=ast.Attribute(value=ast.Name(id=element), attr="item"), args=[], keywords=[]),
            generators=[ast.comprehension(target=ast.Name(id=name), iter=tensor, ifs=[], is_async=0)],
        ) if element == name:
            return _on_cpu(file, tensor)
    return None


def _on_cpu(file: str, tensor: ast.expr) -> str:
    match tensor:
        case ast.Call(func=ast.Attribute(attr="cpu"), args=[], keywords=[]):
            return syntax.text(file, tensor)
    return f"{syntax.text(file, tensor)}.cpu()"
