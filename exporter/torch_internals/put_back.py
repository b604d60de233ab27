"""Undoes temporary changes, even if an interrupt comes at that moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PutBack = Callable[[], None]
"""Undoes a change. It may be called more than once, and before there is a change."""


class _Owed(threading.local):
    def __init__(self) -> None:
        self.entries: list[tuple[PutBack, bool]] = []


_HERE = _Owed()
"""The changes that this thread has not undone yet."""


@contextmanager
def put_back(undo: PutBack, *, any_order: bool = False) -> Iterator[None]:
    """Calls `undo` at the end. Make the change inside.

    Args:
        undo: Undoes the change. It may restore what it found, since later changes of this thread are undone before it.
        any_order: True for a change that may outlive earlier ones.
    """
    try:
        _HERE.entries.append((undo, any_order))
        yield
    finally:
        # NOTE: an interrupt may come at any line. What it leaves here is undone by an outer `put_back`, or by `put_back_all`.
        later = [each for each, free in _after(undo) if not free]
        for each in (*reversed(later), undo):
            each()
        _HERE.entries = [entry for entry in _HERE.entries if entry[0] is not undo and entry[0] not in later]


def _after(undo: PutBack) -> list[tuple[PutBack, bool]]:
    """What was owed after `undo`."""
    owed = [each for each, _ in _HERE.entries]
    return _HERE.entries[owed.index(undo) + 1 :] if undo in owed else []


def put_back_all() -> None:
    """Undoes the changes that this thread has not undone because of an interrupt."""
    while _HERE.entries:
        _HERE.entries[-1][0]()
        _HERE.entries.pop()
