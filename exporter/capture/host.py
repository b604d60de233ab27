"""Random numbers that Python or numpy draws while the model runs: what they are then is a constant of the graph."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import numpy as np

from onnxplain.diagnostics import DiagnosticContext, Evidence
from onnxplain.rules import HostValueBaked

from . import watch

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
        for generator, place in dict.fromkeys(watch.changes(again, _states)):
            context.report(HostValueBaked(generator=generator), at=Evidence(place))


def _states() -> _State:
    """The state of each generator by its module's name."""
    kind, keys, *rest = np.random.get_state(legacy=True)
    return {"random": random.getstate(), "numpy.random": (kind, np.asarray(keys).tobytes(), *rest)}
