"""Random numbers that Python or numpy draws while the model runs, seen by the state of their generators."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np


class Draws:
    """Tells whether random numbers have been drawn since it was made."""

    def __init__(self) -> None:
        self._before = states()

    def were_made(self) -> bool:
        """Whether any random numbers were drawn."""
        return states() != self._before


def states() -> Mapping[str, object]:
    """The state of each generator by its module's name."""
    kind, keys, *rest = np.random.get_state(legacy=True)
    return {"random": random.getstate(), "numpy.random": (kind, np.asarray(keys).tobytes(), *rest)}
