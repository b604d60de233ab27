"""What `functions="modules"` costs in ONNX Runtime: nodes after its optimization, and latency, beside those of the flat model."""

from __future__ import annotations

import collections
import pathlib
import statistics
import tempfile
import time
from typing import Any

import onnx
import onnxruntime as ort
import torch
import zoo
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.export import Dim

import onnxplain

from . import show
from .verdict import SLOWER_FUNCTIONS, Verdict

_ROUNDS = 40
_ROUND_SECONDS = 0.03


def _resnet() -> zoo.Built:
    from transformers import ResNetConfig, ResNetModel

    config = ResNetConfig(embedding_size=16, hidden_sizes=[16, 32, 64, 128], depths=[2, 2, 2, 2], layer_type="basic")
    inputs = zoo.Inputs((torch.randn(1, 3, 96, 96),))
    return zoo.Built(ResNetModel(config).eval(), inputs.args, inputs.kwargs, inputs, lambda **_: inputs, (inputs,))


def compare(console: Console) -> None:
    """Exports models with dynamic sizes flat and with functions, and runs both in turns."""
    cases = {each.name: each for each in zoo.CASES}
    cases["resnet"] = zoo.Case("resnet", _resnet, {"pixel_values": {0: Dim.DYNAMIC, 2: Dim.DYNAMIC, 3: Dim.DYNAMIC}})
    table = Table("model", "functions", "optimized nodes, flat", "more with functions", "ms, flat", "latency / flat")
    slowest = 0.0
    for name in ("mlp", "bert", "resnet", "diffusers_unet"):
        built = cases[name].build()
        with tempfile.TemporaryDirectory() as folder:
            row = _compared(pathlib.Path(folder), built.model.eval(), built, cases[name].dynamic)
        slowest = max(slowest, row[-1])
        table.add_row(name, *row[:-1], f"{row[-1]:.3f}")
    console.print(table)
    show.verdict(console, Verdict(f"latency with functions / flat <= {SLOWER_FUNCTIONS}", f"{slowest:.3f}", slowest <= SLOWER_FUNCTIONS))


def _compared(folder: pathlib.Path, model: nn.Module, built: zoo.Built, shapes: Any) -> tuple[str, str, str, str, float]:
    sessions, counts, functions = [], [], 0
    for index, option in enumerate(("none", "modules")):
        path, optimized = folder / f"{index}.onnx", folder / f"{index}.optimized.onnx"
        program = onnxplain.export(model, built.args, path, kwargs=built.kwargs, dynamic_shapes=shapes, functions=option)  # type: ignore[arg-type]
        options = ort.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads, options.optimized_model_filepath = 3, 1, str(optimized)
        sessions.append(ort.InferenceSession(path, options))
        counts.append(collections.Counter(node.op_type for node in onnx.load(optimized).graph.node))
        functions = len(program.model.functions)
    tensors = zoo.Inputs(built.args, built.kwargs).tensors
    feeds = {each.name: tensor.numpy() for each, tensor in zip(sessions[0].get_inputs(), tensors, strict=True)}
    flat, others = _times(sessions, feeds)
    more = ", ".join(f"{count} {operator}" for operator, count in (counts[1] - counts[0]).items()) or "none"
    ratio = statistics.median(other / one for one, other in zip(flat, others, strict=True))
    return str(functions), str(counts[0].total()), more, f"{1000 * min(flat):.3f}", ratio


def _times(sessions: list[ort.InferenceSession], feeds: dict[str, Any]) -> tuple[list[float], list[float]]:
    """The CPU seconds of a run of each session in many rounds, in which they take turns."""
    sessions[0].run(None, feeds)
    started = time.process_time()
    sessions[0].run(None, feeds)
    runs = max(1, int(_ROUND_SECONDS / max(time.process_time() - started, 1e-5)))
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(_ROUNDS):
        for index in (0, 1) if number % 2 else (1, 0):
            started = time.process_time()
            for _ in range(runs):
                sessions[index].run(None, feeds)
            times[index].append((time.process_time() - started) / runs)
    return times
