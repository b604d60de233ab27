"""Random numbers of Python and numpy, and clocks: the values that they give during the capture become constants of the graph."""

from __future__ import annotations

from collections.abc import Iterator

from onnxplain.capture.finding import Finding
from onnxplain.capture.observe import line_watch
from onnxplain.capture.observe.host_values import states
from onnxplain.diagnostics import Evidence
from onnxplain.process import BudgetSpent
from onnxplain.rules import HostValueBaked
from onnxplain.source import volatile_calls

from .finished import Finished


def findings(finished: Finished) -> Iterator[Finding]:
    """A finding for each of the user's lines that drew a number or read a clock."""
    # NOTE: watching every line takes time, so it happens only if a number was drawn. We do not replace the generators' functions instead,
    # since TorchDynamo knows them by identity.
    if finished.attempt.draws.were_made():
        for generator, place in dict.fromkeys(line_watch.changes(finished.again, states)):
            yield Finding(HostValueBaked(generator=generator), Evidence(place))
    yield from _clocks(finished)


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
