"""Random numbers that Python or numpy draws while the model runs, and clocks: what they say then is a constant of the graph."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from onnxplain.diagnostics import DiagnosticContext, Evidence, Location
from onnxplain.rules import HostValueBaked
from onnxplain.source import volatile_calls

from . import line_watch

_State = Mapping[str, object]


class Draws:
    """Whether random numbers are drawn from now on, and by which lines."""

    def __init__(self) -> None:
        self._before = _states()

    def report(self, context: DiagnosticContext, again: Callable[[], object]) -> None:
        """Reports the lines of the user's that drew one since this was made. `again` runs the model once more, watched.

        NOTE: watching every line costs time, so it happens only after something was drawn; the generators' functions are not replaced for
        it, since TorchDynamo knows them by identity.
        """
        if _states() == self._before:
            return
        for generator, place in dict.fromkeys(line_watch.changes(again, _states)):
            context.report(HostValueBaked(generator=generator), at=Evidence(place))


def _states() -> _State:
    """The state of each generator by its module's name."""
    kind, keys, *rest = np.random.get_state(legacy=True)
    return {"random": random.getstate(), "numpy.random": (kind, np.asarray(keys).tobytes(), *rest)}


def report_clocks(
    context: DiagnosticContext,
    program: torch.export.ExportedProgram,
    frames: Sequence[Location],
    again: Callable[[], torch.export.ExportedProgram],
) -> None:
    """Reports calls of clocks, if a second capture, which `again` makes, gives another program."""
    suspects = volatile_calls.clocks(frames)
    if not suspects:
        return
    other, ran = line_watch.lines(again)
    if str(other.graph) == str(program.graph):
        return
    for call in suspects:
        if (call.file, call.place.line) in ran:
            context.report(HostValueBaked(generator=call.text.partition("(")[0]), at=call.place)
