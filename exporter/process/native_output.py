"""Reads what native code writes to standard error, which Python's `sys.stderr` does not see."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator

from onnxplain.torch_internals.put_back import put_back

_STDERR = 2
_IDLE = frozenset({"tqdm._monitor", "onnxplain.process.sampling"})
"""The modules of threads that write nothing: one looks after progress bars, which torch may start (2.13), and one after profiles."""
Take = Callable[[str], str]
"""Takes its part of a text, and returns the rest."""


def is_readable() -> bool:
    """Whether standard error can be read: it is open, and no other thread of Python may write to it or start processes meanwhile."""
    others = (each for each in threading.enumerate() if each is not threading.current_thread())
    if any(type(each).__module__ not in _IDLE for each in others):
        return False
    try:
        os.fstat(_STDERR)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def errors_read(take: Take) -> Iterator[None]:
    """While it is open, standard error is a file, whose text `take` gets at the end. What it returns goes to standard error.

    Use it only if `is_readable`, and around one call of native code: if that ends the process, what it wrote last is lost.
    """
    with tempfile.TemporaryFile() as file, contextlib.ExitStack() as stack:
        _flush()
        saved = os.dup(_STDERR)
        stack.callback(os.close, saved)

        def undo() -> None:
            os.dup2(saved, _STDERR)

        try:
            with put_back(undo):
                os.dup2(file.fileno(), _STDERR)
                yield
                _flush()
        finally:
            file.seek(0)
            if rest := take(file.read().decode(errors="replace")):
                os.write(_STDERR, rest.encode(errors="replace"))


def _flush() -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
