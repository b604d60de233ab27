"""Parts of an exported model as models: some of its nodes, with the values that these take as inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import from_torch_dtype

from onnxplain import weights

from . import sessions
from .options import ONNXRuntimeOptions, considerate
from .reference import as_tensor

if TYPE_CHECKING:
    # NOTE: an export that is not verified does not load ONNX Runtime.
    import onnxruntime as ort


@dataclasses.dataclass(frozen=True)
class Part:
    """Some nodes of a graph, in their order.

    Attributes:
        graph: The graph.
        nodes: The nodes.
        inputs: The values that they take from other nodes and from the inputs of the graph; not the weights.
        outputs: Those of their values that count.
    """

    graph: ir.Graph
    nodes: tuple[ir.Node, ...]
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]

    @classmethod
    def of(cls, graph: ir.Graph, nodes: Sequence[ir.Node], outputs: Sequence[ir.Value]) -> Part:
        """The part of these nodes and outputs."""
        made = {value for node in nodes for value in node.outputs}
        taken = dict.fromkeys(value for node in nodes for value in used(node) if value not in made and not is_weight(value))
        return cls(graph, tuple(nodes), tuple(taken), tuple(outputs))

    @property
    def weights(self) -> tuple[ir.Value, ...]:
        """The weights that the nodes take, but for those that are inputs."""
        taken = dict.fromkeys(value for node in self.nodes for value in used(node) if is_weight(value))
        return tuple(value for value in taken if value not in self.inputs)

    def model(self, model: ir.Model, values: Mapping[ir.Value, torch.Tensor]) -> ir.Model:
        """The part as a model.

        Args:
            model: The whole model.
            values: The values of the part's inputs, whose dtypes and shapes the inputs get.
        """
        view = ir.GraphView(
            self.inputs, self.outputs, nodes=self.nodes, initializers=self.weights, opset_imports=model.graph.opset_imports, name="part"
        )
        graph = view.clone()
        for value, given in zip(graph.inputs, self.inputs, strict=True):
            tensor = weights.as_real(values[given])
            value.type, value.shape, value.const_value = ir.TensorType(from_torch_dtype(tensor.dtype)), ir.Shape(list(tensor.shape)), None
        made = ir.Model(graph, ir_version=model.ir_version)
        made.opset_imports.update(model.opset_imports)
        return made

    def run(
        self, model: ir.Model, values: Mapping[ir.Value, torch.Tensor], write: sessions.WriteModel, *, optimized: bool = True
    ) -> dict[ir.Value, torch.Tensor]:
        """The outputs that ONNX Runtime computes.

        Args:
            model: The whole model.
            values: The values of the part's inputs.
            write: As for `session`.
            optimized: Whether ONNX Runtime optimizes the graph.
        """
        make = None if optimized else unoptimized
        session = sessions.session(self.model(model, values), make=make, write=write)
        return dict(zip(self.outputs, sessions.run(session, [values[value] for value in self.inputs]), strict=True))


def used(node: ir.Node) -> Iterator[ir.Value]:
    """The values that a node takes, those in its graphs included."""
    yield from (value for value in node.inputs if value is not None)
    graphs = [attribute.as_graph() for attribute in node.attributes.values() if attribute.type is ir.AttributeType.GRAPH]
    for graph in graphs:
        inner = list(graph.all_nodes())
        own = {*graph.inputs, *graph.initializers.values(), *(value for each in inner for value in each.outputs)}
        own |= {value for each in graph.subgraphs() for value in (*each.inputs, *each.initializers.values())}
        taken = [value for each in inner for value in each.inputs if value is not None]
        yield from (value for value in (*taken, *graph.outputs) if value not in own)


def is_weight(value: ir.Value) -> bool:
    """Whether `value` is an initializer."""
    return value.is_initializer()


def tensor_of(weight: ir.Value) -> torch.Tensor:
    """The data of an initializer."""
    assert weight.const_value is not None
    return as_tensor(np.array(weight.const_value.numpy()))


def computing(graph: ir.Graph, wanted: ir.Value, known: Collection[ir.Value], limit: int) -> Part | None:
    """The nodes that compute a value from known values; None if there are more than `limit`, or none.

    Args:
        graph: The graph.
        wanted: The value.
        known: The values at which to stop. `wanted` may be one of them.
        limit: The most nodes.
    """
    found: set[ir.Node] = set()
    left = [wanted]
    while left:
        value = left.pop()
        node = value.producer()
        if node is None or node in found or (value in known and value is not wanted):
            continue
        found.add(node)
        left += used(node)
        if len(found) > limit:
            return None
    in_order = [node for node in graph if node in found] if len(found) > 1 else list(found)
    return Part.of(graph, in_order, [wanted]) if found else None


def last_uses(nodes: Iterable[ir.Node], key: Callable[[ir.Node], int]) -> dict[ir.Value, int]:
    """For each value that `nodes`, in order, take: the `key` of the last node that does."""
    return {value: key(node) for node in nodes for value in used(node)}


def unoptimized(model: str | bytes) -> ort.InferenceSession:
    """A session without graph optimizations."""
    import onnxruntime as ort

    options = considerate()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ONNXRuntimeOptions(session_options=options).make(model)
