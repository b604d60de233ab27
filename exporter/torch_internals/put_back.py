"""Undoes temporary changes, even if an interrupt comes at that moment."""

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
"""The changes that this thread has not undone yet."""


@contextmanager
def put_back(undo: PutBack) -> Iterator[None]:
    """Calls `undo` at the end. Make the change inside."""
    try:
        _HERE.entries.append(undo)
        yield
    finally:
        # NOTE: an interrupt may come at any line; `put_back_all` undoes the changes that it leaves here.
        undo()
        _HERE.entries = [each for each in _HERE.entries if each is not undo]


def put_back_all() -> None:
    """Undoes the changes that this thread has not undone because of an interrupt."""
    while _HERE.entries:
        _HERE.entries[-1]()
        _HERE.entries.pop()
