"""Measures one model. Contenders take turns in every round, so that load on the machine affects all of them."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import gc
import multiprocessing
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import onnx_ir as ir
import onnxruntime as ort
import psutil

import onnxplain

from . import contenders, models
from .models import Subject

LATENCY_SECONDS = 4.0
"""How many seconds two sessions, one for each graph of a model, take turns in ONNX Runtime."""
_SESSIONS = 3
_FEWEST_RUNS = 5
_WARM_UPS = 2
_NOISE = 3.0
"""MiB: Python takes memory from the system a MiB at a time, and how full the last ones are is chance."""
_MIB = 2**20


@dataclasses.dataclass(frozen=True)
class Pair:
    """Our number beside theirs, which is None if theirs failed, and the ratio of ours to theirs: the median of the rounds' ratios."""

    ours: float
    theirs: float | None = None
    ratio: float | None = None


@dataclasses.dataclass(frozen=True)
class Result:
    """The measurements of one model.

    Attributes:
        name: Its name.
        capture: Bare capture in seconds.
        seconds: Whole exports, in seconds.
        over_capture: Our whole export to bare capture, the median of the rounds' ratios.
        stages: The seconds of our stages, in order, in the round whose total is the median; `rest` is the time between and around them.
        nodes: ONNX nodes.
        more: Of which ONNX operators our graph has more nodes than theirs, and how many.
        fewer: Of which operators it has fewer.
        latency: One run in ONNX Runtime, in milliseconds.
        memory: The largest resident memory during the export, above the memory before it, in MiB.
        failure: The reason why theirs has no result.
    """

    name: str
    capture: float
    seconds: Pair
    over_capture: float
    stages: dict[str, float]
    nodes: Pair
    more: dict[str, int]
    fewer: dict[str, int]
    latency: Pair | None = None
    memory: Pair | None = None
    failure: str = ""


def measure(name: str, *, repeat: int, save: bool, latency: bool, memory: bool, threads: int) -> Result:
    """Measures one of `models.MODELS`.

    Args:
        name: The model.
        repeat: Rounds, after a warm-up of each contender.
        save: Whether the exports write files.
        latency: Whether both graphs run in ONNX Runtime.
        memory: Whether both exports run once more, in separate processes.
        threads: How many threads ONNX Runtime has for one operator.
    """
    subject = models.build(name)
    our_model, their_model, failure = contenders.ours(subject).model, None, ""
    try:
        their_model = contenders.theirs(subject).model
    except Exception as error:  # noqa: BLE001  whatever torch.onnx.export raises is its result here
        failure = reason(error)
    with _folder(save) as folder:
        result = _timed(subject, name, repeat, folder, our_model, their_model, failure)
    if latency:
        result = dataclasses.replace(result, latency=latency_of(subject, our_model, their_model, threads, LATENCY_SECONDS))
    del subject, our_model, their_model
    if memory:
        ours = peak_memory(name, "ours", save=save)
        theirs = None if failure else peak_memory(name, "theirs", save=save)
        result = dataclasses.replace(result, memory=Pair(ours, theirs, None if theirs is None else memory_ratio(ours, theirs)))
    return result


def _timed(
    subject: Subject, name: str, repeat: int, folder: pathlib.Path | None, our_model: ir.Model, their_model: ir.Model | None, failure: str
) -> Result:
    stages: list[dict[str, float]] = []
    runs: dict[str, Callable[[], object]] = {
        "capture": lambda: contenders.capture(subject),
        "ours": lambda: stages.append(stage_seconds(contenders.ours(subject, folder))),
    }
    if their_model is not None:
        runs["theirs"] = lambda: contenders.theirs(subject, folder)
    taken: dict[str, list[float]] = {kind: [] for kind in runs}
    contenders.capture(subject)
    for number in range(repeat):
        # NOTE: the first contender of a round finds the machine's caches as another contender left them, so the order rotates.
        for kind in list(runs)[:: -1 if number % 2 else 1]:
            taken[kind].append(seconds(runs[kind]))
    ours = taken["ours"]
    middle = ours.index(statistics.median_low(ours))
    stages[middle]["rest"] = max(0.0, ours[middle] - sum(stages[middle].values()))
    counts = {kind: collections.Counter(node.op_type for node in contenders.nodes(model)) for kind, model in _known(our_model, their_model)}
    other = counts.get("theirs", counts["ours"])
    totals = (counts["ours"].total(), other.total())
    return Result(
        name=name,
        capture=statistics.median(taken["capture"]),
        seconds=paired(ours, taken.get("theirs")),
        over_capture=median_ratio(ours, taken["capture"]),
        stages=stages[middle],
        nodes=Pair(totals[0]) if their_model is None else Pair(*totals, totals[0] / totals[1]),
        more=dict((counts["ours"] - other).most_common()),
        fewer=dict((other - counts["ours"]).most_common()),
        failure=failure,
    )


