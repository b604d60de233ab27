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
from onnxplain.source.module_calls import ModuleCall, module_calls

from .comparison import Source, Unequal, compared
from .copies import CopiedNode, CopiedValue
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
    added: list[ir.Value] = []
    for run, copier in zip(runs, copiers, strict=True):
        copier.copy(added)
        count = f"{len(run.blocks)} blocks of {len(run.blocks[0])} operators are equal"
        context.event(f"{count}: the {len(copier.pattern)} ONNX nodes of one were copied {len(run.copied)} times.")
    _in_order(model.graph, added)
    return True


def _blocks(graph: ir.Graph, runs: Sequence[Run]) -> list[list[list[ir.Node]]]:
    """The ONNX nodes of the blocks that were built, for each run."""
    home: dict[Any, tuple[int, int]] = {
        node: (run, place) for run, each in enumerate(runs) for place, index in enumerate(each.built) for node in each.blocks[index]
    }
    found: list[list[list[ir.Node]]] = [[[] for _ in each.built] for each in runs]
    for node in graph:
        known = home.get(node.meta.get(locations.FX_NODE))
        if known is not None:
            found[known[0]][known[1]].append(node)
    return found


def _in_order(graph: ir.Graph, added: Sequence[ir.Value]) -> None:
    """Adds weights, and sorts all of them as the model has them."""
    values = [*graph.initializers.values(), *added]
    last = len(values)

    def place(value: ir.Value) -> int:
        found = getattr(value.const_value, "place", -1)
        return last if found < 0 else int(found)

    graph.initializers.clear()
    for value in sorted(values, key=place):
        graph.register_initializer(value)


@dataclasses.dataclass(slots=True)
class _Output:
    """What the copies of an output have in common.

    Attributes:
        type: Its type.
        shape: Its shape. The copies share it, so that nobody may change it in place.
        result_of: The place in the block of the operator whose result it is; None if it is none.
        named_after: The place in the block of the operator after which it is named; None if its name is a number.
        added: What its name adds to that of the operator.
    """

    type: ir.TypeProtocol | None
    shape: ir.Shape | None
    result_of: int | None
    named_after: int | None = None
    added: str = ""


@dataclasses.dataclass(slots=True)
class _Template:
    """What the copies of a node have in common.

    Attributes:
        node: The node that they are copies of.
        op_type: Its operator.
        inputs: The numbers of its inputs among the values of the block.
        operator: The place in the block of the operator that it was made for.
        meta: Its `meta`, without that operator.
        outputs: Its outputs.
        call: The module call whose function it calls.
    """

    node: ir.Node
    op_type: str
    inputs: Sequence[int]
    operator: int
    meta: Sequence[tuple[str, Any]]
    outputs: Sequence[_Output]
    call: _Call | None


@dataclasses.dataclass(slots=True)
class _Call:
    """What the copies of a call of a function have in common.

    Attributes:
        depth: The place of the module call among those in which the operator was made.
        prefix: What its name lacks of the path of the module.
    """

    depth: int
    prefix: str

    def of(self, operator: torch.fx.Node) -> ModuleCall:
        """The module call of another block."""
        return module_calls(operator)[self.depth]

    def name(self, operator: torch.fx.Node) -> str:
        """The name of the node for that call."""
        return self.of(operator).path.removeprefix(self.prefix)

    def facts(self, operator: torch.fx.Node) -> dict[str, str]:
        """The `metadata_props` of the node for that call."""
        call = self.of(operator)
        return {"onnxplain.module": call.path, "onnxplain.class": call.class_name}


def _call(node: ir.Node) -> _Call | None:
    call: ModuleCall | None = node.meta.get(locations.CALL)
    if call is None:
        return None
    calls = module_calls(node.meta[locations.FX_NODE])
    if call not in calls or not call.path.endswith(node.name or ""):
        raise Unequal
    return _Call(calls.index(call), call.path.removesuffix(node.name or ""))


