"""Runs pairs of operator and dtype in several processes, any of which may crash."""

from __future__ import annotations

import logging
import multiprocessing
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from typing import TypeVar

import torch

from .cases import Pair

_Found = TypeVar("_Found")


def run(task: Callable[[Pair], _Found], wanted: Iterable[Pair], workers: int) -> Iterator[tuple[Pair, _Found | None]]:
    """What `task` finds for each pair, in the order in which the results come. None stands for a pair whose process died.

    The pairs that ran beside such a one run again, each by itself.
    """
    suspects: list[Pair] = []
    rest = list(wanted)
    while rest or suspects:
        batch = suspects[:1] or rest
        with futures.ProcessPoolExecutor(1 if suspects else workers, multiprocessing.get_context("fork"), _start) as pool:
            running = {pool.submit(task, pair): pair for pair in batch}
            done: set[Pair] = set()
            for each in futures.as_completed(running):
                if not isinstance(each.exception(), futures.process.BrokenProcessPool):
                    done.add(running[each])
                    yield running[each], each.result()
        left = [pair for pair in batch if pair not in done]
        if suspects:
            yield from ((pair, None) for pair in left)
            suspects = suspects[1:]
        else:
            # NOTE: the pool starts pairs in order, and has at most one more than its workers under way.
            suspects, rest = left[: workers + 1], left[workers + 1 :]


def _start() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
