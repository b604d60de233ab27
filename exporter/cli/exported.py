"""What the command line tells about an exported model: its inputs and outputs, the ranges of its dims, its size, and what was verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from onnx_ir.tensor_adapters import to_torch_dtype

from onnxplain import weights
from onnxplain.diagnostics import Rule
from onnxplain.rules import DimsFixed

from .dim_ranges import ranges

if TYPE_CHECKING:
    import onnx_ir as ir

    from onnxplain.program import ONNXProgram
    from onnxplain.runtime import Verification

_Rule = TypeVar("_Rule", bound=Rule)

_SHOWN = 8
"""The most inputs, and the most outputs, that are listed."""
_UNITS = ("bytes", "KB", "MB", "GB")


def details(program: ONNXProgram) -> Iterator[tuple[str, str]]:
    """Lines about an exported model, each with its label."""
    graph = program.model.graph
    for label, values in (("input", graph.inputs), ("output", graph.outputs)):
        yield from _signature(label, [value for value in values if value.name not in graph.initializers])
    if dims := list(ranges(program)):
        yield "dims", "; ".join(dims)
    if fixed := [size for rule in _rules(program, DimsFixed) for size in rule.sizes]:
        yield "fixed", ", ".join(fixed)
    functions = program.model.functions
    count = sum(1 for each in (graph, *(function.graph for function in functions.values())) for _ in each.all_nodes())
    shared = f" in {len(functions)} functions" if functions else ""
    opset = program.model.opset_imports.get("")
    written = [each.size for each in program.diagnostics.artifacts if each.role == "resultFile"]
    files = f", {_size(sum(written))} in {len(written)} file{'s' if len(written) > 1 else ''}" if written else ""
    yield "graph", f"{count} operators{shared}, opset {opset}, {_size(weights.total_bytes(program.model))} of weights{files}"
    yield from _verified(program.verification)


def _signature(label: str, values: Sequence[ir.Value]) -> Iterator[tuple[str, str]]:
    for value in values[:_SHOWN]:
        dims = "?" if value.shape is None else ", ".join(str(getattr(dim, "value", dim)) for dim in value.shape)
        dtype = "?" if value.dtype is None else str(to_torch_dtype(value.dtype)).removeprefix("torch.")
        yield label, f"{value.name}: {dtype}[{dims}]"
    if len(values) > _SHOWN:
        yield label, f"and {len(values) - _SHOWN} more"


def _rules(program: ONNXProgram, kind: type[_Rule]) -> Iterator[_Rule]:
    return (each.rule for each in program.diagnostics.findings if isinstance(each.rule, kind))


def _size(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.3g} {_UNITS[unit]}"


def _verified(verification: Verification | None) -> Iterator[tuple[str, str]]:
    from onnxplain.runtime import difference_text, sizes_text

    if verification is None:
        yield "checked", "no (`--verify` compares the outputs with PyTorch's)"
        return
    outputs = verification.outputs
    compared = [each for each in outputs if not each.not_compared]
    if not compared:
        yield "checked", f"no, {outputs[0].not_compared}" if outputs else "no, the model has no outputs"
        return
    count = "all outputs equal" if len(compared) == len(outputs) else f"{len(compared)} of {len(outputs)} outputs equal"
    sizes = "; ".join(["the example's sizes", *map(sizes_text, verification.sizes)])
    yield "checked", f"{count} PyTorch's, with {sizes}"
    if verification.refused:
        yield "", f"not with {'; '.join(map(sizes_text, verification.refused))}: the model takes no such inputs"
    yield from (("apart", difference_text(each)) for each in compared[:_SHOWN])
    if len(compared) > _SHOWN:
        yield "", f"{max(each.absolute or 0.0 for each in compared[_SHOWN:]):.2g} or less for {len(compared) - _SHOWN} more"
