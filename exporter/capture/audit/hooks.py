"""Python code around the operators that a graph cannot show: hooks, gradients, branches for exports only."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import torch

from onnxplain.capture.finding import Finding
from onnxplain.diagnostics import Evidence, Location, Region, line_text
from onnxplain.rules import ExportOnlyBranch, GradientTraced, HookTraced
from onnxplain.source import locations, syntax, volatile_calls
from onnxplain.torch_internals.code_objects import code_of_call, lines_of
from onnxplain.torch_internals.modules import forward_hooks, named_modules

from .finished import Finished

_GRADIENTS = frozenset({"backward", "grad", "grad_and_value", "hessian", "jacfwd", "jacobian", "jacrev", "jvp", "vjp"})


def findings(finished: Finished) -> Iterator[Finding]:
    """The findings about hooks, gradients and branches that changed the program, or that it lacks."""
    if isinstance(finished.request.model, torch.nn.Module):
        yield from _of_hooks(finished.request.model, finished.frames)
    for place in finished.frames:
        text = line_text(place.file, place.line or 0)
        if any(name in text for name in ("grad", "backward", "func.")) and (function := _gradient(place)):
            yield Finding(GradientTraced(function=function), Evidence(place))
    for call in volatile_calls.phases(finished.frames):
        yield Finding(ExportOnlyBranch(test=call.text), Evidence(call.place))


def _of_hooks(model: torch.nn.Module, frames: Sequence[Location]) -> Iterator[Finding]:
    for path, module in named_modules(model):
        for hook in forward_hooks(module):
            code = code_of_call(hook.function)
            if code is None or not locations.is_users(code.co_filename):
                continue
            lines = lines_of(code)
            inside = (frame for frame in frames if frame.file == code.co_filename and frame.line in lines)
            place = next(inside, Location(code.co_filename, Region(code.co_firstlineno), code.co_name))
            yield Finding(HookTraced(function=code.co_name, module=path or type(model).__name__), Evidence(place))


def _gradient(place: Location) -> str:
    """The function of torch that differentiates at `place`, as the source calls it; empty if there is none."""
    for node in syntax.around(place.file, place.region) if place.region else ():
        for call in (each for each in ast.walk(node) if isinstance(each, ast.Call)):
            name = syntax.text(place.file, call.func)
            owner = name.rpartition(".")[0].rpartition(".")[2]
            if (
                isinstance(node, ast.expr)
                and syntax.last_name(call.func) in _GRADIENTS
                and (owner in ("autograd", "func") or "backward" in name)
            ):
                return name
    return ""
