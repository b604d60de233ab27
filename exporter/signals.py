"""Signals that would end the process at once, without a log and with files left behind."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from onnxplain.diagnostics import Interruption

_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


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
    for each in ours:
        signal.signal(each, _raise)
    try:
        yield
    finally:
        for each in ours:
            if signal.getsignal(each) is _raise:
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


def _raise(number: int, _frame: FrameType | None) -> None:
    raise Terminated(number)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