def reason(error: BaseException) -> str:
    """The innermost exception in a line: the outer ones only name the step."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"


def _known(ours: ir.Model, theirs: ir.Model | None) -> list[tuple[str, ir.Model]]:
    return [("ours", ours)] if theirs is None else [("ours", ours), ("theirs", theirs)]


def stage_seconds(program: onnxplain.ONNXProgram) -> dict[str, float]:
    """The seconds of each of our stages."""
    return {stage.name: stage.seconds for stage in program.diagnostics.stages}


def seconds(call: Callable[[], object]) -> float:
    """How many seconds a call takes. Collects the garbage of earlier calls first."""
    gc.collect()
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def paired(ours: Sequence[float], theirs: Sequence[float] | None) -> Pair:
    """The medians of rounds that ran side by side, and the median of their ratios."""
    if theirs is None:
        return Pair(statistics.median(ours))
    return Pair(statistics.median(ours), statistics.median(theirs), median_ratio(ours, theirs))


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """The median of the ratios, round by round: changing load affects both sides of one ratio."""
    return statistics.median(one / other for one, other in zip(numerators, denominators, strict=True))


def memory_ratio(ours: float, theirs: float) -> float:
    """The ratio of two peaks in MiB, in which differences below the noise do not count."""
    return max(ours, _NOISE) / max(theirs, _NOISE)


def latency_of(subject: Subject, our_model: ir.Model, their_model: ir.Model | None, threads: int, seconds: float) -> Pair:
    """The milliseconds of one run in ONNX Runtime: CPU time with one thread, else wall time.

    Args:
        subject: The model and its inputs.
        our_model: Our graph of it.
        their_model: Their graph; None if there is none.
        threads: How many threads ONNX Runtime has for one operator.
        seconds: How long two sessions take turns.
    """
    clock = time.thread_time if threads == 1 else time.perf_counter
    known = _known(our_model, their_model)
    taken: dict[str, list[float]] = {kind: [] for kind, _ in known}
    # NOTE: two sessions of one graph differ by up to two percent for their whole life, because of the place of their memory.
    for number in range(_SESSIONS):
        runs = {kind: _runner(model, subject, threads) for kind, model in known[:: -1 if number % 2 else 1]}
        gc.collect()
        for _ in range(_WARM_UPS):
            for run in runs.values():
                run()
        fewest, ending = len(taken["ours"]) + _FEWEST_RUNS, time.perf_counter() + seconds
        while time.perf_counter() < ending or len(taken["ours"]) < fewest:
            for kind in sorted(runs, reverse=len(taken["ours"]) % 2 == 1):
                started = clock()
                runs[kind]()
                taken[kind].append(1000 * (clock() - started))
    return paired(taken["ours"], taken.get("theirs"))


def _runner(model: ir.Model, subject: Subject, threads: int) -> Callable[[], object]:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    session = ort.InferenceSession(ir.to_proto(model).SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = session.get_inputs()
    tensors = subject.inputs.tensors
    assert len(wanted) == len(tensors), f"{len(wanted)} inputs instead of {len(tensors)}"
    feeds = {each.name: tensor.numpy() for each, tensor in zip(wanted, tensors, strict=True)}
    return lambda: session.run(None, feeds)


def peak_memory(name: str, exporter: str, *, save: bool) -> float:
    """The largest resident memory of the first export in a fresh process, in MiB above the memory with torch loaded and the model built.

    What an exporter loads counts: one that loads more before it needs it would otherwise look smaller.
    """
    samples, _ = watched(_export_alone, name, exporter, save)
    return float(max(size for _, size in samples)) / _MIB


def watched(target: Callable[..., None], *args: object) -> tuple[list[tuple[float, int]], Any]:
    """Runs `target(*args, pipe)` in a fresh process and samples its resident memory every two milliseconds.

    The process sends a message when it is ready, waits for an answer, and sends its result at the end.

    Returns:
        The seconds since it was ready and the bytes above the memory at that time; its result.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=target, args=(*args, there), daemon=True)
    process.start()
    there.close()
    here.recv()
    seen = psutil.Process(process.pid)
    before = seen.memory_info().rss
    samples = [(0.0, 0)]
    started = time.perf_counter()
    here.send("go")
    while not here.poll(0.002):
        samples.append((time.perf_counter() - started, seen.memory_info().rss - before))
    result = here.recv()
    process.join()
    return samples, result


def _export_alone(name: str, exporter: str, save: bool, pipe: Connection) -> None:
    contenders.hush()
    with _folder(save) as folder:
        subject = models.build(name)
        gc.collect()
        pipe.send("ready")
        pipe.recv()
        contenders.EXPORTERS[exporter](subject, folder)
        pipe.send("done")


@contextlib.contextmanager
def _folder(wanted: bool) -> Iterator[pathlib.Path | None]:
    if not wanted:
        yield None
        return
    with tempfile.TemporaryDirectory() as path:
        yield pathlib.Path(path)
