"""What to do about errors that say by their type what they are."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import cast

import torch

from onnxplain import syntax, where, written
from onnxplain.diagnostics import Confidence, Edit, Evidence, Fix, Location
from onnxplain.options import Request

from .finding import chain, fallback, graph_break_type
from .scope import fresh

IN_A_LIBRARY = Fix(
    "The test stands in a library's code: set the module up so that it is not reached (an observer or a check can often be turned off), "
    "or replace the module before the export.",
    Confidence.GUESS,
)

IN_TENSORS = Fix(
    "Compute the answer as a tensor: torch.maximum for max, torch.stack([...]).any() for any, torch.where for a choice.", Confidence.GUESS
)

GRADIENT = "x = x.requires_grad_()\n(slope,) = torch.autograd.grad(function(x), x)"

_ALIASING = "Encountered aliasing during higher order op tracing"
"""TorchDynamo's name for a branch that returns its input (torch 2.11 to 2.15)."""

_LOST_SIZE = "PendingUnbackedSymbolNotFound"
"""The name of the exception about a size that depends on data and is in no output; its class is private to torch (2.11 to 2.15)."""


def for_error(error: Exception, place: Location | None, holds: Callable[[Location, str], bool | None]) -> list[Fix]:
    """Ways out of an error of torch.export; none where it is not known.

    Args:
        error: The error.
        place: The user's line.
        holds: Tells what an expression is for the example at a place: true, false, or not known.
    """
    if any(type(each).__name__ == _LOST_SIZE for each in chain(error)):
        return [_with_positions(place, holds)]
    return _with_copies(place) if graph_break_type(error) == _ALIASING else []


def for_eager_error(error: Exception, place: Location | None) -> tuple[Fix, tuple[Location, ...]]:
    """The way out of an error of the model itself, and other places that have to do with it."""
    if re.search("device|cuda", str(error), re.IGNORECASE) and isinstance(error, RuntimeError | AssertionError):
        made = None if place is None else _made_elsewhere(place)
        advice = "Make the tensors on one device."
        if place is None or made is None:
            return Fix(advice, Confidence.GUESS, snippet="torch.zeros(size, device=x.device)"), ()
        device, parameter = made
        region = syntax.region(place.file, device)
        edits = (Edit(place.file, region, f"{parameter}.device"),)
        return Fix(advice, Confidence.GUESS, edits), (Location(place.file, region, place.function, message="the device is chosen here"),)
    return Fix("Call the model with these inputs, without an export, and mend the line; or give it other inputs.", Confidence.GUESS), ()


def for_packed_weights(request: Request) -> tuple[str, Evidence, Fix] | None:
    """Path, place and way out of the first submodule whose weights torch has packed into an object of its own, as quantization does."""
    if not isinstance(request.model, torch.nn.Module):
        return None
    for path, module in request.model.named_modules():
        if any(isinstance(value, torch.ScriptObject) for value in vars(module).values()):
            made = written.call_of(request, "quantize_dynamic", "quantize", matches=lambda call: bool(call.args))
            edits = () if made is None else made.replaced(syntax.text(made.file, cast(ast.Call, made.node).args[0]))
            advice = "Export the module as it was before it was quantized, and quantize the ONNX model (onnxruntime.quantization)."
            return path, written.at(made, request) if made else fallback(request), Fix(advice, Confidence.CHANGES_BEHAVIOUR, edits)
    return None


def _made_elsewhere(place: Location) -> tuple[ast.expr, str] | None:
    """The device that a tensor is made on in the function at `place`, on that line or for it, and a tensor parameter that has another."""
    if place.region is None or where.origin(place.file) is not where.Origin.USER:
        return None
    function = syntax.innermost(place.file, place.region, ast.FunctionDef)
    parameters = [] if function is None else [each.arg for each in function.args.args if each.arg not in ("self", "cls")]
    if function is None or not parameters:
        return None
    used = {name.id for node in syntax.around(place.file, place.region) for name in ast.walk(node) if isinstance(name, ast.Name)}
    found = []
    for statement in (node for node in ast.walk(function) if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef)):
        sets = {name.id for name in ast.walk(statement) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
        if statement.lineno == place.region.line or (sets & used and statement.lineno < place.region.line):
            found += [each.value for each in ast.walk(statement) if isinstance(each, ast.keyword) and each.arg == "device"]
    devices = {(each.lineno, each.col_offset): each for each in found if isinstance(each, ast.Constant)}
    return (next(iter(devices.values())), parameters[0]) if len(devices) == 1 else None


def _with_positions(place: Location | None, holds: Callable[[Location, str], bool | None]) -> Fix:
    """Turns the mask of an index with several tensors into positions."""
    advice = "Index with integers only: turn the mask into positions first."
    index = None if place is None or place.region is None else syntax.innermost(place.file, place.region, ast.Subscript)
    if place is not None and index is not None and where.origin(place.file) is where.Origin.USER:
        parts = index.slice.elts if isinstance(index.slice, ast.Tuple) else [index.slice]
        texts = [syntax.text(place.file, part) for part in parts]
        masks = [number for number, text in enumerate(texts) if holds(place, f"str(({text}).dtype) == 'torch.bool'")]
        if len(masks) == 1:
            edit = Edit(place.file, syntax.region(place.file, parts[masks[0]]), f"{texts[masks[0]]}.nonzero().squeeze(1)")
            return Fix(advice, Confidence.GUESS, (edit,))
    return Fix(advice, Confidence.GUESS, snippet="rows = mask.nonzero().squeeze(1)\nx[rows, columns]")


def _with_copies(place: Location | None) -> list[Fix]:
    """Copies what the branches of a torch.cond return, where that may be their input or a part of it."""
    advice = "Return a copy from the branch."
    call = None if place is None or place.region is None else syntax.innermost(place.file, place.region, ast.Call)
    if place is None or call is None or where.origin(place.file) is not where.Origin.USER:
        return [Fix(advice, Confidence.SAFE, snippet="return x.clone()")]
    edits = []
    for branch in (argument for argument in call.args if isinstance(argument, ast.Lambda)):
        text = fresh(place.file, branch.body)
        if text is not None and text != syntax.text(place.file, branch.body):
            edits.append(Edit(place.file, syntax.region(place.file, branch.body), text))
    return [Fix(advice, Confidence.SAFE, edits=tuple(edits), snippet="" if edits else "return x.clone()")]
