"""The operators of a whole ONNX model as boxes in boxes: those of the modules that made them."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx_ir as ir

from onnxplain.diagnostics import visible

_MODULE = "onnxplain.module"
_CLASS = "onnxplain.class"
_NAMESPACE = "namespace"


@dataclasses.dataclass(frozen=True, eq=False)
class _Flow:
    """A value of the model. One of a function is another one in each call.

    Attributes:
        shape: Its shape, for people.
        parameters: The number of its elements, if it is a weight or a constant.
        size: Its size in bytes, if it is one of these.
        is_stored: Whether it is one of these.
    """

    shape: str
    parameters: int = 0
    size: int = 0
    is_stored: bool = False


@dataclasses.dataclass(frozen=True)
class _Operator:
    kind: str
    path: tuple[str, ...]
    reads: tuple[_Flow, ...]
    makes: tuple[_Flow, ...]


@dataclasses.dataclass(frozen=True)
class Edge:
    """A value that flows between two boxes of one box.

    Attributes:
        source: The number of the first box; -1 if the value comes from outside.
        target: The number of the second box; the number of all boxes if the value goes outside.
        label: The shapes that flow.
    """

    source: int
    target: int
    label: str


@dataclasses.dataclass(frozen=True)
class Box:
    """A module, or operators that stand together.

    Attributes:
        name: The name of the module within the one around it; the operators.
        kind: The module's class, if it is known.
        operators: How many operators it has, by their types.
        parameters: How many elements its weights have.
        size: The size of its weights in bytes.
        boxes: The boxes in it, in order.
        edges: What flows between them.
        findings: How many findings there are at places in it.
    """

    name: str
    kind: str
    operators: Mapping[str, int]
    parameters: int
    size: int
    boxes: tuple[Box, ...] = ()
    edges: tuple[Edge, ...] = ()
    findings: int = 0


def of_model(name: str, model: ir.Model, *, by_module: bool, found: Sequence[str] = ()) -> Box:
    """The box of a whole model.

    Args:
        name: The name of the model.
        model: The model. Calls of functions are boxes. Other operators are in the boxes of the modules that their metadata name.
        by_module: False shows each operator in its own box.
        found: The paths of the modules with findings, a path for each finding.
    """
    walk = _Walk(model)
    flows = {value: walk.flow(value) for value in (*model.graph.inputs, *model.graph.initializers.values())}
    operators = list(walk.operators(model.graph, flows, ()))
    outside = {flows[value] for value in model.graph.outputs if value in flows}
    if not by_module:
        operators = [dataclasses.replace(each, path=(f"{each.kind}{index}",)) for index, each in enumerate(operators)]
        walk.classes = {}
    box = _box(visible(name), (), operators, outside, walk.classes)
    return _marked(box, (), found) if found else box


def _marked(box: Box, path: tuple[str, ...], found: Sequence[str]) -> Box:
    """The box with the numbers of findings. `path` are the names of the boxes around what is in it."""
    inside = [each for each in found if not path or f"{each}.".startswith(f"{'.'.join(path)}.")]
    boxes = tuple(_marked(each, (*path, each.name), inside) if inside else each for each in box.boxes)
    return dataclasses.replace(box, boxes=boxes, findings=len(inside))


class _Walk:
    """Follows the calls of functions."""

    def __init__(self, model: ir.Model) -> None:
        self.classes: dict[tuple[str, ...], str] = {}
        self._functions = model.functions
        self._namespaces: set[str] = set()

    def flow(self, value: ir.Value) -> _Flow:
        """What a value is, seen from outside."""
        dims = ("?" if str(dim) == "None" else str(dim) for dim in value.shape or ())
        shape = "" if value.shape is None else f"[{', '.join(dims)}]"
        tensor = value.const_value if value.is_initializer() else None
        return _Flow(visible(shape)) if tensor is None else _Flow(visible(shape), tensor.size, tensor.nbytes, is_stored=True)

    def operators(self, nodes: Iterable[ir.Node], flows: dict[ir.Value, _Flow], path: tuple[str, ...]) -> Iterator[_Operator]:
        """The operators of a graph, and of the functions that it calls."""
        for node in nodes:
            function = self._functions.get(node.op_identifier())
            if function is not None:
                inner = (*path, node.name or node.op_type)
                self.classes[inner] = function.metadata_props.get(_CLASS, function.name).rpartition(".")[2]
                given = {value: flows[other] for value, other in zip(function.inputs, node.inputs, strict=False) if other in flows}
                yield from self.operators(function, given, inner)
                flows.update((outer, given[value]) for outer, value in zip(node.outputs, function.outputs, strict=True) if value in given)
                continue
            flows.update((value, self.flow(value)) for value in node.outputs)
            if node.op_type == "Constant" and node.domain == "":
                flows[node.outputs[0]] = _Flow("", is_stored=True)
                continue
            inside = [each for graph in _graphs(node) for each in graph.all_nodes()]
            read = (value for each in (node, *inside) for value in each.inputs)
            reads = tuple(flows[value] for value in dict.fromkeys(read) if value is not None and value in flows)
            # NOTE: the metadata of a function's nodes name the module that the function was made from, and not the one that calls it.
            module = node.metadata_props.get(_MODULE, "") if not path else ""
            if module:
                self._note_classes(node.metadata_props.get(_NAMESPACE, ""))
            yield _Operator(node.op_type, (*path, *filter(None, module.split("."))), reads, tuple(flows[value] for value in node.outputs))

    def _note_classes(self, namespace: str) -> None:
        """Notes the classes of the modules around an operator: `encoder: models.Encoder/encoder.layer.0: models.Layer/add: aten.add`."""
        if namespace in self._namespaces:
            return
        self._namespaces.add(namespace)
        for each in namespace.split("/")[:-1]:
            module, _, kind = each.partition(": ")
            self.classes.setdefault(tuple(module.split(".")), kind.rpartition(".")[2])


def _graphs(node: ir.Node) -> list[ir.Graph]:
    return [each.as_graph() for each in node.attributes.values() if each.type is ir.AttributeType.GRAPH]


def _box(
    name: str, path: tuple[str, ...], operators: Sequence[_Operator], outside: set[_Flow], classes: Mapping[tuple[str, ...], str]
) -> Box:
    """The box of `operators`, which all begin with `path`. `outside` is what is read outside of it."""
    groups = _grouped(operators, len(path))
    weights = dict.fromkeys(flow for each in operators for flow in each.reads if flow.is_stored)
    boxes: tuple[Box, ...] = ()
    if len(groups) > 1 or any(key for key, _ in groups):
        readers = Counter(flow for _, group in groups for flow in {flow for each in group for flow in each.reads})
        boxes = tuple(
            _box(visible(key), (*path, key), group, _leaving(group, readers, outside), classes) if key else _plain(group)
            for key, group in groups
        )
    return Box(
        name,
        visible(classes.get(path, "")),
        Counter(each.kind for each in operators),
        sum(each.parameters for each in weights),
        sum(each.size for each in weights),
        boxes,
        tuple(_edges([group for _, group in groups], outside)) if boxes else (),
    )


def _leaving(group: Sequence[_Operator], readers: Mapping[_Flow, int], outside: set[_Flow]) -> set[_Flow]:
    own = {flow for each in group for flow in each.reads}
    made = (flow for each in group for flow in each.makes)
    return {flow for flow in made if flow in outside or readers[flow] > (flow in own)}


def _plain(group: Sequence[_Operator]) -> Box:
    """A box of operators that belong to no inner module."""
    return _box(
        ", ".join(dict.fromkeys(visible(each.kind) for each in group)),
        (),
        [dataclasses.replace(each, path=()) for each in group],
        set(),
        {},
    )


def _grouped(operators: Sequence[_Operator], depth: int) -> list[tuple[str, list[_Operator]]]:
    """The operators by the inner module that they belong to; "" for a run of those that belong to none."""
    groups: dict[tuple[str, int], list[_Operator]] = {}
    runs = itertools.groupby(operators, lambda each: each.path[depth] if len(each.path) > depth else "")
    for run, (key, group) in enumerate(runs, 1):
        groups.setdefault((key, 0 if key else run), []).extend(group)
    return [(key, group) for (key, _), group in groups.items()]


def _edges(groups: Sequence[Sequence[_Operator]], outside: set[_Flow]) -> Iterator[Edge]:
    maker = {flow: index for index, group in enumerate(groups) for each in group for flow in each.makes}
    pairs: dict[tuple[int, int], list[_Flow]] = {}
    for index, group in enumerate(groups):
        for flow in dict.fromkeys(flow for each in group for flow in each.reads if not flow.is_stored):
            if maker.get(flow, -1) != index:
                pairs.setdefault((maker.get(flow, -1), index), []).append(flow)
        for flow in dict.fromkeys(flow for each in group for flow in each.makes if flow in outside):
            pairs.setdefault((index, len(groups)), []).append(flow)
    for (source, target), flows in pairs.items():
        yield Edge(source, target, _label(flows))


def _label(flows: Sequence[_Flow]) -> str:
    """The shape of one value, that of a tensor rather than a scalar, and how many others flow."""
    shape = next((flow.shape for flow in flows if flow.shape not in ("", "[]")), "")
    shape = shape or ("scalar" if any(flow.shape for flow in flows) else "")
    if len(flows) == 1:
        return shape
    return f"{shape} and {len(flows) - 1} more" if shape else f"{len(flows)} values"
