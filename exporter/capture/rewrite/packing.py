"""Rewrites a recurrent layer on a packed sequence as one on the padded batch, with a mask."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from onnxplain.diagnostics import Edit, Location
from onnxplain.source import locations, syntax

from . import scope as scopes

PACKERS = frozenset({"pack_padded_sequence", "pack_sequence"})


@dataclasses.dataclass(frozen=True)
class _Packed:
    """A call that packs a padded batch.

    Attributes:
        call: The call.
        name: The variable that holds the packed sequence.
        batch: The text of the padded batch.
        lengths: The text of the tensor of lengths.
        batch_first: Whether the batch is the first dim.
    """

    call: ast.Call
    name: str
    batch: str
    lengths: str
    batch_first: bool


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


def edits(place: Location) -> tuple[Edit, ...]:
    """The edits that run the layers on the padded batch in the function around `place`, and mask their results; none if it is not plain."""
    function = None if place.region is None else syntax.innermost(place.file, place.region, ast.FunctionDef)
    torch = syntax.name_of_torch(place.file)
    if function is None or torch is None or not locations.is_users(place.file):
        return ()
    packed = [each for statement in ast.walk(function) if (each := _packed(place.file, statement)) is not None]
    if len(packed) != 1 or len(list(_calls(function, *PACKERS))) != 1:
        return ()
    (given,) = packed
    states = list(_state(place.file, function, given, torch))
    paddings = list(_paddings(place.file, function, given, torch))
    unpacking = len(list(_calls(function, "pad_packed_sequence")))
    if len(paddings) != unpacking or not (states or paddings):
        return ()
    return (Edit(place.file, syntax.region(place.file, given.call), given.batch), *states, *paddings)


def _calls(function: ast.FunctionDef, *names: str) -> Iterator[ast.Call]:
    return (node for node in ast.walk(function) if isinstance(node, ast.Call) and syntax.last_name(node.func) in names)


def _packed(file: str, statement: ast.AST) -> _Packed | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(args=[batch, lengths, *rest], keywords=keywords) as call):
            if syntax.last_name(call.func) != "pack_padded_sequence" or rest or not isinstance(batch, ast.Name):
                return None
            first = next((each.value for each in keywords if each.arg == "batch_first"), None)
            return _Packed(call, name, batch.id, _tensor(file, lengths), isinstance(first, ast.Constant) and first.value is True)
    return None


def _tensor(file: str, lengths: ast.expr) -> str:
    """The text of `lengths` without its copy on the CPU, or as a list, which only a packed sequence needs."""
    match lengths:
        case ast.Call(func=ast.Attribute(value=inner, attr="cpu" | "tolist"), args=[], keywords=[]):
            return _tensor(file, inner)
    return syntax.text(file, lengths)


def _paddings(file: str, function: ast.FunctionDef, packed: _Packed, torch: str) -> Iterator[Edit]:
    """The edits that mask the results instead of unpacking them."""
    for call in _calls(function, "pad_packed_sequence"):
        match call.args:
            case [ast.Name(id=out)] if {each.arg for each in call.keywords} <= {"batch_first"}:
                steps = f"{torch}.arange({out}.shape[{int(packed.batch_first)}], device={out}.device)"
                mask = f"({steps} < {packed.lengths}[:, None])" if packed.batch_first else f"({steps}[:, None] < {packed.lengths})"
                yield Edit(file, syntax.region(file, call), f"({out} * {mask}[..., None], {packed.lengths})")


def _state(file: str, function: ast.FunctionDef, packed: _Packed, torch: str) -> Iterator[Edit]:
    """The edit that takes the last state from the last step of each sequence, if the function uses the state."""
    for statement in ast.walk(function):
        match statement:
            case ast.Assign(
                targets=[ast.Tuple(elts=[ast.Name(id=out), ast.Name(id=hidden) | ast.Tuple(elts=[ast.Name(id=hidden), ast.Name(id="_")])])],
                value=ast.Call(args=[ast.Name(id=packed.name)]) as call,
            ) if hidden in scopes.loaded(function.body):
                region = syntax.region(file, statement)
                out = "steps" if out == "_" else out
                rows = f"{torch}.arange({out}.shape[{int(not packed.batch_first)}], device={out}.device)"
                index = f"{rows}, {packed.lengths} - 1" if packed.batch_first else f"{packed.lengths} - 1, {rows}"
                indent = " " * region.offset
                code = f"{out}, _ = {syntax.text(file, call)}\n{indent}{hidden} = {out}[{index}].unsqueeze(0)"
                yield Edit(file, region, code)
