"""What is changed for a while is put back, even if an interrupt comes just then."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PutBack = Callable[[], None]
"""Undoes a change. It may be called more than once, and before there is a change."""


class _Owed(threading.local):
    def __init__(self) -> None:
        self.entries: list[PutBack] = []


_HERE = _Owed()
"""What this thread has yet to put back."""


@contextmanager
def put_back(undo: PutBack) -> Iterator[None]:
    """The time of a change, which `undo` undoes at its end. The change is made inside."""
    try:
        _HERE.entries.append(undo)
        yield
    finally:
        # NOTE: an interrupt may come at any line; what it leaves here is put back by `put_back_all`.
        undo()
        _HERE.entries = [each for each in _HERE.entries if each is not undo]


def put_back_all() -> None:
    """Puts back what an interrupt has kept this thread from putting back."""
    while _HERE.entries:
        _HERE.entries[-1]()
        _HERE.entries.pop()
