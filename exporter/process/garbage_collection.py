"""Switches garbage collection off while an export makes many objects that stay alive."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

from onnxplain.torch_internals.put_back import put_back

_lock = threading.Lock()
_open: set[object] = set()
_was_enabled = False


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Keeps Python from collecting garbage while it is open: each collection would visit all modules and graphs made so far.

    Several threads may use it at once. The last one to leave restores the former state.
    """
    global _was_enabled
    own = object()

    def undo() -> None:
        with _lock:
            if _open == {own} and _was_enabled:
                gc.enable()
            _open.discard(own)

    with put_back(undo, any_order=True):
        with _lock:
            if not _open:
                _was_enabled = gc.isenabled()
            _open.add(own)
            gc.disable()
        yield
