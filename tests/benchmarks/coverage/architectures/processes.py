"""Trials in processes of their own: a crash is an outcome, and so is the end of the time."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import multiprocessing
import os
import warnings
from collections.abc import Iterable, Iterator
from multiprocessing import connection
from typing import Any

import torch

from benchmarks.coverage.comparison import Outcome

from .trials import Result, Trial, run

_FORK = multiprocessing.get_context("fork")


@dataclasses.dataclass
class _Running:
    trial: Trial
    process: Any
    answer: Any


def results(wanted: Iterable[Trial], workers: int, seconds: int) -> Iterator[tuple[Trial, Result]]:
    """The results in the order in which they come.

    Args:
        wanted: The trials.
        workers: How many run at the same time.
        seconds: The time limit of a trial, of the processor's time.
    """
    rest = iter(wanted)
    running: dict[Any, _Running] = {}
    while True:
        for trial in rest:
            started = _start(trial, seconds)
            running[started.answer] = started
            if len(running) >= workers:
                break
        if not running:
            return
        for answer in connection.wait(list(running)):
            done = running.pop(answer)
            yield done.trial, _received(done)


def _start(trial: Trial, seconds: int) -> _Running:
    answer, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_work, args=(trial, sender, seconds))
    process.start()
    sender.close()
    return _Running(trial, process, answer)


def _work(trial: Trial, sender: Any, seconds: int) -> None:
    import resource

    # NOTE: the kernel ends a process that has used its time, whatever it does: code in C++ does not return to a signal handler.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    with contextlib.redirect_stdout(open(os.devnull, "w")):  # noqa: PTH123  the process ends soon
        sender.send(run(trial))


def _received(done: _Running) -> Result:
    try:
        found: Result = done.answer.recv()
    except EOFError:
        done.process.join()
        return Result((Outcome.SLOW if done.process.exitcode == -9 else Outcome.CRASHED).value, message=f"exit {done.process.exitcode}")
    done.process.join()
    return found
