"""The memory of a model's activations, from the shapes alone."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from .planning import Plan
from .records import MemoryEstimate, Origin, Step, TensorSize
from .shapes import Shapes


def estimate(model: ir.Model, sizes: Mapping[str, int]) -> MemoryEstimate:
    """The memory that the activations of `model` take in ONNX Runtime on the CPU, without weights and inputs.

    Args:
        model: The model, which does not change.
        sizes: The size of each dynamic dim of the inputs, by its name.
    """
    shapes = Shapes(model, sizes)
    plan = Plan(model.graph, shapes)
    given = (value for value in model.graph.inputs if value.name not in model.graph.initializers)
    return MemoryEstimate(
        peak=plan.peak,
        at=plan.at,
        tensors=tuple(sorted((_tensor(value, node, shapes) for value, node in plan.present()), key=lambda each: -each.size)),
        steps=tuple(Step(live, origin_of(kernel.node)) for live, kernel in zip(plan.live, plan.kernels, strict=True)),
        sizes=dict(sizes),
        weights=sum(value.const_value.nbytes for value in model.graph.initializers.values() if value.const_value is not None),
        inputs=sum(shapes.bytes_of(value) or 0 for value in given),
        unknown=tuple(value.name or "" for value in shapes.unknown),
    )


def origin_of(node: ir.Node) -> Origin:
    """Where a node comes from, by the metadata that an export wrote."""
    facts = node.metadata_props
    source, module, aten = (facts.get(f"onnxplain.{key}", "") for key in ("source", "module", "operator"))
    return Origin(node.op_type, source, module, aten)


def _tensor(value: ir.Value, node: ir.Node, shapes: Shapes) -> TensorSize:
    return TensorSize(
        name=value.name or "",
        dtype="" if value.dtype is None else value.dtype.name,
        shape=shapes.text(value),
        size=shapes.bytes_of(value) or 0,
        growth=shapes.growth(value),
        origin=origin_of(node),
    )
