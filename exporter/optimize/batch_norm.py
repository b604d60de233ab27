"""Merges a batch normalization into the convolution before it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from onnxplain import weights

_CHANNEL_AXIS = {"Conv": 0, "ConvTranspose": 1}
"""The dim of the output's channels in the weights."""


def batch_norm_into_conv(model: ir.Model) -> None:
    """Removes each BatchNormalization that follows a Conv or a ConvTranspose, whose weights are scaled and shifted when they are written.

    y = scale * (conv(x) - mean) / sqrt(var + epsilon) + shift, which is linear in the weights of the convolution.
    """
    for node in list(model.graph):
        if node.op_type != "BatchNormalization" or node.domain:
            continue
        data = node.inputs[0]
        conv = data.producer() if data is not None else None
        if data is None or conv is None or conv.op_type not in _CHANNEL_AXIS or len(data.uses()) != 1 or data.is_graph_output():
            continue
        if conv.op_type == "ConvTranspose" and "group" in conv.attributes and conv.attributes["group"].as_int() != 1:
            # NOTE: the channels of all groups but the first are not in the weight's dim of channels.
            continue
        tensors = [value.const_value if value is not None else None for value in (*conv.inputs[1:], *node.inputs[1:])]
        known = [tensor for tensor in tensors if isinstance(tensor, weights.Weight | weights.Computed)]
        if len(known) == len(tensors) and conv.inputs[1] is not None and len(conv.inputs[1].uses()) == 1:
            _merge(model.graph, conv, node)


def _merge(graph: ir.Graph, conv: ir.Node, norm: ir.Node) -> None:
    epsilon = norm.attributes["epsilon"].as_float() if "epsilon" in norm.attributes else 1e-5
    values = (*conv.inputs[1:], *norm.inputs[1:])
    inputs = [conv.inputs[0]]
    likes = [value.const_value.like for value in values]  # type: ignore[union-attr]  # all of them are weights
    for formula, like in ((_kernel(epsilon, _CHANNEL_AXIS[conv.op_type]), likes[0]), (_bias(epsilon), likes[-3])):
        made = weights.Computed(formula, values, like)
        value = ir.Value(name=made.name, shape=ir.Shape(made.shape.numpy()), type=ir.TensorType(made.dtype), const_value=made)
        graph.register_initializer(value)
        inputs.append(value)
    (result,) = norm.outputs
    merged = ir.Node(
        "",
        conv.op_type,
        inputs,
        attributes=list(conv.attributes.values()),
        outputs=[ir.Value(name=result.name, shape=result.shape, type=result.type)],
        name=norm.name,
        metadata_props=dict(conv.metadata_props),
    )
    merged.meta.update(conv.meta)
    merged.outputs[0].meta.update(result.meta)
    graph.insert_before(norm, merged)
    for index, output in enumerate(graph.outputs):
        if output is result:
            graph.outputs[index] = merged.outputs[0]
    ir.convenience.replace_all_uses_with(result, merged.outputs[0])
    graph.remove([norm, conv], safe=True)


def _kernel(epsilon: float, axis: int) -> weights.Formula:
    """The kernel of the convolution, scaled. It is computed from the kernel, the bias if there is one, scale, shift, mean and variance."""

    def scaled(tensors: Sequence[Any], rows: int) -> Iterator[torch.Tensor]:
        weight = tensors[0].raw
        scale, _shift, _mean, variance = tensors[-4:]
        along = _factors(scale, variance, epsilon).reshape([-1 if each == axis else 1 for each in range(weight.ndim)])
        for start in range(0, len(weight), rows):
            by = along[start : start + rows] if axis == 0 else along
            yield weight[start : start + rows].cpu() * by

    return weights.Formula(
        key=("scaled", epsilon, axis),
        compute=lambda tensors: next(scaled(tensors, len(tensors[0].raw))),
        operators=functools.partial(_scaled, epsilon, axis),
        name=lambda sources: f"{sources[0].name}.normalized",
        by_rows=scaled,
    )


def _bias(epsilon: float) -> weights.Formula:
    """The bias of the convolution, scaled and shifted. It is computed from the same values."""

    def shifted(tensors: Sequence[Any]) -> torch.Tensor:
        _kernel, *bias = tensors[:-4]
        scale, shift, mean, variance = tensors[-4:]
        factor = _factors(scale, variance, epsilon)
        moved: torch.Tensor = shift.raw.cpu() + factor * ((bias[0].raw.cpu() if bias else 0) - mean.raw.cpu())
        return moved

    return weights.Formula(
        key=("shifted", epsilon),
        compute=shifted,
        operators=functools.partial(_shifted, epsilon),
        name=lambda sources: f"{str(sources[0].name).removesuffix('weight')}bias.normalized",
    )


def _factors(scale: weights.Weight | weights.Computed, variance: weights.Weight | weights.Computed, epsilon: float) -> torch.Tensor:
    # NOTE: the weights are computed on the CPU, where they are written: a device may have no memory left beside the model.
    return scale.raw.cpu() / torch.sqrt(variance.raw.cpu() + epsilon)


def _factor(values: Sequence[ir.Value | None], epsilon: float) -> list[ir.Node]:
    """The operators for scale / sqrt(var + epsilon)."""
    scale, _shift, _mean, variance = values[-4:]
    dtype = ir.DataType.FLOAT if variance is None or variance.dtype is None else variance.dtype
    more = _constant("epsilon", np.array(epsilon, dtype=dtype.numpy()))
    larger = ir.node("Add", [variance, more])
    root = ir.node("Sqrt", [larger.outputs[0]])
    return [larger, root, ir.node("Div", [scale, root.outputs[0]])]


def _scaled(epsilon: float, axis: int, values: Sequence[ir.Value | None]) -> list[ir.Node]:
    """The operators for kernel * factor."""
    kernel = values[0]
    nodes = _factor(values, epsilon)
    ranks = 1 if kernel is None or kernel.shape is None else len(kernel.shape)
    shape = _constant(f"shape_{ranks}_{axis}", np.array([-1 if each == axis else 1 for each in range(ranks)], dtype=np.int64))
    along = ir.node("Reshape", [nodes[-1].outputs[0], shape])
    return [*nodes, along, ir.node("Mul", [kernel, along.outputs[0]])]


def _shifted(epsilon: float, values: Sequence[ir.Value | None]) -> list[ir.Node]:
    """The operators for shift + factor * (bias - mean)."""
    _scale, shift, mean, _variance = values[-4:]
    bias = values[1] if len(values) > 5 else None
    nodes = _factor(values, epsilon)
    if bias is None:
        moved = ir.node("Mul", [mean, nodes[-1].outputs[0]])
        return [*nodes, moved, ir.node("Sub", [shift, moved.outputs[0]])]
    centre = ir.node("Sub", [bias, mean])
    moved = ir.node("Mul", [nodes[-1].outputs[0], centre.outputs[0]])
    return [*nodes, centre, moved, ir.node("Add", [shift, moved.outputs[0]])]


def _constant(name: str, data: np.ndarray[Any, Any]) -> ir.Value:
    tensor = ir.tensor(data, name=f"batch_norm.{name}")
    return ir.Value(name=tensor.name, shape=ir.Shape(data.shape), type=ir.TensorType(tensor.dtype), const_value=tensor)
