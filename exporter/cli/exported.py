"""What the command line tells about an exported model: its inputs and outputs, the ranges of its dims, its size, and what was verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from onnx_ir.tensor_adapters import to_torch_dtype

from onnxplain import weights
from onnxplain.request import fake_inputs
from onnxplain.torch_internals.symbolic_expressions import expression_of

if TYPE_CHECKING:
    import onnx_ir as ir

    from onnxplain.program import ONNXProgram
    from onnxplain.runtime import Verification

_SHOWN = 8
"""The most inputs, and the most outputs, that are listed."""
_UNITS = ("bytes", "KB", "MB", "GB")


def details(program: ONNXProgram) -> Iterator[tuple[str, str]]:
    """Lines about an exported model, each with its label."""
    graph = program.model.graph
    for label, values in (("input", graph.inputs), ("output", graph.outputs)):
        yield from _signature(label, [value for value in values if value.name not in graph.initializers])
    if ranges := list(_ranges(program)):
        yield "dims", ", ".join(ranges)
    count = sum(1 for _ in graph.all_nodes())
    opset = program.model.opset_imports.get("")
    yield "graph", f"{count} operators, opset {opset}, {_size(weights.total_bytes(program.model))} of weights"
    yield "checked", _verified(program.verification)


def _signature(label: str, values: Sequence[ir.Value]) -> Iterator[tuple[str, str]]:
    for value in values[:_SHOWN]:
        dims = "?" if value.shape is None else ", ".join(str(getattr(dim, "value", dim)) for dim in value.shape)
        dtype = "?" if value.dtype is None else str(to_torch_dtype(value.dtype)).removeprefix("torch.")
        yield label, f"{value.name}: {dtype}[{dims}]"
    if len(values) > _SHOWN:
        yield label, f"and {len(values) - _SHOWN} more"


def _ranges(program: ONNXProgram) -> Iterator[str]:
    """The limits of the dynamic dims, such as `batch: 2 to 64`."""
    limits = program.exported_program.range_constraints
    told: set[str] = set()
    for value, fake in zip(program.model.graph.inputs, fake_inputs(program.exported_program), strict=False):
        sizes = fake.shape if isinstance(fake, torch.Tensor) else ()
        for dim, size in zip(value.shape or (), sizes, strict=False):
            name, known = str(getattr(dim, "value", dim)), limits.get(expression_of(size)) if isinstance(size, torch.SymInt) else None
            if known is None or name in told:
                continue
            told.add(name)
            # NOTE: torch's infinity is no number of Python's.
            bounded = isinstance(known.upper, int) or known.upper.is_Integer
            if bounded or known.lower > 1:
                yield f"{name}: {max(int(known.lower), 1)} to {int(known.upper)}" if bounded else f"{name}: at least {int(known.lower)}"


def _size(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"


def _verified(verification: Verification | None) -> str:
    if verification is None:
        return "no (`--verify` compares the outputs with PyTorch's)"
    compared = [each for each in verification.outputs if not each.not_compared]
    if not compared:
        return f"no, {verification.outputs[0].not_compared}" if verification.outputs else "no, the model has no outputs"
    worst = max(each.absolute or 0.0 for each in compared)
    count = (
        "all outputs equal"
        if len(compared) == len(verification.outputs)
        else f"{len(compared)} of {len(verification.outputs)} outputs equal"
    )
    sizes = ["the example's sizes", *(", ".join(f"{name} = {size}" for name, size in each.items()) for each in verification.sizes)]
    return f"{count} PyTorch's within {worst:.2g}, with {'; '.join(sizes)}"
