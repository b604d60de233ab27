"""Calls in the user's code that an export answers or treats otherwise than a run: whether it is running, the time, prints."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

import torch

from onnxplain.diagnostics import Location
from onnxplain.torch_internals import python_frames

from . import locations, syntax
from .call_sites import SourceExpression

_PHASES = frozenset({"is_compiling", "is_dynamo_compiling", "is_exporting", "is_in_onnx_export", "is_scripting", "is_tracing"})
"""Functions of torch whose answer differs during an export, or did so in older exporters."""
_CLOCKS = {
    "time": {"time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "uuid": {"uuid1", "uuid4"},
    "os": {"urandom", "getpid"},
    "secrets": {"randbelow", "randbits", "token_bytes", "choice"},
}
"""Functions whose result differs each time, by the last name of their module or class."""

_SHOWING = frozenset({"print", "warn", "debug", "info", "warning", "error", "exception", "critical"})
_SPEAKERS = frozenset({"log", "logger", "logging", "warnings"})


def frames(program: torch.export.ExportedProgram) -> list[Location]:
    """The user's frames that made the operators of `program`, each once."""
    # NOTE: equal text means equal frames, and is cheaper to compare.
    traces = {node.meta.get("stack_trace"): node for node in program.graph.nodes if node.op == "call_function"}
    found = dict.fromkeys(frame for node in traces.values() for frame in locations.stack_of(node))
    return [frame for frame in found if locations.is_users(frame.file)]


def phases(ran: Sequence[Location]) -> list[SourceExpression]:
    """The calls that ask whether an export is running, in functions whose frames are among `ran`."""
    return [call for call in _calls(ran, _PHASES, lambda _: True) if _is_in(call, ran)]


def clocks(ran: Sequence[Location]) -> list[SourceExpression]:
    """The calls of clocks and similar functions in the files of `ran`, including calls that did not run.

    Without those that no model calls: outside of functions, and in functions that are running now, such as the one that exports.
    """
    names = frozenset().union(*_CLOCKS.values())
    return [call for call in _calls(ran, names, _is_clock) if _is_callable(call)]


def shows(ran: Sequence[Location]) -> list[SourceExpression]:
    """The calls that print, log or warn in each run of the functions whose frames are among `ran`: those under no condition."""
    return [call for call in _calls(ran, _SHOWING, _is_showing) if _is_in(call, ran) and not _is_conditional(call)]


def _is_showing(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return syntax.last_name(function.value).strip("_").lower() in _SPEAKERS
    return syntax.last_name(function) == "print"


def _is_conditional(call: SourceExpression) -> bool:
    around = syntax.around(call.file, syntax.region(call.file, call.node))
    functions = [number for number, node in enumerate(around) if isinstance(node, ast.FunctionDef)]
    return any(isinstance(node, ast.If | ast.IfExp | ast.Try | ast.While | ast.Lambda) for node in around[functions[-1] :])


def _is_clock(function: ast.expr) -> bool:
    owner = syntax.last_name(function.value) if isinstance(function, ast.Attribute) else ""
    return syntax.last_name(function) in _CLOCKS.get(owner, ())


def _calls(ran: Sequence[Location], names: frozenset[str], matches: Callable[[ast.expr], bool]) -> Iterator[SourceExpression]:
    for file in dict.fromkeys(frame.file for frame in ran):
        text = syntax.source(file)
        # NOTE: parsing costs more than a search of the text for these names.
        if not any(f"{name}(" in text for name in names) or (tree := syntax.tree(file)) is None:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and syntax.last_name(node.func) in names and matches(node.func):
                yield SourceExpression(file, node)


def _is_callable(call: SourceExpression) -> bool:
    """Whether a model may run `call`: it is in a function, and that is not running now."""
    place = syntax.region(call.file, call.node)
    if syntax.innermost(call.file, place, ast.Lambda) is not None:
        return True
    function = syntax.innermost(call.file, place, ast.FunctionDef)
    if function is None:
        return False
    whole = syntax.region(call.file, function)
    return not any(
        frame.f_code.co_filename == call.file and frame.f_code.co_name == function.name and whole.line <= frame.f_lineno <= whole.last_line
        for frame in python_frames.outward(python_frames.current())
    )


def _is_in(call: SourceExpression, ran: Sequence[Location]) -> bool:
    """Whether the function around `call` is one of those that ran."""
    function = syntax.innermost(call.file, syntax.region(call.file, call.node), ast.FunctionDef)
    if function is None:
        return False
    whole = syntax.region(call.file, function)
    return any(frame.file == call.file and whole.line <= (frame.line or 0) <= whole.last_line for frame in ran)
