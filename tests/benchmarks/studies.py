"""Separate studies: how time grows with the graph, the cost of the log and of a fresh process, and the time within a stage."""

from __future__ import annotations

import cProfile
import pathlib
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir
from rich.console import Console
from rich.table import Table

import onnxplain
from onnxplain.diagnostics import SARIF_PROFILES

from . import contenders, llama, measure, models, show
from .verdict import COST_OF_LOG, FAKE_MIB, GROWTH, LARGE_LOG_MIB, LARGE_LOG_SECONDS, TIMES_FASTER_COLD, Verdict

LAYERS = (8, 16, 32, 64)

# The MLP of PyTorch's documentation of the exporter.
_MODEL = """
import torch
from torch import nn
m = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).eval()
x = (torch.randn(97, 8),)
"""
_COLD = {
    "import torch": "import torch",
    "import torch, onnxplain": "import torch, onnxplain",
    "bare capture": _MODEL + "torch.export.export(m, x, strict=False)",
    "ours": _MODEL + "import onnxplain; onnxplain.export(m, x, 'small.onnx')",
    "theirs": _MODEL + "torch.onnx.export(m, x, 'small.onnx', dynamo=True, verbose=False)",
}
_DONE = "\nimport time; print(time.time(), flush=True)"


def scaling(console: Console, repeat: int) -> None:
    """How the CPU time after capture grows with the layers of a small Llama: flat, with functions, and that of torch.onnx.export."""
    table = Table("layers", "ONNX nodes", "ms, flat", "functions", "theirs", "bare copy of the nodes")
    costs: dict[str, list[float]] = {"flat": [], "functions": [], "theirs": [], "copy": []}
    for layers in LAYERS:
        # NOTE: most of the time would go into captures.
        program = contenders.capture(models.llama_of(layers, width=64))
        graph = onnxplain.export(program).model.graph
        costs["flat"].append(_processor_ms(lambda each=program: onnxplain.export(each), repeat))
        costs["functions"].append(_processor_ms(lambda each=program: onnxplain.export(each, functions="modules"), repeat))
        costs["theirs"].append(_processor_ms(lambda each=program: contenders.theirs_after_capture(each), 1))
        costs["copy"].append(_processor_ms(lambda each=graph: _copy_of_nodes(each), repeat))
        table.add_row(str(layers), str(len(graph)), *(f"{each[-1]:.0f}" for each in costs.values()))
    console.print(table)
    slope, offset = np.polyfit(LAYERS, costs["flat"], 1)
    console.print(f"flat: {slope:.2f} ms a layer and {offset:.1f} ms beside")
    grown = {name: ms[-1] / ms[0] for name, ms in costs.items() if name != "copy"}
    shown = ", ".join(f"{name} {growth:.2f}" for name, growth in grown.items())
    claim = f"{LAYERS[-1]} layers / {LAYERS[0]} layers, after capture <= {GROWTH}"
    show.verdict(console, Verdict(claim, shown, max(grown["flat"], grown["functions"]) <= GROWTH))


def _copy_of_nodes(graph: ir.Graph) -> None:
    """Makes all nodes of a graph again, with their outputs and metadata, and does nothing else."""
    values = {value: value for value in (*graph.inputs, *graph.initializers.values())}
    copies = []
    for node in graph:
        outputs = [ir.Value(name=value.name, shape=value.shape, type=value.type) for value in node.outputs]
        read = [None if value is None else values[value] for value in node.inputs]
        facts = dict(node.metadata_props)
        copies.append(
            ir.Node(node.domain, node.op_type, read, node.attributes.values(), outputs=outputs, name=node.name, metadata_props=facts)
        )
        values.update(zip(node.outputs, outputs, strict=True))
    ir.Graph([], [], nodes=copies)
    for node in copies:
        node.resize_inputs(0)


def _processor_ms(call: Callable[[], object], repeat: int) -> float:
    """The CPU milliseconds of a call: the least of `repeat` calls after one that warms up. (Other load only adds time.)"""
    times = []
    for _ in range(repeat + 1):
        started = time.process_time()
        call()
        times.append(1000 * (time.process_time() - started))
    return min(times[1:])


def log_cost(console: Console, names: Sequence[str], repeat: int) -> None:
    """The time that writing the log as SARIF adds to an export."""
    table = Table("model", "export s", "SARIF ms", "ratio")
    ratios = []
    for name in names:
        exports, logs = _exports_and_logs(models.build(name), repeat)
        ratios.append(1 + measure.median_ratio(logs, exports))
        table.add_row(name, f"{statistics.median(exports):.3f}", f"{1000 * statistics.median(logs):.2f}", f"{ratios[-1]:.3f}")
    console.print(table)
    median = statistics.median(ratios)
    show.verdict(console, Verdict(f"export with its log / without, median <= {COST_OF_LOG}", f"{median:.3f}", median <= COST_OF_LOG))


def _exports_and_logs(subject: models.Subject, repeat: int) -> tuple[list[float], list[float]]:
    """Seconds of exports, and of writing their logs. (Two exports differ by more than the cost of a log.)"""
    exports: list[float] = []
    logs: list[float] = []
    programs: list[onnxplain.ONNXProgram] = []
    with tempfile.TemporaryDirectory() as folder:
        sarif = pathlib.Path(folder) / "log.sarif"
        contenders.ours(subject, sarif=sarif)
        for _ in range(repeat):
            exports.append(measure.seconds(lambda: programs.append(contenders.ours(subject))))
            logs.append(measure.seconds(lambda: programs[-1].save_diagnostics(sarif)))
    return exports, logs


