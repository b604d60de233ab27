"""How often and how long the user's model may be run to explain a failure."""

from __future__ import annotations

import contextlib
import math
import time
import types
from collections.abc import Callable, Iterator

from onnxplain.diagnostics import Interruption
from onnxplain.torch_internals import python_frames

RUNS = 12
"""How often the model may run in all after a capture has failed: eagerly, and in further captures."""
SECONDS = 20.0
"""How many seconds of work these runs may take, or as long as the failed capture took if that is longer."""


_BUSY = 3.0
"""How many times longer than its work a run may take on a machine with other load, or while it sleeps."""
_PAUSE = 10.0
"""For how many seconds a machine may stop the whole process, for example to swap, before that counts."""


class Stopwatch:
    """Measures the work of this thread since it was made."""

    def __init__(self) -> None:
        self._wall, self._work = time.monotonic(), time.thread_time()

    @property
    def seconds(self) -> float:
        """The thread's processor time in seconds, but at least a third of the time that passed after a pause of ten seconds.

        NOTE: what an export tries must not depend on the other programs of a busy machine.
        """
        return max(time.thread_time() - self._work, (time.monotonic() - self._wall - _PAUSE) / _BUSY)

    def is_beyond(self, limit: float) -> bool:
        """Whether it measures more than `limit` seconds. This is cheap as long as it does not."""
        return time.monotonic() - self._wall > limit and self.seconds > limit


class BudgetSpent(Exception):
    """No run is left."""


class Stopped(Interruption):
    """A run took too long. It is raised at a line of the model, whose `except Exception` does not catch it.

    NOTE: Python drops a trace function that raised. So a loop whose bare `except:` catches this exception is not stopped.
    """


class Budget:
    """How many runs and how many seconds are left.

    Args:
        runs: How many runs are allowed; 0 forbids them.
        seconds: How many seconds they may take in all.

    Attributes:
        runs: How many are left.
        seconds: How many seconds are left.
        is_allowed: Whether there may be runs at all.
    """

    def __init__(self, runs: int = RUNS, seconds: float = SECONDS) -> None:
        self.runs = runs
        self.seconds = seconds
        self.is_allowed = runs > 0
        self._least = seconds

    def grow(self, seconds: float) -> None:
        """Raises the limit to the seconds that a capture took, if that is more than the first limit."""
        self.seconds += max(0.0, seconds - self._least)
        self._least = max(seconds, self._least)

    @property
    def is_open(self) -> bool:
        """Whether another run is allowed."""
        return self.runs > 0 and self.has(0.0)

    def has(self, seconds: float) -> bool:
        """Whether more than `seconds` seconds are left."""
        return self.seconds > seconds

    def spend(self, seconds: float) -> None:
        """Counts a run that was made without `one`."""
        self.runs, self.seconds = self.runs - 1, self.seconds - seconds

    @contextlib.contextmanager
    def one(self, stoppable: Callable[[str], bool], most: float = math.inf, *, share: float = 0.5) -> Iterator[None]:
        """Limits and counts one run.

        Args:
            stoppable: Whether a run may be stopped at any line of a file.
            most: The seconds after which it is stopped.
            share: The part of the remaining seconds after which it is stopped in any case, so that time remains for other runs.

        Raises:
            BudgetSpent: No run is left; nothing was run.
            Stopped: The run took too long.
        """
        if not self.is_open:
            raise BudgetSpent
        self.runs -= 1
        watch = Stopwatch()
        limit = min(most, self.seconds * share)

        def on_line(frame: types.FrameType, event: str) -> None:
            if event != "return" and watch.is_beyond(limit):
                raise Stopped(f"{frame.f_code.co_name} ran longer than {limit:.1f} s")

        try:
            with python_frames.each_line(on_line, stoppable):
                yield
        finally:
            self.seconds -= watch.seconds
