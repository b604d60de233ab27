"""Inputs that become constants: Python numbers, strings, enum members and None in the example."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

import torch
from torch.export.graph_signature import InputKind

from onnxplain.capture.finding import Finding, fallback
from onnxplain.diagnostics import Confidence, Evidence, Fix, Location
from onnxplain.request import Request, constant_of, is_constant
from onnxplain.rules import InputBaked, InputLeftOut
from onnxplain.source import locations, syntax
from onnxplain.torch_internals.code_objects import code_of

from .finished import Finished

_LONGEST = 60


def findings(finished: Finished) -> Iterator[Finding]:
    """A finding for each input that is not a tensor, where `forward` first uses it."""
    request = finished.request
    for spec in finished.program.graph_signature.input_specs:
        if spec.kind is not InputKind.USER_INPUT or not is_constant(spec.arg):
            continue
        name, value = spec.arg.name, constant_of(spec.arg)
        at = _first_use(request, name) or fallback(request)
        if value is None or isinstance(value, bool):
            yield Finding(InputLeftOut(name=name, value=repr(value)), at, fixes=tuple(_ways_without(request, name, value)))
            continue
        fixes: tuple[Fix, ...] = ()
        if type(value) in (int, float):
            fixes = (Fix("Pass a tensor.", Confidence.CHANGES_BEHAVIOUR, snippet=f"torch.tensor({value!r})"),)
        yield Finding(InputBaked(name=name, value=repr(value)[:_LONGEST]), at, fixes=fixes)


def _ways_without(request: Request, name: str, value: bool | None) -> Iterator[Fix]:
    """The fix that makes the argument unnecessary and leaves the exported model the same, if there is one."""
    forward = request.model.forward if isinstance(request.model, torch.nn.Module) else request.model
    parameter = inspect.signature(forward).parameters.get(name)
    if parameter is not None and parameter.default is value:
        yield Fix("Leave the argument out: its default is the same value.", Confidence.SAFE)
    elif hasattr(config := getattr(request.model, "config", None), name):
        # NOTE: the models of transformers read such flags from their configuration if the argument is not given.
        snippet = f"{_name_of_model(request)}.config.{name} = {value}"
        same = getattr(config, name) is value
        advice = "Leave the argument out: the model's configuration has the same value."
        yield (
            Fix(advice, Confidence.GUESS)
            if same
            else Fix("Set the value in the model's configuration, and leave the argument out.", Confidence.GUESS, snippet=snippet)
        )
    else:
        yield Fix("If every use of the exported model is meant with this value, change nothing.", Confidence.GUESS)


def _name_of_model(request: Request) -> str:
    """The name of the model in the export's call."""
    place = request.caller
    call = None if place is None or place.region is None else syntax.innermost(place.file, place.region, ast.Call)
    given = [] if call is None else [*(each.value for each in call.keywords if each.arg == "model"), *call.args[:1]]
    return next((each.id for each in given if isinstance(each, ast.Name)), "model")


def _first_use(request: Request, name: str) -> Evidence | None:
    """The place where `forward` first reads the parameter that is, or contains, the input `name`."""
    forward = request.model.forward if isinstance(request.model, torch.nn.Module) else request.model
    code = code_of(forward)
    if code is None or locations.is_internal(code.co_filename):
        return None
    definition = next((node for node in _functions(code.co_filename) if _first_line(node) == code.co_firstlineno), None)
    if definition is None:
        return None
    # NOTE: torch names a part of an input after the path to it: `batch_tokens`.
    named = [each.arg for each in ast.walk(definition.args) if isinstance(each, ast.arg) and f"{name}_".startswith(f"{each.arg}_")]
    if not named:
        return None
    parameter = max(named, key=len)
    uses = [
        node
        for statement in definition.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and node.id == parameter and isinstance(node.ctx, ast.Load)
    ]
    if not uses:
        return None
    first = min(uses, key=lambda node: (node.lineno, node.col_offset))
    return Evidence(Location(code.co_filename, syntax.region(code.co_filename, first), definition.name))


def _functions(file: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = syntax.tree(file)
    if tree is not None:
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return node.decorator_list[0].lineno if node.decorator_list else node.lineno
