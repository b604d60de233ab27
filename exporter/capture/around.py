"""What Python does around the operators and a graph cannot show: hooks, gradients, branches for exports only."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

import torch

from onnxplain import syntax, where
from onnxplain.diagnostics import DiagnosticContext, Evidence, Location, Region
from onnxplain.diagnostics.source import line_text
from onnxplain.options import Request
from onnxplain.rules import ExportOnlyBranch, GradientTraced, HookTraced

_PHASES = frozenset({"is_compiling", "is_dynamo_compiling", "is_exporting", "is_in_onnx_export", "is_scripting", "is_tracing"})
"""Functions of torch that answer otherwise during an export, or did so in older exporters."""
_GRADIENTS = frozenset({"backward", "grad", "grad_and_value", "hessian", "jacfwd", "jacobian", "jacrev", "jvp", "vjp"})


def report(context: DiagnosticContext, request: Request, program: torch.export.ExportedProgram) -> None:
    """Reports what went into `program`, or was left out, by other ways than the operators that `forward` calls."""
    frames = _frames(program)
    if isinstance(request.model, torch.nn.Module):
        _report_hooks(context, request.model, frames)
    for place in frames:
        text = line_text(place.file, place.line or 0)
        if any(name in text for name in ("grad", "backward", "func.")) and (call := _gradient(place)):
            context.report(GradientTraced(function=call), at=Evidence(place))
    _report_phases(context, frames)


def _frames(program: torch.export.ExportedProgram) -> list[Location]:
    """The user's frames that made the operators of `program`, each once."""
    # NOTE: equal text stands for equal frames, and is cheaper to compare.
    traces = {node.meta.get("stack_trace"): node for node in program.graph.nodes if node.op == "call_function"}
    frames = dict.fromkeys(frame for node in traces.values() for frame in where.at_node(node).stack)
    return [frame for frame in frames if where.origin(frame.file) is where.Origin.USER]


def _report_hooks(context: DiagnosticContext, model: torch.nn.Module, frames: list[Location]) -> None:
    for path, module in model.named_modules():
        for hook in (*module._forward_pre_hooks.values(), *module._forward_hooks.values()):
            code = _code_of(hook)
            if code is None or where.origin(code.co_filename) is not where.Origin.USER:
                continue
            lines = [line for *_, line in code.co_lines() if line]
            inside = (frame for frame in frames if frame.file == code.co_filename and frame.line in lines)
            place = next(inside, Location(code.co_filename, Region(code.co_firstlineno), code.co_name))
            context.report(HookTraced(function=code.co_name, module=path or type(model).__name__), at=Evidence(place))


def _code_of(function: Any) -> Any:
    function = getattr(function, "func", function)  # functools.partial
    found = getattr(inspect.unwrap(function), "__code__", None)
    return found or getattr(type(function).__call__, "__code__", None)


def _gradient(place: Location) -> str:
    """The function of torch that differentiates at `place`, as it is called; empty if none does."""
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


def _report_phases(context: DiagnosticContext, frames: list[Location]) -> None:
    for file in dict.fromkeys(frame.file for frame in frames):
        for call in _phase_calls(file):
            region = syntax.region(file, call)
            function = syntax.innermost(file, region, ast.FunctionDef)
            ran = [frame for frame in frames if frame.file == file and function is not None and frame.function == function.name]
            whole = None if function is None else syntax.region(file, function)
            if whole is not None and any(whole.line <= (frame.line or 0) <= whole.last_line for frame in ran):
                place = Location(file, region, function.name if function else "")
                context.report(ExportOnlyBranch(test=syntax.text(file, call.func)), at=Evidence(place))


def _phase_calls(file: str) -> Iterator[ast.Call]:
    text = syntax.source(file)
    if any(name in text for name in _PHASES) and (tree := syntax.tree(file)) is not None:
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call) and syntax.last_name(node.func) in _PHASES)
