"""The host: a process that imports torch once, and forks a worker for each model. It holds the workers to their limits."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import NoReturn

from .jobs import Cause, Ended, Job, Limits

_PULSE = 0.05
"""Seconds between two looks at the workers, if none ends in between."""
_GRACE = 5.0
"""Seconds that a worker has to write the line that runs into its log, after the time limit."""
_OUTPUT_LIMIT = 16 * 2**20
"""Bytes of output of a model that are kept."""
_END_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""


@dataclasses.dataclass(frozen=True)
class Began:
    """A worker of the model `name` begins."""

    name: str


@dataclasses.dataclass(frozen=True)
class Unable:
    """The host cannot run workers; the message says why."""

    message: str


@dataclasses.dataclass
class _Worker:
    """A running worker. `stopped` says why it has to end; `cause` is what `Ended` gets."""

    job: Job
    number: int
    began: float
    memory: int = 0
    cause: Cause | None = None
    stopped: float = 0.0


def serve(
    jobs: Sequence[Job],
    limits: Limits,
    workers: int,
    connection: Connection,
    *,
    prepare: Callable[[], None],
    run: Callable[[Job], NoReturn],
) -> None:
    """Runs the jobs in workers, and tells over `connection` how each ends. It ends with the process that began it."""
    # NOTE: Ctrl-C reaches all processes of a terminal. The command gets it, and then ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()
    try:
        prepare()
    except BaseException as error:  # noqa: BLE001  the command tells it
        connection.send(Unable(f"{type(error).__name__}: {error}"))
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    running: dict[int, _Worker] = {}
    waiting = [*reversed(jobs)]
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                job = waiting.pop()
                connection.send(Began(job.model.name))
                number = _forked(job, run, connection)
                running[number] = _Worker(job, number, time.monotonic())
            for ended in _ended(running):
                connection.send(ended)
            for worker in running.values():
                _watch(worker, limits)
            if connection.poll() or os.getppid() != parent:
                return  # The command has closed its end, or is gone.
            _pause()
    finally:
        for worker in running.values():
            _kill(worker)


def _forked(job: Job, run: Callable[[Job], NoReturn], connection: Connection) -> int:
    host = os.getpid()
    number = os.fork()
    if number:
        return number
    try:
        # NOTE: what the model forks belongs to this session, and ends with the worker.
        os.setsid()
        connection.close()
        _end_with(host)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for each in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)
        run(job)
    finally:
        os._exit(1)


def _end_with(parent: int) -> None:
    """Ends this process when its parent ends, where the system can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _pause() -> None:
    """Waits for the end of a worker, but not for long."""
    if hasattr(signal, "sigtimedwait"):
        signal.sigtimedwait({signal.SIGCHLD}, _PULSE)
    else:
        time.sleep(_PULSE)


def _ended(running: dict[int, _Worker]) -> Iterator[Ended]:
    """Takes the workers that have ended out of `running`."""
    for number, worker in [*running.items()]:
        found, status, usage = os.wait4(number, os.WNOHANG)
        if not found:
            continue
        del running[number]
        _kill(worker)
        code = os.waitstatus_to_exitcode(status)
        cause: Cause = worker.cause or ("signal" if code < 0 else "exit")
        # NOTE: Linux counts KiB, macOS bytes.
        memory = max(worker.memory, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
        yield Ended(worker.job.model.name, cause, abs(code), time.monotonic() - worker.began, memory)


def _watch(worker: _Worker, limits: Limits) -> None:
    """Ends a worker that is beyond a limit: for time it may still write its log, for memory it may not."""
    now = time.monotonic()
    worker.memory = max(worker.memory, _memory(worker.number))
    _shorten(worker.job.files.output)
    if worker.cause is None and limits.memory is not None and worker.memory > limits.memory:
        worker.cause = "the memory limit"
        _kill(worker)
    elif worker.cause is None and now - worker.began > limits.seconds:
        worker.cause, worker.stopped = "the time limit", now
        _signal(worker, signal.SIGTERM)
    elif worker.cause is not None and now - worker.stopped > _GRACE:
        _kill(worker)


def _memory(process: int) -> int:
    """Bytes of memory that a process uses now; 0 if the system does not tell."""
    try:
        pages = pathlib.Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _shorten(output: pathlib.Path) -> None:
    """Empties the file of a model that prints without end."""
    with contextlib.suppress(OSError):
        if output.stat().st_size > _OUTPUT_LIMIT:
            output.write_text(f"[the first {_OUTPUT_LIMIT // 2**20} MiB are not here]\n", encoding="utf-8")


def _kill(worker: _Worker) -> None:
    """Kills a worker with all processes that its model has begun."""
    _signal(worker, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.killpg(worker.number, signal.SIGKILL)


def _signal(worker: _Worker, number: signal.Signals) -> None:
    with contextlib.suppress(OSError):
        os.kill(worker.number, number)
