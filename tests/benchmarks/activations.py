"""The estimated peak of activations beside the one that ONNX Runtime reaches, for the architectures of the tests in larger sizes.

`cd tests && python -m benchmarks.activations [NAME...]` prints a table. `--sample` takes the sample of architectures in larger batches,
and prints the distribution of the errors as well. Linux only.
"""

from __future__ import annotations

import inspect
import pathlib
import sys
import tempfile

import measured_memory
import numpy as np
import zoo

import onnxplain
from onnxplain.memory import bound, estimate

from .architectures import FAMILIES, Architecture
from .verdict import quantile

_TARGET = 40 * 2**20
_LEAST = 4 * 2**20
"""Bytes below which a measured peak tells more of ONNX Runtime itself."""

SIZES = {
    "mlp": {"rows": 1_000_000},
    "lstm": {"batch": 20_000},
    "transformer_encoder": {"batch": 256, "sequence": 64},
    "monai_highresnet": {"batch": 1, "depth": 64, "height": 64, "width": 64},
    "monai_unet": {"batch": 8, "height": 256, "width": 256},
    "bert": {"batch": 512, "sequence": 32},
    "gpt2": {"batch": 512, "sequence": 32},
    "llama": {"batch": 256, "sequence": 64},
    "t5": {"batch": 256, "sequence": 48, "target": 32},
    "vit": {"batch": 1024},
    "clip": {"texts": 512, "images": 512, "sequence": 32},
    "whisper": {"batch": 512, "target": 32},
    "diffusers_unet": {"batch": 16, "height": 32, "width": 32, "sequence": 16},
}
"""The sizes of the inputs: activations of tens of MiB, beside which nothing else counts."""


def measure(case: zoo.Case, path: pathlib.Path) -> tuple[int, int, int]:
    """The bytes of the estimate, and those measured with ONNX Runtime's graph optimizer and without."""
    built = case.build()
    program = onnxplain.export(built.model, built.args, path, kwargs=built.kwargs, dynamic_shapes=case.dynamic)
    names = [value.name or "" for value in program.model.graph.inputs]
    large, small = (
        {name: tensor.numpy() for name, tensor in zip(names, inputs.tensors, strict=True)}
        for inputs in (built.sized(**SIZES[case.name]), built.other)
    )
    shapes = {name: array.shape for name, array in large.items()}
    peak = estimate(program.model, bound(program.model, shapes)).peak
    with_, without = (measured_memory.peak_of(path, large, small, optimized=optimized) for optimized in (True, False))
    return peak, with_, without


def sampled(architecture: Architecture, path: pathlib.Path) -> tuple[int, int, int]:
    """The same for an architecture of the sample, with a batch whose estimate is about 40 MiB."""
    model = architecture.model().eval()
    if "batch" not in architecture.given.other:
        raise ValueError("its batch is fixed")
    default = inspect.signature(architecture.given.make).parameters.get("batch")
    example = architecture.given.make()
    peak = estimate(onnxplain.export(model, example.args, kwargs=example.kwargs).model, {}).peak
    # NOTE: inputs that are told by their shape alone have a batch of one or two.
    batch = max(1, min(2048, round((2 if default is None else default.default) * _TARGET / peak)))
    inputs = architecture.given.make(batch=batch)
    program = onnxplain.export(model, inputs.args, path, kwargs=inputs.kwargs)
    names = [value.name or "" for value in program.model.graph.inputs]
    arrays = {name: tensor.numpy() for name, tensor in zip(names, inputs.tensors, strict=True)}
    with_, without = (measured_memory.peak_of(path, arrays, optimized=optimized) for optimized in (True, False))
    return estimate(program.model, {}).peak, with_, without


def sample(names: list[str]) -> None:
    """Prints the table for the sample, and the median, the 90th percentile and the worst of the errors."""
    errors = []
    for name, architecture in ((name, each) for family in FAMILIES.values() for name, each in family.items()):
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = sampled(architecture, pathlib.Path(folder) / "model.onnx")
            except (onnxplain.ExportFailed, RuntimeError, ImportError, ValueError) as error:
                print(f"{name:32} {error}".splitlines()[0])  # noqa: T201  as below
                continue
        _print(name, found)
        if found[1] < _LEAST:
            continue
        errors.append(abs(found[0] / found[1] - 1))
    print(f"{len(errors)} models, errors: median {quantile(errors, 0.5):.0%}, p90 {quantile(errors, 0.9):.0%}, worst {max(errors):.0%}")  # noqa: T201  as below


def _print(name: str, found: tuple[int, int, int]) -> None:
    peak, with_, without = np.array(found) / 2**20
    print(f"{name:32} {peak:9.1f} {with_:9.1f} {peak / with_ - 1:+5.0%} {without:11.1f} {peak / without - 1:+5.0%}", flush=True)  # noqa: T201  as below


def main(names: list[str]) -> None:
    print(f"{'model':32} {'estimate':>9} {'measured':>9} {'':>5} {'unoptimized':>11}")  # noqa: T201  a table for people
    if "--sample" in names:
        sample([name for name in names if name != "--sample"])
        return
    for case in zoo.CASES:
        if names and case.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            _print(case.name, measure(case, pathlib.Path(folder) / "model.onnx"))


if __name__ == "__main__":
    main(sys.argv[1:])
