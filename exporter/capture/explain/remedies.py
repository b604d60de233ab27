"""Fixes for errors that their types identify."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import cast

import torch

from onnxplain.capture.finding import fallback, graph_break_type, headline
from onnxplain.capture.rewrite import packing
from onnxplain.capture.rewrite.scope import fresh
from onnxplain.diagnostics import Confidence, Edit, Evidence, Fix, Location, Rule, chain, message_of
from onnxplain.request import Request
from onnxplain.rules import (
    BranchesMismatch,
    CaptureFailed,
    DeviceMismatch,
    NumpyUsed,
    QuantizedWeights,
    SizeLost,
    UserCodeRaised,
)
from onnxplain.source import call_sites, locations, syntax
from onnxplain.torch_internals import dynamo, pytree, torch_frames
from onnxplain.torch_internals.modules import named_modules
from onnxplain.torch_internals.operators import OpOverload
from onnxplain.torch_internals.python_values import is_a

from . import known_causes

IN_A_LIBRARY = Fix(
    "The test is in a library's code: set the module up so that it does not reach the test (observers and checks can often be turned off), "
    "or replace the module before the export.",
    Confidence.GUESS,
)

IN_TENSORS = Fix(
    "Compute the answer as a tensor: torch.maximum for max, torch.stack([...]).any() for any, torch.where for a choice.", Confidence.GUESS
)

_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|meta)(:\d+)?")

GRADIENT = "x = x.requires_grad_()\n(slope,) = torch.autograd.grad(function(x), x)"

_ELSEWHERE = Fix(
    "Look for the error among the known causes (`onnxplain explain OXP1009`). If it is none of them, write the line with other operators, "
    "or compute its result outside the model and pass it in.",
    Confidence.GUESS,
)

_LENGTHS = Fix(
    "Hand the lengths on as a tensor, and compute them with PyTorch: torch.export sees no data, so it knows no numbers of Python or numpy "
    "that are made of it.",
    Confidence.GUESS,
    snippet="packed = pack_padded_sequence(x, lengths.clamp(1, x.shape[1]), batch_first=True)",
)

_IN_FLOAT = Fix(
    "Export the model before it is quantized, and quantize the ONNX model (onnxruntime.quantization); or quantize with "
    "torch.ao.quantization.quantize_pt2e, whose operators an export supports.",
    Confidence.CHANGES_BEHAVIOUR,
)

_IN_TORCH = Fix("Compute it with PyTorch: most functions of numpy have a counterpart of the same name.", Confidence.GUESS)


def for_error(error: Exception, place: Location | None, holds: Callable[[Location, str], bool | None]) -> tuple[Rule, Fix]:
    """The rule and the fix for an error of torch.export, which the types in its traceback identify.

    Args:
        error: The error.
        place: The user's line.
        holds: Evaluates an expression at a place for the example: true, false, or not known.
    """
    known = [value for each in chain(error) for value in torch_frames.values_on_the_way(each)]
    expression = syntax.expression_at(place) if place is not None else ""
    if any(is_a(value, OpOverload) and value.namespace == "quantized" for value in known):
        return QuantizedWeights(module=expression), _IN_FLOAT
    if any(isinstance(each, dynamo.LOST_SIZE.value) for each in chain(error)):
        return SizeLost(expression=expression), _with_positions(place, holds)
    if graph_break_type(error) == dynamo.ALIASING:
        return BranchesMismatch(problem="one returns its input or a part of it"), _with_copies(place)
    if any(value is torch.Tensor.numpy or value is torch.Tensor.__array__ for value in known):
        return for_numpy(place)
    return CaptureFailed(error=graph_break_type(error) or headline(error)), known_causes.fix(error, place) or _ELSEWHERE


def for_numpy(place: Location | None) -> tuple[Rule, Fix]:
    """The rule and the fix for a line that makes a numpy array of a tensor."""
    if place is None:
        return NumpyUsed(expression=""), _IN_TORCH
    return NumpyUsed(expression=syntax.expression_at(place)), next(iter(packing.fixes(place)), _IN_TORCH)


def for_packed_sequence(error: Exception, place: Location | None) -> tuple[Location | None, Sequence[Fix]] | None:
    """The place of the call that packs a sequence, with the fixes, if `error` comes from a packed sequence.

    Args:
        error: The error.
        place: The user's line that raised it.
    """
    if place is None:
        return None
    call = packing.call_at(place)
    if call is None:
        values = (value for each in chain(error) for value in torch_frames.values_on_the_way(each))
        if not any(is_a(value, torch.nn.utils.rnn.PackedSequence) for value in values):
            return None
        # NOTE: a line that only uses the packed sequence may be in another function.
        call = next(iter(packing.calls_in(place)), None)
    at = place if call is None else dataclasses.replace(place, region=syntax.region(place.file, call))
    return at, [*packing.fixes(at), _LENGTHS]


def for_eager_error(
    error: Exception, at: Evidence, request: Request, holds: Callable[[Location, str], bool | None]
) -> tuple[Rule, Fix, Evidence]:
    """The rule, the fix and the place for an error of the model itself, which it raised at `at`. `holds` as for `for_error`."""
    place = at.location
    # NOTE: a TypeError says that numpy does not take a tensor on a GPU.
    if re.search("device|cuda|nvidia", message_of(error), re.IGNORECASE) and isinstance(error, RuntimeError | AssertionError | TypeError):
        made = None if place is None else _made_elsewhere(place)
        advice, rule = "Make the tensors on one device.", DeviceMismatch(error=headline(error))
        handed_on = _handed_on(at.stack) if made is None else None
        if handed_on is not None:
            outer, device, parameters = handed_on
            at = dataclasses.replace(
                at, location=outer, related=(*at.related, *([place.saying("fails here")] if place is not None else []))
            )
            place = outer
        elif place is None or made is None:
            return rule, Fix(advice, Confidence.GUESS, snippet="torch.zeros(size, device=x.device)"), at
        else:
            device, parameters = made
        region = syntax.region(place.file, device)
        tensor = next((each for each in parameters if holds(place, f"hasattr({each}, 'device')")), None)
        known = (str(leaf.device) for leaf in pytree.tree_leaves((request.args, dict(request.kwargs))) if is_a(leaf, torch.Tensor))
        edits = (Edit(place.file, region, f"{tensor}.device" if tensor else repr(next(known, "cpu"))),)
        chosen = Location(place.file, region, place.function, message="the device is chosen here")
        return rule, Fix(advice, Confidence.GUESS, edits), dataclasses.replace(at, related=(*at.related, chosen))
    advice = "Call the model with these inputs without an export, and correct the line; or pass other inputs."
    return UserCodeRaised(error=headline(error)), Fix(advice, Confidence.GUESS), at


def for_packed_weights(request: Request) -> tuple[str, Evidence, Fix] | None:
    """Path, place and fix for the first submodule whose weights torch has packed into a special object, as quantization does."""
    if not isinstance(request.model, torch.nn.Module):
        return None
    for path, module in named_modules(request.model):
        packed = any(is_a(value, torch.ScriptObject) for value in vars(module).values())
        quantized = type(module).__module__.startswith(("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized"))
        # NOTE: the modules that quantize and dequantize activations have no weights.
        if packed or (quantized and hasattr(module, "weight")):
            made = call_sites.call_of(request, "quantize_dynamic", "quantize", matches=lambda call: bool(call.args))
            edits = () if made is None else made.replaced(syntax.text(made.file, cast(ast.Call, made.node).args[0]))
            advice = "Export the module before it is quantized, and quantize the ONNX model (onnxruntime.quantization)."
            return path, call_sites.at(made, request) if made else fallback(request), Fix(advice, Confidence.CHANGES_BEHAVIOUR, edits)
    return None


def _handed_on(stack: Sequence[Location]) -> tuple[Location, ast.expr, list[str]] | None:
    """The innermost call in `stack` that hands on a device as text: its place, the text, and the parameters of the function around it."""
    for frame in reversed(stack):
        call = None if frame.region is None or not locations.is_users(frame.file) else syntax.innermost(frame.file, frame.region, ast.Call)
        if call is None or frame.region is None:
            continue
        given = [*call.args, *(each.value for each in call.keywords)]
        devices = [each for each in given if isinstance(each, ast.Constant) and _DEVICE.fullmatch(str(each.value))]
        if len(devices) == 1:
            function = syntax.innermost(frame.file, frame.region, ast.FunctionDef)
            names = [] if function is None else [each.arg for each in function.args.args if each.arg not in ("self", "cls")]
            return frame, devices[0], names
    return None


def _made_elsewhere(place: Location) -> tuple[ast.expr, list[str]] | None:
    """The device on which the function at `place` makes a tensor that the line uses, and the function's parameters."""
    if place.region is None or not locations.is_users(place.file):
        return None
    function = syntax.innermost(place.file, place.region, ast.FunctionDef)
    line = syntax.innermost(place.file, place.region, ast.stmt)
    if function is None or line is None:
        return None
    parameters = [each.arg for each in function.args.args if each.arg not in ("self", "cls")]
    used = {name.id for name in ast.walk(line) if isinstance(name, ast.Name)}
    found = []
    for statement in (node for node in ast.walk(function) if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef)):
        sets = {name.id for name in ast.walk(statement) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
        if statement.lineno == place.region.line or (sets & used and statement.lineno < place.region.line):
            found += [each.value for each in ast.walk(statement) if isinstance(each, ast.keyword) and each.arg == "device"]
    devices = {(each.lineno, each.col_offset): each for each in found if isinstance(each, ast.Constant)}
    return (next(iter(devices.values())), parameters) if len(devices) == 1 else None


def _with_positions(place: Location | None, holds: Callable[[Location, str], bool | None]) -> Fix:
    """The fix that turns the mask of an index with several tensors into positions."""
    advice = "Index with integers only: turn the mask into positions first."
    index = None if place is None or place.region is None else syntax.innermost(place.file, place.region, ast.Subscript)
    if place is not None and index is not None and locations.is_users(place.file):
        parts = index.slice.elts if isinstance(index.slice, ast.Tuple) else [index.slice]
        texts = [syntax.text(place.file, part) for part in parts]
        masks = [number for number, text in enumerate(texts) if holds(place, f"str(({text}).dtype) == 'torch.bool'")]
        if len(masks) == 1:
            edit = Edit(place.file, syntax.region(place.file, parts[masks[0]]), f"{texts[masks[0]]}.nonzero().squeeze(1)")
            return Fix(advice, Confidence.GUESS, (edit,))
    return Fix(advice, Confidence.GUESS, snippet="rows = mask.nonzero().squeeze(1)\nx[rows, columns]")


def _with_copies(place: Location | None) -> Fix:
    """The fix that copies the results of a torch.cond's branches that may be their input or a part of it."""
    advice = "Return a copy from the branch."
    call = None if place is None or place.region is None else syntax.innermost(place.file, place.region, ast.Call)
    if place is None or call is None or not locations.is_users(place.file):
        return Fix(advice, Confidence.SAFE, snippet="return x.clone()")
    edits = []
    for branch in (argument for argument in call.args if isinstance(argument, ast.Lambda)):
        text = fresh(place.file, branch.body)
        if text is not None and text != syntax.text(place.file, branch.body):
            edits.append(Edit(place.file, syntax.region(place.file, branch.body), text))
    return Fix(advice, Confidence.SAFE, edits=tuple(edits), snippet="" if edits else "return x.clone()")
