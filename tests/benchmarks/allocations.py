"""The memory of tensors on the CPU: blocks of torch's allocator, and NumPy's arrays."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

Curve = list[tuple[float, int]]
"""Memory over time: seconds since the start, and the bytes from then on."""

_SHARE = 0.1
"""The share of the time that is spent on looking at NumPy's arrays."""


def allocated(call: Callable[[], object], *, numpy: bool = False) -> Curve:
    """The memory that tensors take while `call` runs, above the memory before. The result of `call` lives until the end.

    The profiler sees each block that torch's allocator hands out or gets back, also within operators; fake tensors have none. The
    buffers of oneDNN are in resident memory only.

    Args:
        call: The function to watch.
        numpy: Whether NumPy's arrays also count: other libraries keep tensors in them. This samples the arrays now and then, so it can miss
            short-lived ones, and the true peak of code that uses many is higher. It takes several times as long.
    """
    with contextlib.ExitStack() as stack:
        profiled = stack.enter_context(profile(activities=[ProfilerActivity.CPU], profile_memory=True))
        arrays = stack.enter_context(_arrays()) if numpy else []
        started = time.time_ns()
        _kept = call()
    events = profiled.profiler.kineto_results.events()
    blocks = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    changes = [(at, now - before) for (_, before), (at, now) in itertools.pairwise([(0, 0), *arrays])]
    curve: Curve = [(0.0, 0)]
    for at, change in heapq.merge(changes, blocks):
        curve.append((max(0.0, (at - started) / 1e9), curve[-1][1] + change))
    return curve


@contextlib.contextmanager
def _arrays() -> Iterator[list[tuple[int, int]]]:
    """The times of the samples of NumPy's arrays, in ns, and the bytes of the arrays; the last sample is at the end."""
    seen: list[tuple[int, int]] = []
    done = threading.Event()

    def look() -> None:
        started = time.time_ns()
        traces = tracemalloc.take_snapshot().filter_traces([tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)]).traces
        seen.append((time.time_ns(), sum(trace.size for trace in traces)))
        done.wait((time.time_ns() - started) / 1e9 / _SHARE)

    def watch() -> None:
        while not done.is_set():
            look()

    watching = threading.Thread(target=watch)
    tracemalloc.start()
    watching.start()
    try:
        yield seen
    finally:
        done.set()
        watching.join()
        look()
        tracemalloc.stop()


def cuda_history() -> Curve:
    """The memory of torch's allocator on the current CUDA device since the call of `torch.cuda.memory._record_memory_history`."""
    signs = {"alloc": 1, "free_completed": -1}
    events = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
    curve: Curve = []
    for event in events:
        if event["action"] in signs:
            bytes_now = (curve[-1][1] if curve else 0) + signs[event["action"]] * event["size"]
            curve.append(((event["time_us"] - events[0]["time_us"]) / 1e6, bytes_now))
    return curve


def peak(curve: Curve) -> int:
    """The largest number of bytes."""
    return max(size for _, size in curve)
