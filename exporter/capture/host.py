"""Random numbers that Python or numpy draws while the model runs: what they are then is a constant of the graph."""

from __future__ import annotations

import random
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onnxplain import where
from onnxplain.diagnostics import DiagnosticContext, Evidence, Location, Region
from onnxplain.rules import HostValueBaked

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
        for generator, place in dict.fromkeys(_watched(again)):
            context.report(HostValueBaked(generator=generator), at=Evidence(place))


def _states() -> _State:
    """The state of each generator by its module's name."""
    kind, keys, *rest = np.random.get_state(legacy=True)
    return {"random": random.getstate(), "numpy.random": (kind, np.asarray(keys).tobytes(), *rest)}


def _watched(run: Callable[[], object]) -> list[tuple[str, Location]]:
    """The lines of the user's after which a generator has another state, while `run` runs."""
    found: list[tuple[str, Location]] = []
    states = _states()
    running: types.FrameType | None = None
    line = 0

    def compare() -> None:
        nonlocal states
        before, states = states, _states()
        if running is not None:
            place = Location(running.f_code.co_filename, Region(line), running.f_code.co_name)
            found.extend((generator, place) for generator in states if states[generator] != before[generator])

    def on_line(frame: types.FrameType, event: str, argument: Any) -> Any:
        nonlocal running, line
        del argument
        compare()
        # After a function has returned, the line that called it goes on.
        running = frame.f_back if event == "return" else frame
        line = running.f_lineno if running is not None else 0
        if running is not None and where.origin(running.f_code.co_filename) is not where.Origin.USER:
            running = None
        return on_line

    def on_call(frame: types.FrameType, event: str, argument: Any) -> Any:
        del event, argument
        return on_line if where.origin(frame.f_code.co_filename) is where.Origin.USER else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        run()
    except Exception:
        # NOTE: the same run has just succeeded; what was seen up to here still happened.
        return found
    finally:
        sys.settrace(before)
    return found
