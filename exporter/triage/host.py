"""The host: a process that imports torch once, and forks workers for the models. It holds the workers to their limits."""

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
from multiprocessing.connection import Connection, Pipe
from typing import NoReturn

from .jobs import Cause, Ended, Job, Limits

_PULSE = 0.05
"""Seconds between two looks at the workers, if none ends in between."""
_GRACE = 5.0
"""Seconds that a worker has to write the line that runs into its log, after the time limit."""
_LEFT_BEHIND = 512 * 2**20
"""Bytes of memory that models may leave behind in a worker that goes on with the next."""
_OUTPUT_LIMIT = 16 * 2**20
"""Bytes of output of a model that are kept."""
READY = b"ready"
"""What a worker tells when it can export another model."""
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


Run = Callable[[Job, "Connection | None"], NoReturn]
"""Exports a model in a new process, and others that the connection sends after it has told that it is ready for the next."""


@dataclasses.dataclass
class _Worker:
    """A running worker. Without a job it is about to end, without a connection it gets no other. `stopped` is when `cause` was set."""

    job: Job | None
    number: int
    connection: Connection | None
    began: float
    small: int
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
    run: Run,
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
                worker = _forked(job, run, [connection, *(each.connection for each in running.values())])
                running[worker.number] = worker
            for message in _messages(running, waiting):
                connection.send(message)
            for worker in running.values():
                _watch(worker, limits)
            if connection.poll() or os.getppid() != parent:
                return  # The command has closed its end, or is gone.
            _pause()
    finally:
        for worker in running.values():
            _kill(worker)


def _forked(job: Job, run: Run, not_its: Sequence[Connection | None]) -> _Worker:
    """A new worker. It closes the connections of the host and of the other workers."""
    here, there = Pipe() if job.model.is_of_library else (None, None)
    host = os.getpid()
    number = os.fork()
    if number:
        if there is not None:
            there.close()
        return _Worker(job, number, here, time.monotonic(), memory_of(number))
    try:
        # NOTE: what the model forks belongs to this session, and ends with the worker.
        os.setsid()
        for each in (here, *not_its):
            if each is not None:
                each.close()
        _end_with(host)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for signal_number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(signal_number, signal.SIG_DFL)
        run(job, there)
    finally:
        os._exit(1)


def _messages(running: dict[int, _Worker], waiting: list[Job]) -> Iterator[Ended | Began]:
    """What there is to tell of the workers. Gives those that go on the next job, and takes those that have ended out of `running`."""
    for worker in running.values():
        if worker.connection is None or not worker.connection.poll():
            continue
        if worker.job is not None and _is_ready(worker):
            yield Ended(worker.job.model.name, "exit", 0, time.monotonic() - worker.began, max(worker.memory, _peak(worker.number)))
            worker.job = None
            if waiting and waiting[-1].model.is_of_library and memory_of(worker.number) - worker.small < _LEFT_BEHIND:
                worker.job, worker.began, worker.memory = waiting.pop(), time.monotonic(), 0
                _forget_peak(worker.number)
                yield Began(worker.job.model.name)
                # NOTE: a worker that has ended meanwhile does not read it. How it ended tells what became of the model.
                with contextlib.suppress(OSError):
                    worker.connection.send(worker.job)
                continue
        worker.connection.close()
        worker.connection = None
    yield from _ended(running)


def _is_ready(worker: _Worker) -> bool:
    """Whether a worker has told that it can go on with another model. One that is to end, does."""
    with contextlib.suppress(EOFError, OSError):
        assert worker.connection is not None
        return worker.connection.recv_bytes() == READY and worker.cause is None
    return False


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
        if worker.connection is not None:
            worker.connection.close()
        if worker.job is not None:
            yield Ended(worker.job.model.name, cause, abs(code), time.monotonic() - worker.began, memory)


def _watch(worker: _Worker, limits: Limits) -> None:
    """Ends a worker that is beyond a limit: for time it may still write its log, for memory it may not."""
    if worker.job is None:
        return
    now = time.monotonic()
    worker.memory = max(worker.memory, memory_of(worker.number))
    _shorten(worker.job.files.output)
    if worker.cause is None and limits.memory is not None and worker.memory > limits.memory:
        worker.cause = "the memory limit"
        _kill(worker)
    elif worker.cause is None and now - worker.began > limits.seconds:
        worker.cause, worker.stopped = "the time limit", now
        _signal(worker, signal.SIGTERM)
    elif worker.cause is not None and now - worker.stopped > _GRACE:
        _kill(worker)


def memory_of(process: int) -> int:
    """Bytes of memory that a process uses now; 0 if the system does not tell."""
    try:
        pages = pathlib.Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _peak(process: int) -> int:
    """The most memory that a process has used, in bytes; 0 if the system does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        status = pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    return 0


def _forget_peak(process: int) -> None:
    """Lets the most memory of a process count from now on."""
    with contextlib.suppress(OSError):
        pathlib.Path(f"/proc/{process}/clear_refs").write_text("5", encoding="ascii")


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