def _template(node: ir.Node, inputs: Sequence[int], places: Mapping[torch.fx.Node, int]) -> _Template:
    operator = node.meta[locations.FX_NODE]
    outputs = []
    for value in node.outputs:
        own = value.meta.get(locations.FX_NODE, operator)
        shape = None if value.shape is None else value.shape.copy(frozen=True)
        made = _Output(value.type, shape, places.get(own) if locations.FX_NODE in value.meta else None)
        name = value.name or ""
        after = next((each for each in (own, operator) if each in places and f"{name}.".startswith(f"{each.name}.")), None)
        if after is not None:
            made.named_after, made.added = places[after], name.removeprefix(after.name)
        outputs.append(made)
    meta = [(key, value) for key, value in node.meta.items() if key not in (locations.FX_NODE, locations.CALL)]
    return _Template(node, node.op_type, inputs, places[operator], meta, outputs, _call(node))


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
        self._layout = _Layout(names, self.pattern, len(run.given[2]))
        numbers = [list(map(self._layout.number, each)) for each in sources]
        self._templates = [_template(node, each, places) for node, each in zip(self.pattern, numbers, strict=True)]
        left_out = (values[each] for place in run.copied for each in run.given[place])
        if not self._last or not names.take(value.name for value in left_out if isinstance(value.const_value, weights.Weight)):
            raise Unequal
        calls = [(each.call, each.operator) for each in self._templates if each.call is not None]
        made = [call.name(run.blocks[place][number]) for place in run.copied for call, number in calls]
        if calls and len({*made, *(node.name for node in graph)}) < len(made) + len(graph):
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

    def copy(self, added: list[ir.Value]) -> None:
        """Adds the copies to the graph, and the weights that only they read to `added`."""
        first = next(node for node in self._graph if node in self._last)
        made: Sequence[ir.Value] = [value for node in self.pattern for value in node.outputs]
        place_of = {value: place for place, value in enumerate(made)}
        copies: list[ir.Node] = []
        for place in self._run.copied:
            made = self._copy_of(place, made, copies, added)
        self._graph.insert_before(first, copies)
        for reader, index, value in self._readers:
            reader.replace_input_with(index, made[place_of[value]])

    def _copy_of(self, place: int, before: Sequence[ir.Value], copies: list[ir.Node], added: list[ir.Value]) -> Sequence[ir.Value]:
        """What the nodes of the block at `place` make. The nodes are appended to `copies`, and their weights to `added`.

        `before` is what the block before it made.
        """
        operators = self._run.blocks[place]
        given = [self._values[each] for each in self._run.given[place]]
        values: list[Any] = self._layout.values(before, given, added)
        start = next_own = self._layout.own
        known: dict[int, dict[str, str]] = {}
        # NOTE: most of an export of a deep model is spent here.
        for template in self._templates:
            number, call = template.operator, template.call
            if call is not None:
                facts = call.facts(operators[number])
            elif number in known:
                facts = known[number].copy()
            else:
                facts = known[number] = self._origin(operators[number])
            outputs = [self._output(each, operators) for each in template.outputs]
            inputs = [values[each] for each in template.inputs]
            name = f"{template.op_type}_{outputs[0].name}" if call is None else call.name(operators[number])
            made = CopiedNode(template.node, inputs, outputs, name, facts, operators[number])
            if template.meta:
                made.meta.update(template.meta)
            if call is not None:
                made.meta[locations.CALL] = call.of(operators[number])
            copies.append(made)
            for value in outputs:
                values[next_own] = value
                next_own += 1
        added += (value for value in given if isinstance(value.const_value, weights.Weight) and value.uses())
        return values[start:next_own]

    def _output(self, pattern: _Output, operators: Sequence[torch.fx.Node]) -> CopiedValue:
        after, result_of = pattern.named_after, pattern.result_of
        name = self._names.free(None if after is None else f"{operators[after].name}{pattern.added}")
        copied = CopiedValue(name=name, shape=pattern.shape, type=pattern.type)
        copied.operator = None if result_of is None else operators[result_of]
        return copied


class _Layout:
    """Numbers the values that the nodes of a block read and make, so that a copy finds each of them in one list.

    The list has what the block before it makes, the weights and inputs that it alone reads, what it makes, and what is left: weights that
    are computed for it, and what is the same for all blocks.

    Args:
        names: The names in the graph.
        pattern: The nodes that are copied.
        given: How many weights and inputs a block alone reads.

    Attributes:
        own: The number of the first value that the block makes.
    """

    def __init__(self, names: Names, pattern: Nodes, given: int) -> None:
        self._names = names
        made = [(place, output) for place, node in enumerate(pattern) for output in range(len(node.outputs))]
        self._made = {each: number for number, each in enumerate(made)}
        self.own = len(made) + given
        self._left: dict[ir.Value | None, int] = {}
        self._computed: dict[ir.Value, Sequence[int]] = {}

    def number(self, source: Source) -> int:
        """The number of a value that comes from `source`."""
        match source.kind:
            case "before":
                return self._made[source.place, source.output]
            case "given":
                return len(self._made) + source.place
            case "own":
                return self.own + self._made[source.place, source.output]
        if source.value not in self._left:
            if source.kind == "computed" and source.value is not None:
                self._computed[source.value] = [self.number(each) for each in source.parts]
            self._left[source.value] = self.own + len(self._made) + len(self._left)
        return self._left[source.value]

    def values(self, before: Sequence[ir.Value], given: Sequence[ir.Value], added: list[ir.Value]) -> list[ir.Value | None]:
        """The values of a block, without those that it makes itself. Weights that are computed for it are appended to `added`."""
        values = [*before, *given, *[None] * len(before), *self._left]
        for pattern, parts in self._computed.items():
            made = values[self._left[pattern]] = self._weight(pattern, [values[each] for each in parts])
            added.append(made)
        return values

    def _weight(self, pattern: ir.Value, parts: Sequence[ir.Value | None]) -> ir.Value:
        """The weight that is computed from `parts` as another one is computed."""
        tensor = pattern.const_value
        assert isinstance(tensor, weights.Computed)
        made = tensor.alike(parts)
        made.name = self._names.free(made.name)
        return ir.Value(name=made.name, shape=made.shape, type=ir.TensorType(made.dtype), const_value=made)
