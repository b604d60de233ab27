"""The memory of an export, as PyTorch's documentation compares its exporters: HighResNet of MONAI with an input of 30x1x48x48x48.

docs.pytorch.org/docs/stable/onnx_dynamo_memory_usage.html shows CUDA memory, including the model and the input. On the CPU, only the memory
above the model and the input counts.
"""

from __future__ import annotations

import dataclasses
import gc
import pathlib
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

import onnxplain

from . import contenders, models
from .allocations import Curve, allocated, cuda_history, peak
from .measure import watched
from .verdict import MORE_MEGABYTES, Verdict

_MB = 10**6
_BATCH = 30

CONTENDERS: dict[str, Callable[[nn.Module, torch.Tensor, pathlib.Path], object]] = {
    "eager": lambda model, data, _: model(data),
    "TorchScript exporter": lambda model, data, path: torch.onnx.export(model, (data,), path, dynamo=False),
    "torch.onnx.export(dynamo=True)": lambda model, data, path: torch.onnx.export(model, (data,), path, dynamo=True, verbose=False),
    "onnxplain": lambda model, data, path: onnxplain.export(model, (data,), path),
}
"""The contenders: one run of the model, and exporters with their defaults, to a file. All without gradients, as documented."""
_COMPUTING = ("eager", "TorchScript exporter")
"""Contenders that run the model, which takes minutes. One process is enough, since a profiler's few MB do not matter beside GB."""


@dataclasses.dataclass(frozen=True)
class Usage:
    """The memory of one contender over time, in fresh processes.

    Attributes:
        contender: Its name.
        seconds: The time of the process that measured the resident memory.
        tensors: Bytes of torch's tensors and NumPy's arrays, above those of the model and the input.
        resident: Bytes of resident memory, above the memory with model and input built and the libraries loaded.
        cuda: Bytes on the CUDA device including the model and the input, if there is a device.
        cuda_peak: The result of `torch.cuda.max_memory_allocated`.
    """

    contender: str
    seconds: float
    tensors: Curve
    resident: Curve
    cuda: Curve = dataclasses.field(default_factory=list)
    cuda_peak: int | None = None


def highresnet(batch: int = _BATCH) -> tuple[nn.Module, torch.Tensor]:
    """The model and the input of the documentation."""
    from monai.networks.nets import HighResNet

    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = HighResNet(spatial_dims=3, in_channels=1, out_channels=3, norm_type="batch").eval()
        return model, torch.randn(batch, 1, 48, 48, 48)


def measure(contender: str) -> Usage:
    """Runs one of `CONTENDERS` in fresh processes: one that is watched from outside only, one with a profiler, one on CUDA."""
    resident, (seconds, tensors) = watched(_alone, contender, contender in _COMPUTING)
    if not tensors:
        _, (_, tensors) = watched(_alone, contender, True)
    cuda, cuda_peak = watched(_on_cuda, contender)[1] if torch.cuda.is_available() else ([], None)
    return Usage(contender, seconds, tensors, resident, cuda, cuda_peak)


def _alone(contender: str, profiled: bool, pipe: Connection) -> None:
    contenders.hush()
    run = CONTENDERS[contender]
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = pathlib.Path(folder) / "model.onnx"
        warm_up = models.build("lstm")
        run(warm_up.model, warm_up.inputs.args[0], path)
        model, data = highresnet()
        gc.collect()
        pipe.send("ready")
        pipe.recv()
        started = time.perf_counter()
        if profiled:
            curve = allocated(lambda: run(model, data, path), numpy=True)
        else:
            curve, _kept = [], run(model, data, path)
        pipe.send((time.perf_counter() - started, curve))


def _on_cuda(contender: str, pipe: Connection) -> None:
    contenders.hush()
    pipe.send("ready")
    pipe.recv()
    torch.cuda.memory._record_memory_history()
    model, data = highresnet()
    model, data = model.to("cuda"), data.to("cuda")
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        kept = CONTENDERS[contender](model, data, pathlib.Path(folder) / "model.onnx")
        pipe.send((cuda_history(), torch.cuda.max_memory_allocated()))
        del kept


