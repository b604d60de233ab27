"""torch's control flow operators as ONNX's If, Loop and Scan. Their graphs become graphs of nodes, which see the values around the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import onnx_ir as ir
import torch

from onnxplain.recording import Recorder, Tensor, op

from .shapes import may_be_empty

Graph = torch.fx.GraphModule


class Builder(Protocol):
    """What `build` offers for building graphs inside graphs."""

    recorder: Recorder

    def value(self, argument: Any) -> ir.Value:
        """An argument as an ONNX value."""

    def inputs(self, module: Graph, count: int) -> list[ir.Value]:
        """New values for the first `count` inputs of a graph."""

    def run(self, module: Graph, operands: Sequence[Any]) -> tuple[list[ir.Node], list[Any]]:
        """The nodes of a graph on `operands`, and its results, which `value` converts until the graph runs again."""

    def graph_of(self, inputs: Sequence[ir.Value], nodes: Sequence[ir.Node], results: Sequence[Any], name: str) -> ir.Graph:
        """An ONNX graph of these nodes."""


def cond(builder: Builder, predicate: Any, when_true: Graph, when_false: Graph, operands: Sequence[Any]) -> list[ir.Value]:
    """higher_order::cond(pred, true_fn, false_fn, operands) as an ONNX If, whose branches have no inputs. One value for each result."""
    branches = {
        name: builder.graph_of([], *builder.run(graph, operands), name)
        for name, graph in (("then_branch", when_true), ("else_branch", when_false))
    }
    condition = builder.value(bool(predicate) if isinstance(predicate, int) else predicate)
    return _recorded(builder, "If", [condition], branches, len(branches["then_branch"].outputs))


def while_loop(builder: Builder, test: Graph, body: Graph, carried: Sequence[Any], additional: Sequence[Any]) -> list[ir.Value]:
    """higher_order::while_loop(cond_fn, body_fn, carried_inputs, additional_inputs) as an ONNX Loop without a number of iterations.

    An ONNX Loop gets the result of the first test as an input, and that of the next test from its body: the test is in the model twice.

    Returns:
        The carried values after the last iteration.
    """
    before, (first,) = builder.run(test, [*carried, *additional])
    start = [builder.value(first), *map(builder.value, carried)]
    builder.recorder.nodes += before
    states = builder.inputs(body, len(carried))
    steps, results = builder.run(body, [*states, *additional])
    after, again = builder.run(test, [*map(builder.value, results), *additional])
    unused = [_scalar("iteration", ir.DataType.INT64), _scalar("goes_on", ir.DataType.BOOL)]
    graph = builder.graph_of([*unused, *states], [*steps, *after], [*again, *results], "body")
    return _recorded(builder, "Loop", [None, *start], {"body": graph}, len(carried))


def scan(builder: Builder, step: Graph, init: Sequence[Any], xs: Sequence[Any], additional: Sequence[Any]) -> list[ir.Value]:
    """higher_order::scan(combine_fn, init, xs, additional_inputs) as an ONNX Scan, or as a Loop if there may be no step.

    Both go along the first dim. NOTE: ONNX Runtime refuses a Scan without steps (seen in 1.31).

    Returns:
        The carried values after the last step, then the outputs of all steps, with a first dim for the steps.
    """
    inputs = builder.inputs(step, len(init) + len(xs))
    # NOTE: torch's scan needs a step, and takes it that there is one.
    if any(may_be_empty(builder.value(x), 0, whatever_torch_found=True) for x in xs):
        return _loop_over(builder, step, inputs, init, xs, additional)
    nodes, results = builder.run(step, [*inputs, *additional])
    graph = builder.graph_of(inputs, nodes, results, "body")
    return _recorded(builder, "Scan", [*map(builder.value, (*init, *xs))], {"body": graph}, len(results), num_scan_inputs=len(xs))


def _loop_over(
    builder: Builder, step: Graph, inputs: Sequence[ir.Value], init: Sequence[Any], xs: Sequence[Any], additional: Sequence[Any]
) -> list[ir.Value]:
    """A scan as an ONNX Loop that takes the slices of `xs` by the number of the iteration. `inputs` are new values for those of a step."""
    number, goes_on = _scalar("iteration", ir.DataType.INT64), _scalar("goes_on", ir.DataType.BOOL)
    states, slices = inputs[: len(init)], inputs[len(init) :]
    whole = [builder.value(x) for x in xs]
    taken = [ir.Node("", "Gather", [x, number], [ir.AttrInt64("axis", 0)], outputs=[each]) for x, each in zip(whole, slices, strict=True)]
    nodes, results = builder.run(step, [*inputs, *additional])
    graph = builder.graph_of([number, goes_on, *states], [*taken, *nodes], [True, *results], "body")
    steps = op.Squeeze(op.Shape(whole[0], start=0, end=1))
    return _recorded(builder, "Loop", [steps, None, *map(builder.value, init)], {"body": graph}, len(results))


def map_impl(builder: Builder, function: Graph, xs: Sequence[Any], additional: Sequence[Any]) -> list[ir.Value]:
    """higher_order::map_impl(f, xs, pos_args) as an ONNX Scan that carries nothing. The results have a first dim for the elements."""
    return scan(builder, function, [], xs, additional)


def associative_scan(builder: Builder, combine: Graph, xs: Sequence[Any], additional: Sequence[Any]) -> list[ir.Value]:
    """higher_order::associative_scan(combine_fn, xs, additional_inputs) as an ONNX Scan that carries the combination so far.

    The first step passes its slices on. NOTE: a Scan without that step would be shorter, but ONNX Runtime refuses one without steps.

    Returns:
        The combinations so far, with the shapes of `xs`.
    """
    is_first = _scalar("is_first", ir.DataType.BOOL)
    inputs = builder.inputs(combine, 2 * len(xs))
    nodes, results = builder.run(combine, [*inputs, *additional])
    combined = [op.Where(is_first, x, builder.value(result)) for x, result in zip(inputs[len(xs) :], results, strict=True)]
    graph = builder.graph_of([is_first, *inputs], [*nodes, *builder.recorder.take()], [False, *combined, *combined], "body")
    first = [op.Gather(x, 0, axis=0) for x in xs]
    made = _recorded(builder, "Scan", [builder.value(True), *first, *xs], {"body": graph}, 1 + 2 * len(xs), num_scan_inputs=len(xs))
    return made[1 + len(xs) :]


def _scalar(name: str, dtype: ir.DataType) -> ir.Value:
    return Tensor(name=name, type=ir.TensorType(dtype), shape=ir.Shape([]))


def _recorded(
    builder: Builder, kind: str, inputs: Sequence[ir.Value | None], graphs: Mapping[str, ir.Graph], outputs: int, **numbers: int
) -> list[ir.Value]:
    node = ir.Node(
        "",
        kind,
        inputs,
        attributes=[ir.AttrGraph(name, graph) for name, graph in graphs.items()] + [ir.AttrInt64(*each) for each in numbers.items()],
        outputs=[Tensor() for _ in range(outputs)],
        version=13 if kind != "Scan" else 11,
    )
    builder.recorder.nodes.append(node)
    return list(node.outputs)


TRANSLATIONS: Mapping[str, Callable[..., list[ir.Value]]] = {
    "higher_order::associative_scan": associative_scan,
    "higher_order::cond": cond,
    "higher_order::map_impl": map_impl,
    "higher_order::scan": scan,
    "higher_order::while_loop": while_loop,
}
"""The translations of control flow operators by name. Each takes a `Builder` and the operator's arguments, some of which are graphs."""
