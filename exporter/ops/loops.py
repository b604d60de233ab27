"""ONNX's loops, built from Python functions that record one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from onnxplain.recording import Tensor, current

from . import emit


def scan(step: Callable[..., tuple[list[Any], list[Any]]], carried: Sequence[Any], scanned: Sequence[Any], axis: int) -> list[Any]:
    """Records an ONNX Scan.

    Args:
        step: Takes the carried values and a slice of each of `scanned`; returns the next carried values, and slices of the results.
        carried: The first carried values: scalars of known shape, or values like a slice.
        scanned: What is cut into slices.
        axis: The dim along which the slices are cut.

    Returns:
        The last carried values, then the results.
    """
    recorder = current()
    # NOTE: older versions of ONNX Runtime (seen in 1.23) must know how many dims each value of the body has.
    cut = [_of_rank(each, 1) for each in scanned]
    kept = [cut[0] if each.shape is None else _of_rank(each, 0) for each in carried]
    shapes = [*kept, *cut]
    inputs = [
        Tensor(name=f"in_{number}", type=ir.TensorType(each.dtype), shape=shapes[number])
        for number, each in enumerate((*carried, *scanned))
    ]
    outer = recorder.take()
    states, slices = step(*inputs)
    nodes = recorder.take()
    recorder.nodes = outer
    shapes = [*kept, *(cut[0] for _ in slices)]
    outputs = [
        Tensor(name=f"out_{number}", type=ir.TensorType(each.dtype), shape=shapes[number]) for number, each in enumerate((*states, *slices))
    ]
    nodes += [ir.Node("", "Identity", [each], outputs=[out]) for each, out in zip((*states, *slices), outputs, strict=True)]
    body = ir.Graph(inputs, outputs, nodes=nodes, name="step")
    attributes = {
        "body": body,
        "num_scan_inputs": len(scanned),
        "scan_input_axes": [axis] * len(scanned),
        "scan_output_axes": [axis] * len(slices),
    }
    return emit("Scan", [*carried, *scanned], attributes, len(outputs))


def loop(step: Callable[..., tuple[Any, list[Any]]], carried: Sequence[Any], limit: Any) -> list[Any]:
    """Records an ONNX Loop.

    Args:
        step: Takes the number of steps before it (INT64) and the carried values; returns whether to go on (BOOL), and the next carried
            values.
        carried: The first carried values. Their ranks must be known.
        limit: The largest number of steps.

    Returns:
        The last carried values.
    """
    recorder = current()

    def values(prefix: str) -> list[Tensor]:
        return [
            Tensor(name=f"{prefix}_{number}", type=ir.TensorType(each.dtype), shape=_of_rank(each, 0))
            for number, each in enumerate(carried)
        ]

    def scalar(name: str, dtype: ir.DataType) -> Tensor:
        return Tensor(name=name, type=ir.TensorType(dtype), shape=ir.Shape([]))

    inputs = [scalar("steps", ir.DataType.INT64), scalar("went_on", ir.DataType.BOOL), *values("in")]
    outputs = [scalar("goes_on", ir.DataType.BOOL), *values("out")]
    outer = recorder.take()
    goes_on, states = step(inputs[0], *inputs[2:])
    nodes = recorder.take()
    recorder.nodes = outer
    nodes += [ir.Node("", "Identity", [each], outputs=[out]) for each, out in zip((goes_on, *states), outputs, strict=True)]
    body = ir.Graph(inputs, outputs, nodes=nodes, name="step")
    return emit("Loop", [limit, None, *carried], {"body": body}, len(carried))


def _of_rank(value: Any, less: int) -> ir.Shape | None:
    """A shape of unknown sizes with `less` dims fewer than `value`; None if the rank of `value` is unknown."""
    return None if value.shape is None else ir.Shape([None] * (len(value.shape) - less))