_LARGE_LOG = """
import pathlib, re, sys, time
from onnxplain.process import without_collection
from onnxplain.diagnostics import *
from onnxplain.diagnostics import sarif
from onnxplain.rules import DataDependentBranch, ExportCutShort, InternalError

def log(count):
    context = DiagnosticContext(
        tool=Tool("onnxplain", "0.1.0", "https://example.com"), subject="Net", options=DiagnosticOptions(),
        internal_error=lambda stage, error: InternalError(stage=stage, error=str(error)),
        cut_short=lambda stage, reason: ExportCutShort(stage=stage, reason=reason),
    )
    for line in range(1, count + 1):
        place = Location(str(source), Region(line, 10, line, 20), "forward", f"layers.{line}.attention")
        stack = (*(Location(str(source), Region(each), "forward") for each in range(1, 5)), place)
        flow = (Step("the source calls item"), Step("captured as aten.item.default", "captured", f"item_{line}"))
        evidence = Evidence(place, stack, flow, related=(Location(str(source), Region(1), message="The model."),))
        fix = Fix("Use torch.cond.", Confidence.SAFE, (Edit(str(source), Region(line, 10, line, 20), "torch.cond"),))
        context.report(DataDependentBranch(condition=f"x{line}"), at=evidence, notes=["A note."], fixes=[fix])
    nodes = {f"item_{line}": (line, "") for line in range(1, count + 1)}
    context.graph("captured", lambda: GraphText("captured", "".join(f"{node} = aten.item(x)\\n" for node in nodes), nodes))
    return context.log()

def peak():
    # NOTE: the peak of `getrusage` begins with that of the parent process.
    return int(re.search("VmHWM:\\\\s+(\\\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024

profile, count = sys.argv[1], int(sys.argv[2])
source = pathlib.Path("source.py").absolute()
source.write_text("".join(f"    y{line} = torch.relu(x{line}.item(), x{line} + 1)\\n" for line in range(count)))
sarif.write(log(10), pathlib.Path("small.sarif"), profile=profile)
memory, seconds = peak(), time.process_time()
large = log(count)
with without_collection():  # as an export does
    sarif.write(large, pathlib.Path("large.sarif"), profile=profile)
print(time.process_time() - seconds, peak() - memory)
"""


def large_log(console: Console, repeat: int, count: int = 10_000) -> None:
    """The cost of a log of many findings, from the first report to the written file: CPU seconds and memory of a fresh process."""
    table = Table("profile", "findings", "CPU s", "more MiB at most")
    verdicts = []
    for profile in SARIF_PROFILES:
        costs = []
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-c", _LARGE_LOG, profile, str(count)]
                shown = subprocess.run(command, cwd=folder, capture_output=True, check=True, text=True).stdout
            costs.append([float(number) for number in shown.split()])
        seconds, memory = (statistics.median(each) for each in zip(*costs, strict=True))
        table.add_row(profile, f"{count:,}", f"{seconds:.2f}", f"{memory:.0f}")
        verdicts.append(Verdict(f"{profile}, CPU s <= {LARGE_LOG_SECONDS}", f"{seconds:.2f}", seconds <= LARGE_LOG_SECONDS))
        verdicts.append(Verdict(f"{profile}, MiB <= {LARGE_LOG_MIB}", f"{memory:.0f}", memory <= LARGE_LOG_MIB))
    console.print(table)
    for each in verdicts:
        show.verdict(console, each)


def fake(console: Console) -> None:
    """The cost of exporting a Llama with 70 B parameters in a fresh process that never has its weights."""
    table = Table("step", "s", "CPU s", "peak MiB so far")
    with tempfile.TemporaryDirectory() as folder:
        steps = llama.export(pathlib.Path(folder))
    for step, (seconds, processor, peak) in steps.items():
        table.add_row(step, f"{seconds:.1f}", f"{processor:.1f}", f"{peak:.0f}")
    console.print(table)
    most = max(peak for _, _, peak in steps.values())
    show.verdict(console, Verdict(f"peak MiB <= {FAKE_MIB}", f"{most:.0f}", most <= FAKE_MIB))


def cold(console: Console, repeat: int) -> None:
    """From the start of a Python process to a saved small model, and to the end of the process, where Python unloads its modules."""
    done: dict[str, list[float]] = {title: [] for title in _COLD}
    ended: dict[str, list[float]] = {title: [] for title in _COLD}
    with tempfile.TemporaryDirectory() as folder:
        # NOTE: the round before the first one fills the file system's caches.
        for number in range(repeat + 1):
            for title, program in _COLD.items():
                started = time.time()
                process = subprocess.run([sys.executable, "-c", program + _DONE], cwd=folder, capture_output=True, check=True)
                if number:
                    ended[title].append(time.time() - started)
                    done[title].append(float(process.stdout.split()[-1]) - started)
    table = Table("process", "s until done", "theirs / it", "s until its end", "theirs / it")
    for title in _COLD:
        cells = [
            (f"{statistics.median(seconds[title]):.2f}", f"{measure.median_ratio(seconds['theirs'], seconds[title]):.2f}")
            for seconds in (done, ended)
        ]
        table.add_row(title, *cells[0], *cells[1])
    console.print(table)
    reached = measure.median_ratio(done["theirs"], done["ours"])
    show.verdict(console, Verdict(f"theirs / ours, until done >= {TIMES_FASTER_COLD}", f"{reached:.2f}", reached >= TIMES_FASTER_COLD))


def profile(names: Sequence[str], stage: str) -> None:
    """The functions that take the time of one stage, over all models: 40 by cumulative time, and 40 by their own time."""
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
