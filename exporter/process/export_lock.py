"""One export at a time: torch.export and an export change the process in ways that do not allow several at once."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from onnxplain.diagnostics import Forked, OnnxExporterError
from onnxplain.torch_internals import leftover_modes, threads, tracing
from onnxplain.torch_internals.put_back import put_back_all


class _Export:
    """An export that holds the lock, and its thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()


class _Lock:
    """A lock that knows the export that holds it."""

    def __init__(self) -> None:
        self.free = threading.Lock()
        self.holder: _Export | None = None


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

    An export within it is refused: the outer export may wait for the inner one, which would wait for the lock. The call comes from the
    model, a hook or a translation, from a thread that one of them started, or from a job that one of them gave to a `ThreadPoolExecutor`;
    also from what such a thread or job started. Calls of other code are never refused. A call that the model passes to an older thread by
    other means, such as a queue or a `multiprocessing.pool.ThreadPool`, looks like a call of other code. It waits, and if the model waits
    for it, both wait forever.

    Raises:
        OnnxExporterError: The call is made within another export, or this process was forked within the block.
    """
    lock, export = _lock, _Export()
    holder = lock.holder
    # NOTE: one thread may have several contexts, and then only the thread tells.
    if holder is not None and (holder.thread == export.thread or threads.current_work() is holder):
        raise OnnxExporterError(
            "An export cannot begin within another export: the model, a hook or a translation calls onnxplain, or a thread that it starts."
        )
    with lock.free:
        try:
            lock.holder = export
            with (
                threads.part_of(export),
                tracing.hidden_from_other_threads(),
                tracing.wrappers_as_before(),
                tracing.generated_code_as_before(),
                leftover_modes.thread_as_before(),
            ):
                yield
        except Forked as forked:
            raise OnnxExporterError(str(forked)) from forked.__context__
        finally:
            try:
                put_back_all()
            finally:
                lock.holder = None
