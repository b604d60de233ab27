"""How often and how long the user's model may be run to explain a failure."""

from __future__ import annotations

import contextlib
import time
import types
from collections.abc import Callable, Iterator

from onnxplain.torch_internals import python_frames

RUNS = 12
"""How often the model is run, all in all, after a capture has failed: without a capture, and in captures that only repeat it."""
SECONDS = 20.0
"""How long that may take, or as long as the capture that failed, whichever is more."""


class BudgetSpent(Exception):
    """Nothing more may be run."""


class Stopped(BaseException):
    """A run took longer than it may: raised at a line of the model's, where its own `except Exception` does not catch it."""


class Budget:
    """What is left to run.

    Args:
        runs: How many runs; 0 forbids them.
        seconds: How long they may take, all in all.

    Attributes:
        runs: How many are left.
        seconds: How many seconds are left.
    """

    def __init__(self, runs: int = RUNS, seconds: float = SECONDS) -> None:
        self.runs = runs
        self.seconds = seconds
        self._least = seconds

    def grow(self, seconds: float) -> None:
        """Allows as many seconds as a capture has taken, if that is more than there were at first."""
        self.seconds += max(0.0, seconds - self._least)
        self._least = max(seconds, self._least)

    @property
    def is_open(self) -> bool:
        """Whether anything may be run."""
        return self.runs > 0 and self.has(0.0)

    def has(self, seconds: float) -> bool:
        """Whether so much time is left."""
        return self.seconds > seconds

    def spend(self, seconds: float) -> None:
        """Counts a run that was not made with `one`."""
        self.runs, self.seconds = self.runs - 1, self.seconds - seconds

    @contextlib.contextmanager
    def one(self, stoppable: Callable[[str], bool], most: float | None = None) -> Iterator[None]:
        """The time of one run.

        Args:
            stoppable: Whether the functions of a file may be stopped, at any line.
            most: Seconds after which it is stopped; half of what is left if that is less, so that it does not use up all.

        Raises:
            BudgetSpent: Nothing may be run any more. Then nothing was.
            Stopped: It took too long.
        """
        if not self.is_open:
            raise BudgetSpent
        self.runs -= 1
        began = time.monotonic()
        limit = self.seconds / 2 if most is None else min(most, self.seconds / 2)

        def on_line(frame: types.FrameType, event: str) -> None:
            if event != "return" and time.monotonic() > began + limit:
                raise Stopped(f"{frame.f_code.co_name} ran longer than {limit:.1f} s")

        try:
            with python_frames.each_line(on_line, stoppable):
                yield
        finally:
            self.seconds -= time.monotonic() - began
