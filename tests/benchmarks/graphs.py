"""The graphs of the sample of architectures beside those of `torch.onnx.export`: nodes, latency, and the memory of the export."""

from __future__ import annotations

import collections
import ctypes
import dataclasses
import gc
import multiprocessing
import statistics
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

import psutil
import torch
from rich.console import Console
from rich.table import Table

import onnxplain

from . import contenders, measure, models, show
from .architectures import FAMILIES, Architecture
from .measure import Pair
from .models import Subject
from .verdict import SAMPLE_LATENCY, Verdict, quantile

LATENCY_SECONDS = 0.3
"""How many seconds two sessions take turns. There are three pairs of sessions for each architecture."""
_WORST = 10


@dataclasses.dataclass(frozen=True)
class Graphs:
    """Our graph of one architecture beside theirs.

    Attributes:
        family: Its family.
        name: Its name.
        nodes: ONNX nodes.
        latency: One run in ONNX Runtime with one thread, in milliseconds of CPU time.
        memory: The largest resident memory during the export, above the memory before it, in MiB.
        more: Of which ONNX operators our graph has more nodes than theirs, and how many.
        fewer: Of which operators it has fewer.
    """

    family: str
    name: str
    nodes: Pair
    latency: Pair
    memory: Pair
    more: dict[str, int]
    fewer: dict[str, int]


def compare(console: Console, families: Sequence[str]) -> None:
    """Prints nodes, latency and memory of the architectures of the families beside theirs."""
    threads = torch.get_num_threads()
    # NOTE: memory is measured in forks of this process, and a fork has none of its threads.
    torch.set_num_threads(1)
    for export in contenders.EXPORTERS.values():
        export(models.build("lstm"), None)
    found: list[Graphs] = []
    failures: dict[str, str] = {}
    for family in families:
        for name, builder in FAMILIES[family].items():
            try:
                found.append(_graphs(family, name, builder))
            except onnxplain.ExportFailed as failed:
                failures[name] = f"onnxplain fails: {str(failed).splitlines()[0]}"
            except Exception as error:  # noqa: BLE001  whatever torch.onnx.export raises is its result here
                failures[name] = f"torch.onnx.export fails: {measure.reason(error)}"
    torch.set_num_threads(threads)
    _print(console, found, failures)


def _graphs(family: str, name: str, builder: Architecture) -> Graphs:
    torch.manual_seed(0)
    subject = builder()
    subject.model.eval()
    # NOTE: a model imports modules when it first runs, and the memory of the modules is not the export's.
    subject.inputs.outputs_of(subject.model)
    memory = {kind: _memory(export, subject) for kind, export in contenders.EXPORTERS.items()}
    ours, theirs = contenders.ours(subject).model, contenders.theirs(subject).model
    counts = [collections.Counter(node.op_type for node in contenders.nodes(model)) for model in (ours, theirs)]
    totals = [count.total() for count in counts]
    return Graphs(
        family,
        name,
        Pair(*totals, totals[0] / max(totals[1], 1)),
        measure.latency_of(subject, ours, theirs, 1, LATENCY_SECONDS),
        Pair(memory["ours"], memory["theirs"], measure.memory_ratio(memory["ours"], memory["theirs"])),
        dict((counts[0] - counts[1]).most_common()),
        dict((counts[1] - counts[0]).most_common()),
    )


def _memory(export: Callable[[Subject, None], object], subject: Subject) -> float:
    """The largest resident memory of an export in a fork of this process, in MiB above the memory before it."""
    gc.collect()
    # NOTE: what the allocator keeps for later would hide the first MiBs of the export.
    ctypes.CDLL(None).malloc_trim(0)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=_export_alone, args=(export, subject, there), daemon=True)
    process.start()
    there.close()
    peak = float(here.recv())
    process.join()
    return peak


def _export_alone(export: Callable[[Subject, None], object], subject: Subject, pipe: Connection) -> None:
    process = psutil.Process()
    before, peak, done = _private(process), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, _private(process) - before)

    watching = threading.Thread(target=watch)
    watching.start()
    export(subject, None)
    done.set()
    watching.join()
    pipe.send(max(peak, _private(process) - before) / 2**20)


def _private(process: psutil.Process) -> int:
    """The bytes of resident memory that are no file's: a fork has mapped them all from the start, but of files only what it reads."""
    usage = process.memory_info()
    return int(usage.rss - usage.shared)


def _print(console: Console, found: Sequence[Graphs], failures: dict[str, str]) -> None:
    table = Table(title="ours | theirs", title_justify="left")
    for title in ("family", "model", "nodes", "ratio", "latency ms", "ratio", "MiB", "ratio", "more", "fewer"):
        table.add_column(title, overflow="fold")
    for each in found:
        cells = [cell for pair, spec in _pairs(each) for cell in (show.both(pair, spec), f"{pair.ratio:.2f}")]
        table.add_row(each.family, each.name, *cells, show.counts(each.more), show.counts(each.fewer))
    console.print(table)
    for name, failure in failures.items():
        console.print(f"{name}: {failure}", markup=False)
    if not found:
        return
    kinds = {kind: {each.name: getattr(each, kind).ratio for each in found} for kind in ("nodes", "latency", "memory")}
    summary = Table("ours / theirs", "models", "p50", "p90", "worst", "the worst models")
    for kind, ratios in kinds.items():
        worst = sorted(ratios, key=ratios.__getitem__, reverse=True)[:_WORST]
        shares = (f"{quantile(list(ratios.values()), share):.2f}" for share in (0.5, 0.9, 1.0))
        summary.add_row(kind, str(len(ratios)), *shares, ", ".join(f"{name} {ratios[name]:.2f}" for name in worst))
    console.print(summary)
    for kind, limit in (("nodes", 1.0), ("latency", SAMPLE_LATENCY)):
        missed = tuple(name for name, ratio in kinds[kind].items() if ratio > limit)
        reached = f"worst {max(kinds[kind].values()):.2f}, {len(missed)} of {len(found)} above"
        show.verdict(console, Verdict(f"{kind}, ours / theirs, of each model <= {limit:g}", reached, not missed, missed))
    middle = statistics.median(kinds["memory"].values())
    show.verdict(console, Verdict("peak memory, ours / theirs, median <= 1", f"{middle:.2f}", middle <= 1))


def _pairs(each: Graphs) -> list[tuple[Pair, str]]:
    return [(each.nodes, ".0f"), (each.latency, ".2f"), (each.memory, ".1f")]
