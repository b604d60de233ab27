"""The engine on this machine: keeps a host running until each model has had its worker."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import multiprocessing
import os
import pathlib
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any, Literal

from . import libraries, worker
from .host import Began, Unable, serve
from .jobs import Ended, Job, Limits, Loader, TriageError

_NO_LIMIT = 2**60
"""Control groups without a limit tell a number beyond this one, or "max"."""

_PATIENCE = 5.0
"""Seconds that a host has to end its workers."""

_FEW = 4
"""Models for each worker for which it does not pay to export others first."""


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory() -> int | None:
    """Bytes of memory that this process may use; None where the system does not tell what a process uses."""
    if not pathlib.Path("/proc/self/statm").exists():
        return None
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            limits.append(int(pathlib.Path(file).read_text(encoding="ascii")))
    return min(limit for limit in limits if limit < _NO_LIMIT)


@dataclasses.dataclass(frozen=True)
class Workers:
    """How to run workers.

    Attributes:
        number: The most at a time.
        loader: What loads a model.
        command_line: The command, for the logs.
        threads: The threads of torch in each; None shares the cores.
        start: How multiprocessing starts their host: "fork", or "spawn" for a caller with threads.
    """

    number: int
    loader: Loader
    command_line: str
    threads: int | None = None
    start: Literal["fork", "spawn"] = "fork"


def run_here(jobs: Sequence[Job], limits: Limits, workers: Workers) -> Iterator[Ended]:
    """Runs each job, and yields how it ended, in the order of their ends.

    A model may kill the host. The models that ran then run again, one at a time, which shows the one that does it.

    Raises:
        TriageError: The system cannot fork processes, or torch cannot be imported.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        raise TriageError(
            "onnxplain triage forks processes, which this system cannot do. It runs on Linux and macOS, and in WSL on Windows."
        )
    waiting = {job.model.name: job for job in jobs}
    suspects: dict[str, Job] = {}
    while waiting:
        batch, count = (suspects, 1) if suspects else (waiting, workers.number)
        running: dict[str, Job] = {}
        for message in _hosted([*batch.values()], limits, dataclasses.replace(workers, number=count)):
            if isinstance(message, Ended):
                waiting.pop(message.name)
                running.pop(message.name)
                yield message
            else:
                running[message.name] = waiting[message.name]
        if not running and any(name in waiting for name in batch):
            raise TriageError("The process that imports torch ended before it ran a model: out of memory, or something killed it.")
        if count == 1:
            for name in running:
                waiting.pop(name)
                yield Ended(name, "the end of its parent process")
        suspects = {name: job for name, job in (suspects if count == 1 else running).items() if name in waiting}


def _hosted(jobs: Sequence[Job], limits: Limits, workers: Workers) -> Iterator[Began | Ended]:
    """What a new host tells of its workers, until it ends. It ends when the caller goes away."""
    context: Any = multiprocessing.get_context(workers.start)  # typeshed knows no processes of a context that is not known
    here, there = context.Pipe()
    threads = workers.threads or max(1, cores() // workers.number)
    used = {job.model.source for job in jobs if job.model.is_of_library}
    serving = functools.partial(
        serve,
        jobs,
        limits,
        workers.number,
        prepare=functools.partial(prepare, used, warm=len(jobs) > _FEW * workers.number),
        run=functools.partial(worker.run, loader=workers.loader, threads=threads, command_line=workers.command_line),
    )
    host = context.Process(target=_host, args=(here, there, serving))
    host.start()
    there.close()
    try:
        # NOTE: the other end closes when the host ends, since no worker has it. A killed host may have sent half a message.
        with contextlib.suppress(EOFError, OSError):
            while True:
                message = here.recv()
                if isinstance(message, Unable):
                    raise TriageError(f"No model can be exported: {message.message}")
                yield message
    finally:
        here.close()
        host.join(_PATIENCE)
        host.kill()
        host.join()


def _host(other: Connection, connection: Connection, serve: Callable[[Connection], None]) -> None:
    # NOTE: the fork has copied the end of the command. With the copy open, this process would not see that the command is gone.
    other.close()
    # NOTE: a command that cannot go on closes its end at any time.
    with contextlib.suppress(BrokenPipeError):
        serve(connection)


def prepare(used: Collection[str], *, warm: bool) -> None:
    """Imports what all workers need, with the libraries that they use. Small exports load what an export needs only once in a process."""
    import torch

    import onnxplain

    torch.set_num_threads(1)
    # NOTE: the operators of most models are those of convolutions and of attention.
    attention = torch.nn.TransformerEncoderLayer(4, 2, 4, batch_first=True)
    model = torch.nn.Sequential(torch.nn.Conv1d(4, 4, 1), torch.nn.BatchNorm1d(4), attention).eval()

    class _Fails(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else x.median().item() * x

    examples = [libraries.Built(model, (torch.ones(2, 4, 4),))] if warm else []
    for name in sorted(used):
        # NOTE: each model of the library tells why it cannot be imported.
        with contextlib.suppress(Exception):
            examples.append(libraries.example(name))
    if warm:
        # NOTE: what explains a failure, only a failure imports.
        examples.append(libraries.Built(_Fails(), (torch.ones(2),)))
    with tempfile.TemporaryDirectory(prefix="onnxplain-triage-") as folder:
        log = pathlib.Path(folder, "warm.sarif")
        for each in examples if warm else ():
            for dynamic_shapes in (None, True):
                with contextlib.suppress(onnxplain.ExportFailed):
                    onnxplain.export(each.model, each.args, kwargs=each.kwargs, dynamic_shapes=dynamic_shapes, sarif=log)
    worker.homes()
    # NOTE: a collection in a worker would copy the memory that it shares with the host.
    gc.freeze()
