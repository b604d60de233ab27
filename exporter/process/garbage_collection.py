"""No garbage collection while much is made that stays."""

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
    """Keeps Python from collecting garbage while it is open: each collection would look at all modules and graphs that are being made.

    The last one to leave puts things back, whichever thread that is.
    """
    global _was_enabled
    own = object()

    def undo() -> None:
        with _lock:
            if _open == {own} and _was_enabled:
                gc.enable()
            _open.discard(own)

    with put_back(undo):
        with _lock:
            if not _open:
                _was_enabled = gc.isenabled()
            _open.add(own)
            gc.disable()
        yield
