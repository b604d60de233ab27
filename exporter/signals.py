"""Signals that would end the process at once, without a log and with files left behind."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from onnxplain.diagnostics import Interruption, OwnProcess

_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]

_END = 10.0
"""How long the orderly end of an export may take before another signal interrupts it, in seconds."""


class Terminated(Interruption):
    """A signal asks the process to end.

    Attributes:
        signal: The signal.
    """

    def __init__(self, number: int) -> None:
        self.signal = signal.Signals(number)
        super().__init__(self.signal.name)


@contextlib.contextmanager
def terminations_as_exceptions() -> Iterator[None]:
    """Raises `Terminated` for SIGTERM and SIGHUP. Leaves signals alone that the program handles itself, and other threads' exports."""
    ours = [each for each in _ENDING if signal.getsignal(each) is signal.SIG_DFL] if _in_main_thread() else []
    handler = _Raises()
    for each in ours:
        signal.signal(each, handler)
    try:
        yield
    finally:
        for each in ours:
            if signal.getsignal(each) is handler:
                signal.signal(each, signal.SIG_DFL)


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP end the process after the block has cleaned up, in the way that they would have ended it."""
    ours = _in_main_thread() and any(signal.getsignal(each) is signal.SIG_DFL for each in _ENDING)
    try:
        with terminations_as_exceptions():
            yield
    except Terminated as ended:
        if ours:
            signal.raise_signal(ended.signal)
        raise


class _Raises:
    """A handler that raises `Terminated`. While the export that it ended cleans up, it ignores further signals."""

    def __init__(self) -> None:
        self._process = OwnProcess()
        self._ignoring_until = -math.inf

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        if not self._process.is_here:
            # NOTE: code that is not Python's has forked the process, or the model's code has set the handler again.
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
            return
        # NOTE: a model may catch the exception with a bare `except`, so later signals count again.
        if time.monotonic() >= self._ignoring_until:
            self._ignoring_until = time.monotonic() + _END
            raise Terminated(number)


def _set_back() -> None:
    """Lets signals end a process that the model forks as they would without an export, also while it runs no Python."""
    for each in _ENDING:
        if isinstance(signal.getsignal(each), _Raises):
            signal.signal(each, signal.SIG_DFL)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_set_back)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
