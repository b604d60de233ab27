"""What to do about errors that say by their type what they are."""

from __future__ import annotations

import ast

import torch

from onnxplain import where
from onnxplain.diagnostics import Confidence, Edit, Fix, Location

from . import fixes, syntax
from .finding import chain, graph_break_type

IN_A_LIBRARY = Fix(
    "The test stands in a library's code: set the module up so that it is not reached (an observer or a check can often be turned off), "
    "or replace the module before the export.",
    Confidence.GUESS,
)

_ALIASING = "Encountered aliasing during higher order op tracing"
"""TorchDynamo's name for a branch that returns its input (torch 2.11 to 2.15)."""

_BY_TYPE = {
    "PendingUnbackedSymbolNotFound": Fix(
        "Index with integers only: turn the mask into positions first.",
        Confidence.GUESS,
        snippet="rows = mask.nonzero().squeeze(1)\nx[rows, columns]",
    ),
}
"""By the name of the exception's class, which is private to torch (read in 2.11 to 2.15)."""


def for_error(error: Exception, place: Location | None) -> list[Fix]:
    """Ways out of an error of torch.export; none where it is not known."""
    known = [_BY_TYPE[name] for each in chain(error) if (name := type(each).__name__) in _BY_TYPE]
    if known:
        return known[:1]
    return _with_copies(place) if graph_break_type(error) == _ALIASING else []


def for_eager_error(error: Exception) -> Fix:
    """The way out of an error of the model itself."""
    if "device" in str(error).lower() and isinstance(error, RuntimeError):
        return Fix("Make the tensors on one device.", Confidence.GUESS, snippet="torch.zeros(size, device=x.device)")
    return Fix("Call the model with these inputs, without an export, and mend the line; or give it other inputs.", Confidence.GUESS)


def for_packed_weights(model: torch.nn.Module) -> tuple[str, Fix] | None:
    """The first submodule whose weights torch has packed into an object of its own, as eager quantization does, and the way out."""
    for path, module in model.named_modules():
        if any(isinstance(value, torch.ScriptObject) for value in vars(module).values()):
            advice = "Export the module as it was before it was quantized, and quantize the ONNX model (onnxruntime.quantization)."
            return path, Fix(advice, Confidence.CHANGES_BEHAVIOUR)
    return None


def _with_copies(place: Location | None) -> list[Fix]:
    """Copies what the branches of a torch.cond return, where that may be their input or a part of it."""
    advice = "Return a copy from the branch."
    call = None if place is None or place.region is None else syntax.innermost(place.file, place.region, ast.Call)
    if place is None or call is None or where.origin(place.file) is not where.Origin.USER:
        return [Fix(advice, Confidence.SAFE, snippet="return x.clone()")]
    edits = []
    for branch in (argument for argument in call.args if isinstance(argument, ast.Lambda)):
        text = fixes.fresh(place.file, branch.body)
        if text is not None and text != syntax.text(place.file, branch.body):
            edits.append(Edit(place.file, syntax.region(place.file, branch.body), text))
    return [Fix(advice, Confidence.SAFE, edits=tuple(edits), snippet="" if edits else "return x.clone()")]
