"""Copies the ONNX nodes of a block for the equal blocks that were not built."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxplain import weights
from onnxplain.diagnostics import DiagnosticContext
from onnxplain.source import locations

from .comparison import Source, Unequal, compared
from .names import Names
from .run import Run

Nodes = Sequence[ir.Node]


def copy_blocks(
    context: DiagnosticContext,
    model: ir.Model,
    runs: Sequence[Run],
    values: Mapping[torch.fx.Node, ir.Value],
    origin: Callable[[torch.fx.Node], dict[str, str]],
) -> bool:
    """Adds the nodes and weights of the blocks that were left out.

    Args:
        context: It records what was copied.
        model: The model without these blocks. If there is no way to add them, it does not change.
        runs: The runs.
        values: The values for the weights and inputs of the program.
        origin: Makes the `metadata_props` of the ONNX nodes for an operator.

    Returns:
        Whether the model has all blocks now. If not, two blocks became different nodes, and the model has to be built from all of them.
    """
    blocks = _blocks(model.graph, runs)
    names = Names(model.graph)
    try:
        copiers = [_Copier(model.graph, run, each, values, origin, names) for run, each in zip(runs, blocks, strict=True)]
    except Unequal:
        return False
    for run, copier in zip(runs, copiers, strict=True):
        copier.copy()
        count = f"{len(run.blocks)} blocks of {len(run.blocks[0])} operators are equal"
        context.event(f"{count}: the {len(copier.pattern)} ONNX nodes of one were copied {len(run.copied)} times.")
    _in_order(model.graph)
    return True


def _blocks(graph: ir.Graph, runs: Sequence[Run]) -> list[list[list[ir.Node]]]:
    """The ONNX nodes of the blocks that were built, for each run."""
    home = {node: (run, place) for run, each in enumerate(runs) for place, index in enumerate(each.built) for node in each.blocks[index]}
    found: list[list[list[ir.Node]]] = [[[] for _ in each.built] for each in runs]
    for node in graph:
        run, place = home.get(node.meta.get(locations.FX_NODE), (None, 0))
        if run is not None:
            found[run][place].append(node)
    return found


def _in_order(graph: ir.Graph) -> None:
    """Sorts the weights as the model has them."""
    last = len(graph.initializers)

    def place(value: ir.Value) -> int:
        found = getattr(value.const_value, "place", -1)
        return last if found < 0 else int(found)

    values = sorted(graph.initializers.values(), key=place)
    graph.initializers.clear()
    for value in values:
        graph.register_initializer(value)


@dataclasses.dataclass
class _Template:
    """What the copies of a node have in common.

    Attributes:
        node: The node.
        sources: Where each input comes from.
        operator: The place in the block of the operator that it was made for.
        meta: Its `meta`, without that operator.
        outputs: For each output the place in the block of the operator that it is the result of, and what its name adds to that one's.
    """

    node: ir.Node
    sources: Sequence[Source]
    operator: int
    meta: Mapping[str, Any]
    attributes: Sequence[ir.Attr]
    outputs: Sequence[tuple[ir.Value, int | None, str | None]]


class _Copier:
    """Copies the nodes of one run.

    Args:
        graph: The graph.
        run: The run.
        nodes: The ONNX nodes of its built blocks.
        values: The values for the weights and inputs of the program.
        origin: Makes the `metadata_props` of the ONNX nodes for an operator.
        names: The names in the graph.

    Attributes:
        pattern: The nodes that are copied.

    Raises:
        Unequal: Two blocks became different nodes.
    """

    def __init__(
        self,
        graph: ir.Graph,
        run: Run,
        nodes: Sequence[Nodes],
        values: Mapping[torch.fx.Node, ir.Value],
        origin: Callable[[torch.fx.Node], dict[str, str]],
        names: Names,
    ) -> None:
        self.pattern = nodes[2]
        self._graph = graph
        self._run = run
        self._last = set(nodes[3])
        self._values = values
        self._origin = origin
        self._names = names
        sources = compared(run, nodes, values)
        self._readers = list(self._reads_of_pattern())
        places = {node: place for place, node in enumerate(run.blocks[2])}
        self._templates = [self._template(node, each, places) for node, each in zip(self.pattern, sources, strict=True)]
        weights_left_out = (values[each] for place in run.copied for each in run.given[place])
        if not names.take(value.name for value in weights_left_out if isinstance(value.const_value, weights.Weight)):
            raise Unequal

    def _reads_of_pattern(self) -> Iterator[tuple[ir.Node, int, ir.Value]]:
        """The inputs of the last block that come from the block before it."""
        inside = set(self.pattern)
        for node in self.pattern:
            for value in node.outputs:
                if value.is_graph_output():
                    raise Unequal
                for reader, index in value.uses():
                    if reader in self._last:
                        yield reader, index, value
                    elif reader not in inside:
                        raise Unequal

    @staticmethod
    def _template(node: ir.Node, sources: Sequence[Source], places: Mapping[torch.fx.Node, int]) -> _Template:
        operator = node.meta[locations.FX_NODE]
        meta = {key: value for key, value in node.meta.items() if key != locations.FX_NODE}
        outputs: list[tuple[ir.Value, int | None, str | None]] = []
        for value in node.outputs:
            own = value.meta.get(locations.FX_NODE, operator)
            stem, name = own.name, value.name or ""
            added = name.removeprefix(stem) if name == stem or name.startswith((f"{stem}.", f"{stem}_")) else None
            outputs.append((value, places.get(own), added))
        return _Template(node, sources, places[operator], meta, tuple(node.attributes.values()), outputs)

    def copy(self) -> None:
        """Adds the copies to the graph."""
        position = {node: index for index, node in enumerate(self._graph)}
        before = min(self._last, key=position.__getitem__)
        made: list[list[ir.Value]] = [list(node.outputs) for node in self.pattern]
        place_of = {value: (index, place) for index, values in enumerate(made) for place, value in enumerate(values)}
        copies: list[ir.Node] = []
        for place in self._run.copied:
            made = self._copy_of(place, made, copies)
        self._graph.insert_before(before, copies)
        for reader, index, value in self._readers:
            node, output = place_of[value]
            reader.replace_input_with(index, made[node][output])

    def _copy_of(self, place: int, before: Sequence[Sequence[ir.Value]], copies: list[ir.Node]) -> list[list[ir.Value]]:
        """The values of the block at `place`, whose nodes are appended to `copies`. `before` are the values of the block before it."""
        operators = self._run.blocks[place]
        given = [self._values[each] for each in self._run.given[place]]
        own: list[list[ir.Value]] = []
        computed: dict[ir.Value, ir.Value] = {}
        origins: dict[int, dict[str, str]] = {}
        for template in self._templates:
            inputs = [self._input(each, own, before, given, computed) for each in template.sources]
            number = template.operator
            if number not in origins:
                origins[number] = self._origin(operators[number])
            outputs = [self._output(value, None if index is None else operators[index], added) for value, index, added in template.outputs]
            node = ir.Node(
                template.node.domain,
                template.node.op_type,
                inputs,
                template.attributes,
                outputs=outputs,
                version=template.node.version,
                name=f"{template.node.op_type}_{outputs[0].name}",
                metadata_props=dict(origins[number]),
            )
            node.meta.update(template.meta)
            node.meta[locations.FX_NODE] = operators[number]
            copies.append(node)
            own.append(outputs)
        for value in given:
            if value.const_value is not None and value.uses() and not value.is_initializer():
                self._graph.register_initializer(value)
        return own

    def _output(self, value: ir.Value, operator: torch.fx.Node | None, added: str | None) -> ir.Value:
        wanted = None if operator is None or added is None else f"{operator.name}{added}"
        shape = None if value.shape is None else value.shape.copy()
        copied = ir.Value(name=self._names.free(wanted), shape=shape, type=value.type)
        if operator is not None and locations.FX_NODE in value.meta:
            copied.meta[locations.FX_NODE] = operator
        return copied

    def _input(
        self,
        source: Source,
        own: Sequence[Sequence[ir.Value]],
        before: Sequence[Sequence[ir.Value]],
        given: Sequence[ir.Value],
        computed: dict[ir.Value, ir.Value],
    ) -> ir.Value | None:
        match source.kind:
            case "own":
                return own[source.place][source.output]
            case "before":
                return before[source.place][source.output]
            case "given":
                return given[source.place]
            case "computed":
                assert source.value is not None
                return self._computed(source, own, before, given, computed)
            case _:
                return source.value

    def _computed(
        self,
        source: Source,
        own: Sequence[Sequence[ir.Value]],
        before: Sequence[Sequence[ir.Value]],
        given: Sequence[ir.Value],
        computed: dict[ir.Value, ir.Value],
    ) -> ir.Value:
        """The weight that is computed from the weights of this block."""
        pattern = source.value
        assert pattern is not None
        if pattern not in computed:
            tensor = pattern.const_value
            assert isinstance(tensor, weights.Computed)
            made = tensor.formula.apply([self._input(each, own, before, given, computed) for each in source.parts])
            made.name = self._names.free(made.name)
            value = ir.Value(name=made.name, shape=ir.Shape(made.like.shape), type=ir.TensorType(made.dtype), const_value=made)
            self._graph.register_initializer(value)
            computed[pattern] = value
        return computed[pattern]
