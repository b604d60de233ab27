"""No garbage collection while much is made that stays."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

_lock = threading.Lock()
_open = 0
_was_enabled = False


@contextlib.contextmanager
def without_collection() -> Iterator[None]:
    """Keeps Python from collecting garbage while it is open: each collection would look at all modules and graphs that are being made.

    The last one to leave puts things back, whichever thread that is.
    """
    global _open, _was_enabled
    with _lock:
        if _open == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _open += 1
    try:
        yield
    finally:
        with _lock:
            _open -= 1
            if _open == 0 and _was_enabled:
                gc.enable()
