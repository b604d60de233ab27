"""Random numbers of Python and numpy, and clocks: the values that they give during the capture become constants of the graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxplain.capture.finding import Finding
from onnxplain.capture.observe import line_watch
from onnxplain.capture.observe.host_values import states
from onnxplain.diagnostics import Evidence, Location
from onnxplain.process import BudgetSpent
from onnxplain.rules import HostValueBaked
from onnxplain.source import syntax, volatile_calls

from .finished import Finished


def findings(finished: Finished) -> Iterator[Finding]:
    """A finding for each of the user's lines that drew a number or read a clock."""
    # NOTE: watching every line takes time, so it happens only if a number was drawn. We do not replace the generators' functions instead,
    # since TorchDynamo knows them by identity.
    if finished.attempt.draws.were_made():
        is_training = getattr(finished.request.model, "training", False)
        for generator, place in dict.fromkeys(line_watch.changes(finished.again, states)):
            if is_training or not _is_for_training(place):
                yield Finding(HostValueBaked(generator=generator), Evidence(place))
    yield from _clocks(finished)


def _is_for_training(place: Location) -> bool:
    """Whether the line at `place` draws a number that only tests after `self.training and` read, as for layers that training skips."""
    function = None if place.region is None else syntax.innermost(place.file, place.region, ast.FunctionDef)
    nodes = [] if function is None else list(ast.walk(function))
    made = [node for node in nodes if isinstance(node, ast.Assign) and node.lineno == place.line and isinstance(node.targets[0], ast.Name)]
    if len(made) != 1:
        return False
    name = ast.unparse(made[0].targets[0])
    guarded = [
        id(inner)
        for node in nodes
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) and ast.unparse(node.values[0]) == "self.training"
        for operand in node.values[1:]
        for inner in ast.walk(operand)
    ]
    reads = [node for node in nodes if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)]
    return all(id(node) in guarded for node in reads)


def _clocks(finished: Finished) -> Iterator[Finding]:
    """The findings about calls of clocks, if a second capture gives another program."""
    suspects = volatile_calls.clocks(finished.frames)
    if not suspects:
        return
    try:
        other, ran = line_watch.lines(finished.again)
    except BudgetSpent:
        raise
    except Exception:  # noqa: BLE001  a model that changes itself, and cannot run again, may raise anything
        return
    if str(other.graph) == str(finished.program.graph):
        return
    for call in suspects:
        if (call.file, call.place.line) in ran:
            yield Finding(HostValueBaked(generator=call.text.partition("(")[0]), Evidence(call.place))