def table(usages: Sequence[Usage]) -> Table:
    """One line for each contender: seconds, and the peaks in MB of 10^6 bytes."""
    made = Table(title="HighResNet, 30x1x48x48x48: peak memory in MB", title_justify="left")
    made.add_column("contender")
    for title in ("s", "tensors", "resident", "CUDA, with model\nand input"):
        made.add_column(title, justify="right")
    for usage in usages:
        cuda = "-" if usage.cuda_peak is None else f"{usage.cuda_peak / _MB:,.1f}"
        made.add_row(usage.contender, f"{usage.seconds:,.1f}", _peak(usage.tensors), _peak(usage.resident), cuda)
    return made


def verdicts(usages: Sequence[Usage]) -> list[Verdict]:
    """Whether ours is the lowest everywhere, and below the limit."""
    peaks: dict[str, dict[str, Any]] = {
        "tensors": {usage.contender: peak(usage.tensors) for usage in usages},
        "resident memory": {usage.contender: peak(usage.resident) for usage in usages},
    }
    if all(usage.cuda_peak is not None for usage in usages):
        model, data = highresnet()
        own = data.nbytes + sum(tensor.nbytes for tensor in model.state_dict().values())
        peaks["CUDA memory"] = {usage.contender: usage.cuda_peak - own for usage in usages if usage.cuda_peak is not None}
    found = []
    for what, values in peaks.items():
        ours = values["onnxplain"]
        lower = tuple(name for name, value in values.items() if value < ours)
        found.append(Verdict(f"{what}, ours is the lowest", f"{ours / _MB:.2f} MB", not lower, lower))
        found.append(Verdict(f"{what}, over model and input <= {MORE_MEGABYTES} MB", f"{ours / _MB:.2f} MB", ours <= MORE_MEGABYTES * _MB))
    return found


def show(console: Console, usages: Sequence[Usage]) -> None:
    """Prints the table, and a warning about missing measurements."""
    console.print(table(usages))
    if any(usage.cuda_peak is None for usage in usages):
        console.print("[yellow]CUDA memory was NOT measured: torch.cuda.is_available() is False here.")


def picture(usages: Sequence[Usage], path: pathlib.Path) -> None:
    """Draws memory over time: tensors, resident memory and, where there is a device, CUDA memory."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    panels = {
        "Tensors, over model and input": [usage.tensors for usage in usages],
        "Resident memory, over model and input": [usage.resident for usage in usages],
        "CUDA memory, with model and input": [usage.cuda for usage in usages],
    }
    drawn = {title: curves for title, curves in panels.items() if all(curves)}
    figure, axes = plt.subplots(1, len(drawn), figsize=(5.5 * len(drawn), 4.2), sharey=True, layout="constrained")
    for place, (title, curves) in zip(axes, drawn.items(), strict=True):
        for usage, curve in zip(usages, curves, strict=True):
            # NOTE: both axes are logarithmic, so they have no zero.
            seconds, sizes = zip(*((max(at, 0.01), max(size / _MB, 0.001)) for at, size in curve), strict=True)
            style = {"linewidth": 2.0} if usage.contender == "onnxplain" else {"linewidth": 1.2}
            place.step(seconds, sizes, where="post", label=f"{usage.contender}: {_peak(curve)} MB", **style)
        place.set(title=title, xscale="log", yscale="log", xlabel="seconds since the start (log)")
        place.grid(alpha=0.3)
        place.spines[["top", "right"]].set_visible(False)
        place.legend(title="peak", fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.18))
    axes[0].set_ylabel("MB (log)")
    # NOTE: otherwise the text below the panels is cut off.
    figure.savefig(path, dpi=100, bbox_inches="tight")
    plt.close(figure)


def _peak(curve: Curve) -> str:
    return f"{peak(curve) / _MB:,.2f}"
