"""One export at a time: torch.export and an export change the process in ways that do not allow several at once."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from onnxplain.diagnostics import OnnxExporterError
from onnxplain.torch_internals import tracing
from onnxplain.torch_internals.put_back import put_back_all


class _Lock:
    """A lock that knows the thread that holds it."""

    def __init__(self) -> None:
        self.free = threading.Lock()
        self.owner: int | None = None


_lock = _Lock()


def _renew() -> None:
    """Makes a free lock in a forked process: the thread that held the lock does not exist there."""
    global _lock
    _lock = _Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """Holds the lock during an export. Exports of other threads wait until it ends.

    Raises:
        OnnxExporterError: This thread is already exporting: the call comes from the model, a hook or a translation.
    """
    lock, here = _lock, threading.get_ident()
    if lock.owner == here:
        raise OnnxExporterError("An export cannot begin within another export: the model, a hook or a translation calls onnxplain.")
    with lock.free:
        lock.owner = here
        try:
            with tracing.hidden_from_other_threads(), tracing.wrappers_as_before(), tracing.generated_code_as_before():
                yield
        finally:
            try:
                put_back_all()
            finally:
                lock.owner = None
