"""Questions of their own: how time grows with the graph, what the log costs, what a fresh process costs, where a stage spends its time."""

from __future__ import annotations

import cProfile
import pathlib
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

import onnxplain

from . import contenders, measure, models

LAYERS = (8, 16, 32, 64)

_MODEL = "import torch; m = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval(); x = (torch.randn(2, 8),); "
_COLD = {
    "import torch": "import torch",
    "bare capture": _MODEL + "torch.export.export(m, x, strict=False)",
    "ours": _MODEL + "import onnxplain; onnxplain.export(m, x, 'small.onnx')",
    "theirs": _MODEL + "torch.onnx.export(m, x, 'small.onnx', dynamo=True, verbose=False)",
}


def scaling(console: Console, repeat: int) -> None:
    """How the time after capture grows with the layers of a small Llama: a line fitted through it, and the growth per doubling."""
    after = []
    table = Table("layers", "ONNX nodes", "after capture s", "ms per layer", "times the line before")
    for layers in LAYERS:
        subject = models.llama_of(layers, width=64)
        runs = [contenders.ours(subject) for _ in range(repeat + 1)][1:]
        after.append(statistics.median(_after_capture(program) for program in runs))
        count = sum(1 for _ in contenders.nodes(runs[0].model))
        growth = f"{after[-1] / after[-2]:.2f}" if len(after) > 1 else ""
        table.add_row(str(layers), str(count), f"{after[-1]:.3f}", f"{1000 * after[-1] / layers:.1f}", growth)
    slope, offset = np.polyfit(LAYERS, after, 1)
    residue = np.subtract(after, np.polyval((slope, offset), LAYERS))
    fit = 1 - float(np.square(residue).sum() / np.square(np.subtract(after, np.mean(after))).sum())
    console.print(table)
    console.print(f"{1000 * slope:.1f} ms a layer and {1000 * offset:.1f} ms beside; R^2 = {fit:.4f}")


def _after_capture(program: onnxplain.ONNXProgram) -> float:
    return sum(seconds for stage, seconds in measure.stage_seconds(program).items() if stage != "capture")


def log_cost(console: Console, names: Sequence[str], repeat: int) -> None:
    """What writing the log as SARIF adds to an export."""
    table = Table("model", "without s", "with SARIF s", "ratio")
    for name in names:
        pair = _with_and_without_log(models.build(name), repeat)
        table.add_row(name, f"{pair.theirs:.3f}", f"{pair.ours:.3f}", f"{pair.ratio:.3f}")
    console.print(table)


def _with_and_without_log(subject: models.Subject, repeat: int) -> measure.Pair:
    contenders.ours(subject)
    without: list[float] = []
    with_log: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        sarif = pathlib.Path(folder) / "log.sarif"
        for _ in range(repeat):
            without.append(measure.seconds(lambda: contenders.ours(subject)))
            with_log.append(measure.seconds(lambda: contenders.ours(subject, sarif=sarif)))
    return measure.paired(with_log, without)


def cold(console: Console, repeat: int) -> None:
    """From the start of a Python process to a saved small model."""
    taken: dict[str, list[float]] = {title: [] for title in _COLD}
    with tempfile.TemporaryDirectory() as folder:
        # NOTE: the round before the first one fills the file system's caches.
        for number in range(repeat + 1):
            for title, program in _COLD.items():
                started = time.perf_counter()
                subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, check=True)
                if number:
                    taken[title].append(time.perf_counter() - started)
    table = Table("process", "s", "theirs / it")
    for title, seconds in taken.items():
        table.add_row(title, f"{statistics.median(seconds):.2f}", f"{measure.median_ratio(taken['theirs'], seconds):.2f}")
    console.print(table)


def profile(names: Sequence[str], stage: str) -> None:
    """Where one stage spends its time, over all the models: 40 functions by cumulative time, and 40 by their own."""
    profiler = cProfile.Profile()

    def on_stage(name: str) -> None:
        profiler.disable()
        if name == stage:
            profiler.enable()

    for name in names:
        subject = models.build(name)
        contenders.ours(subject)
        contenders.ours(subject, _on_stage=on_stage)
        profiler.disable()
    stats = pstats.Stats(profiler)
    for order in ("cumulative", "tottime"):
        stats.sort_stats(order).print_stats(40)
