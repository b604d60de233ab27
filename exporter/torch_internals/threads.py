"""The threads, and the jobs of thread pools, that a piece of work starts. Python does not remember who started them."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .patching import Slot
from .put_back import put_back

_WORK: contextvars.ContextVar[object] = contextvars.ContextVar("_WORK")
"""What this context works for, if it is a job or a piece of work itself; None for a job that belongs to none."""

_STARTED: weakref.WeakKeyDictionary[threading.Thread, object] = weakref.WeakKeyDictionary()
"""What threads were started for."""


def current_work() -> object:
    """The work that the caller is a part of; None if there is none."""
    return _WORK.get(_STARTED.get(threading.current_thread()))


@contextlib.contextmanager
def part_of(work: object) -> Iterator[None]:
    """While it is open, this context is a part of `work`, and so are the threads and jobs of thread pools that a part starts.

    Only one may be open at a time.
    """
    start, submit = Slot(threading.Thread, "start"), Slot(ThreadPoolExecutor, "submit")
    start_thread, submit_job = start.get(), submit.get()

    # NOTE: not `wrapped`, since the threads that a part starts have other contexts. In all other threads, these only pass calls on.
    @functools.wraps(start_thread)
    def started(thread: threading.Thread) -> None:
        if (work := current_work()) is not None:
            _STARTED[thread] = work
        start_thread(thread)

    @functools.wraps(submit_job)
    def submitted(pool: ThreadPoolExecutor, job: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        work = current_work()
        if work is None:
            return submit_job(pool, job, *args, **kwargs)
        # NOTE: for none, since a thread that the pool starts now will also do jobs of others.
        return _done_for(None, submit_job, pool, functools.partial(_done_for, work, job), *args, **kwargs)

    def undo() -> None:
        for slot, ours, original in ((start, started, start_thread), (submit, submitted, submit_job)):
            if slot.get() is ours:
                slot.put(original)

    with put_back(undo):
        start.put(started)
        submit.put(submitted)
        before = _WORK.set(work)
        try:
            yield
        finally:
            _WORK.reset(before)


def _done_for(work: object, job: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Calls `job` as a part of `work`."""
    before = _WORK.set(work)
    try:
        return job(*args, **kwargs)
    finally:
        _WORK.reset(before)
