"""Walks through a program beside the exported model, and judges each of its values."""

from __future__ import annotations

import contextlib
import dataclasses
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnxplain.registry import qualified_name
from onnxplain.torch_internals.operators import OpOverload
from onnxplain.torch_internals.python_values import is_a

from . import equal_elements, sessions
from .calls import Call, called, widened
from .causes import Answer, Scene, cause_of
from .comparison import Comparison, compare, is_rounding
from .lockstep import Lockstep
from .parts import Part, computing
from .single_operator import script
from .sums import is_rounding_of_sums

_OWN_SHARE = 0.2
"""The part of the tolerance within which an operator repeats a result, if it alone shall not explain a difference."""
_JUMP = 10
"""How many times larger a difference becomes in an operator that decides by rounding."""
_NOTICED = 0.02
"""The part of the tolerance from which on it is computed in float64 whether an operator's own difference is rounding."""
_FAULTS = 5
"""The most operators that are looked at for the cause of their fault."""
_PART = 40
"""The most ONNX nodes that are looked at as the translation of one operator."""


@dataclasses.dataclass(frozen=True)
class Row:
    """The comparison of one node.

    Attributes:
        node: The node.
        before: The largest difference among the values that it takes.
        difference: The difference of the exported model's value from PyTorch's.
        own: The difference from what PyTorch computes for the values that the exported model has before.
        tolerance: How large a difference may be.
        rounds: Whether its own difference is rounding.
    """

    node: torch.fx.Node
    before: float
    difference: float
    own: float
    tolerance: float
    rounds: bool


@dataclasses.dataclass(frozen=True)
class Fault:
    """An operator that the exported model computes otherwise than PyTorch, and not because of its inputs.

    Attributes:
        row: The comparison of its first call.
        nodes: All calls that are wrong.
        operator: The operator.
        answer: The cause; None if it was not looked for, or the operator alone is right.
        onnx: The types of the ONNX nodes that compute it.
        shapes: Dtypes and shapes of what it takes, and of its result.
        script: A script that computes it alone; empty if there is none.
    """

    row: Row
    nodes: tuple[torch.fx.Node, ...]
    operator: str
    answer: Answer | None
    onnx: tuple[str, ...]
    shapes: tuple[tuple[str, ...], str]
    script: str

    @property
    def node(self) -> torch.fx.Node:
        """The first call."""
        return self.row.node


class Walk(torch.fx.Interpreter):
    """Computes each node from PyTorch's values, from the exported model's values where these differ, and from PyTorch's in float64.

    Args:
        module: The graph.
        model: The exported model.
        lockstep: Its values.
        known: The value of the exported model for each node.
        allowed: The tolerance of each value.
        wanted: The nodes that matter.
        results: The nodes whose values are kept.
        suspect: As for `compared`.
        write: As for `session`.
    """

    def __init__(
        self,
        module: torch.fx.GraphModule,
        model: ir.Model,
        lockstep: Lockstep,
        known: Mapping[torch.fx.Node, ir.Value],
        allowed: Mapping[ir.Value, float],
        wanted: Collection[torch.fx.Node],
        results: Collection[torch.fx.Node],
        suspect: torch.fx.Node | None,
        write: sessions.WriteModel,
    ) -> None:
        super().__init__(module)
        self._model = model
        self._lockstep = lockstep
        self._known = known
        self._allowed = allowed
        self._wanted = wanted
        self._results = results
        self._suspect = suspect
        self._write = write
        self._others: dict[torch.fx.Node, Any] = {}
        self._exact: dict[torch.fx.Node, Any] = {}
        self._kept: dict[torch.fx.Node, Any] = {}
        self._calls: dict[torch.fx.Node, Call] = {}
        self._apart: dict[torch.fx.Node, float] = {}
        self._done = _last_needs(list(module.graph.nodes), known)
        self._behind: set[torch.fx.Node] = set()
        self._blind: set[torch.fx.Node] = set()
        self._suspicious: set[torch.fx.Node] = set()
        self.values: dict[torch.fx.Node, torch.Tensor] = {}
        self.exact_values: dict[torch.fx.Node, torch.Tensor] = {}
        self.outputs: dict[ir.Value, torch.Tensor] = {}
        self.rows: list[Row] = []
        self.wrong: list[torch.fx.Node] = []
        self.faults: list[Fault] = []
        self.decided: set[torch.fx.Node] = set()
        self.chosen: set[torch.fx.Node] = set()
        self.overflowed: list[torch.fx.Node] = []

    def run_node(self, n: torch.fx.Node) -> Any:
        """Runs one node, and judges the exported model's value for it."""
        if n.op == "call_function" and n not in self._wanted:
            return None
        result = super().run_node(n)
        if n.op == "call_function":
            self._follow(n, result)
        if n in self._results and is_a(result, torch.Tensor):
            # NOTE: a later node may write to it.
            self.values[n] = result.clone()
            if is_a(self._exact.get(n), torch.Tensor):
                self.exact_values[n] = self._exact[n].clone()
        for done in self.user_to_last_uses.get(n, ()):
            for values in (self._others, self._exact, self._calls):
                values.pop(done, None)
        for value in self._done.get(n, ()):
            self._lockstep.release(value)
        return result

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs one operator."""
        return called(target, args, kwargs)

    def _follow(self, node: torch.fx.Node, result: Any) -> None:
        inputs = node.all_input_nodes
        own = self._on_others(node, result)
        self._compute_in_double(node)
        self._note_overflow(node, result)
        self._behind |= {node} & {node for each in inputs if each in self._behind}
        self._blind |= {node} & {node for each in inputs if each in self._blind}
        self._suspicious |= {node} & {node for each in inputs if each in self._suspicious}
        if not is_a(result, torch.Tensor):
            with self._values(self._others):
                self._calls[node] = Call(_function(node), *self.fetch_args_kwargs_from_env(node))
            self._apart[node] = self._before(node)
            if (elements := equal_elements.chosen_from(node)) is not None:
                self._kept |= {elements: self._value_of(elements), node: self._value_of(node, result)}
        elif node in self._known:
            self._judge(node, result, own)
        elif own is not result:
            self._apart[node] = compare(own, result).difference
        if sources := [each for each in inputs if each in self.decided]:
            self.decided.add(node)
            self.chosen |= {node} if all(each in self.chosen for each in sources) else set()

    def _on_others(self, node: torch.fx.Node, result: Any) -> Any:
        """The result of a node for the exported model's values; `result` if these are not known, or if the node refuses them."""
        if not any(each in self._others for each in node.all_input_nodes):
            return result
        try:
            with self._values(self._others):
                self._others[node] = super().run_node(node)
        except Exception:  # noqa: BLE001  operators refuse values with any exception
            return result
        return self._others[node]

    def _compute_in_double(self, node: torch.fx.Node) -> None:
        """The node's result in float64, from the results of those before it in float64."""
        if any(each.op == "call_function" and each not in self._exact for each in node.all_input_nodes):
            return
        # NOTE: operators refuse float64 with any exception.
        with contextlib.suppress(Exception), self._values(self._exact):
            args, kwargs = self.fetch_args_kwargs_from_env(node)
            self._exact[node] = Call(_function(node), widened(args), widened(kwargs)).run()

    @contextlib.contextmanager
    def _values(self, others: Mapping[torch.fx.Node, Any]) -> Iterator[None]:
        """Nodes take `others` in place of PyTorch's values."""
        env, self.env = self.env, {**self.env, **others}
        try:
            yield
        finally:
            self.env = env

    def _judge(self, node: torch.fx.Node, result: torch.Tensor, own: torch.Tensor) -> None:
        value = self._known[node]
        got = self._lockstep.of(value)
        if got is None:
            return
        # NOTE: PyTorch goes on with it on its own device.
        got = got.to(result.device)
        if value.is_graph_output():
            self.outputs[value] = got
        tolerance = self._allowed[value]
        found, again = compare(got, result, tolerance), compare(got, own, tolerance)
        call = self._call(node)
        is_noticed = again.difference > _NOTICED * again.tolerance
        exact = call.in_double() if call is not None and is_noticed else None
        rounds = exact is not None and call is not None and (is_rounding(got, own, exact) or is_rounding_of_sums(got, exact, call))
        row = Row(node, self._before(node), found.difference, again.difference, found.tolerance, rounds)
        self._apart[node] = found.difference
        self.rows.append(row)
        if is_noticed and not rounds:
            self._suspicious.add(node)
        is_new = found.differs and not self._is_right(row, again, got, own)
        if is_new and node not in self._blind:
            self.wrong.append(node)
            self._behind.add(node)
        if (is_new and node not in self._blind) or node is self._suspect:
            self._add_fault(row, call, got, own, exact)
        if got.shape == result.shape and got.dtype == result.dtype:
            self._others[node] = got
        elif result.is_complex() and got.shape[:-1] == result.shape:
            self._others[node] = torch.view_as_complex(got.contiguous())
        else:
            self._blind.add(node)

    def _is_right(self, row: Row, again: Comparison, got: torch.Tensor, own: torch.Tensor) -> bool:
        """Whether a value that differs is right for the values before it. Notes what decided the difference."""
        node = row.node
        # NOTE: integers and bools have no tolerance, so that no small faults of several operators add up to such a difference. Neither do
        # they where each operator's own difference is rounding.
        jumps = row.tolerance == 0 or row.difference > _JUMP * row.before or node not in self._suspicious
        repeats = row.own <= _OWN_SHARE * again.tolerance
        chosen = equal_elements.is_other_choice(node, self._value_of, got) or equal_elements.is_opposite(node, own, got)
        if (repeats and jumps) or row.rounds or chosen:
            self.decided.add(node)
            self.chosen |= {node} if chosen else set()
            return True
        return not again.differs and any(each in self.decided or each in self._behind for each in node.all_input_nodes)

    def _add_fault(self, row: Row, call: Call | None, got: torch.Tensor, own: torch.Tensor, exact: torch.Tensor | None) -> None:
        name = operator_name(row.node)
        place = next((index for index, each in enumerate(self.faults) if each.operator == name), None)
        if place is not None:
            self.faults[place] = dataclasses.replace(self.faults[place], nodes=(*self.faults[place].nodes, row.node))
            return
        value = self._known[row.node]
        part = computing(self._model.graph, value, set(self._known.values()), _PART)
        if part is not None and not all(each in self._lockstep.values for each in part.inputs):
            part = None
        answer, text = None, ""
        if len(self.faults) < _FAULTS and (row.own > _OWN_SHARE * row.tolerance or row.node is self._suspect):
            limit = min(_OWN_SHARE * row.tolerance, row.own / 4)
            values = {} if part is None else {each: self._lockstep.values[each] for each in part.inputs}
            overflowed = any(each in self.overflowed for each in _upstream(row.node))
            scene = Scene(self._model, part, values, got, own, exact, limit, overflowed, self._write)
            # NOTE: dtypes that an operator or NumPy lacks must not hide that the result is wrong.
            with contextlib.suppress(Exception):
                answer = cause_of(scene)
                text = script(scene, call)
        given = () if call is None else tuple(map(_described, call.tensors()))
        fault = Fault(row, (row.node,), name, answer, _types(part), (given, _described(got)), text)
        self.faults.append(fault)

    def _call(self, node: torch.fx.Node) -> Call | None:
        """The node's call of an operator with the exported model's values; None if it is known no more."""
        if node.target is operator.getitem:
            source, index = node.args
            found = self._calls.get(source) if isinstance(source, torch.fx.Node) else None
            return None if found is None or not isinstance(index, int) else dataclasses.replace(found, index=index)
        with self._values(self._others):
            return Call(_function(node), *self.fetch_args_kwargs_from_env(node))

    def _before(self, node: torch.fx.Node) -> float:
        return max((self._apart.get(each, 0.0) for each in node.all_input_nodes), default=0.0)

    def _value_of(self, node: torch.fx.Node, default: Any = None) -> Any:
        """The exported model's value for a node, or else PyTorch's."""
        return next((values[node] for values in (self._others, self._kept, self.env) if node in values), default)

    def _note_overflow(self, node: torch.fx.Node, result: Any) -> None:
        if not is_a(result, torch.Tensor) or result.dtype is not torch.float16 or bool(result.isfinite().all()):
            return
        given = [self.env[each] for each in node.all_input_nodes]
        if not all(bool(each.isfinite().all()) for each in given if is_a(each, torch.Tensor) and each.is_floating_point()):
            return
        # NOTE: an infinity in float64 is meant, as in a mask.
        call = self._call(node)
        exact = None if call is None else call.in_double()
        if exact is not None and exact.shape == result.shape and bool((exact.isfinite() & ~result.isfinite()).any()):
            self.overflowed.append(node)


def _last_needs(nodes: Sequence[torch.fx.Node], known: Mapping[torch.fx.Node, ir.Value]) -> dict[torch.fx.Node, list[ir.Value]]:
    """For each node, the exported model's values that nobody asks for after it: a node is told from the known values before it."""
    numbers = {node: number for number, node in enumerate(nodes)}
    needs: dict[torch.fx.Node, int] = {}
    last: dict[ir.Value, int] = {}
    for node in reversed(nodes):
        needs[node] = max([numbers[node], *(numbers[each] if each in known else needs[each] for each in node.users)])
        if node in known:
            last[known[node]] = max(needs[node], last.get(known[node], 0))
    found: dict[torch.fx.Node, list[ir.Value]] = {}
    for value, number in last.items():
        found.setdefault(nodes[number], []).append(value)
    return found


def operator_name(node: torch.fx.Node) -> str:
    """The operator that computes a node, such as `aten::gelu`."""
    source = node.args[0] if node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node) else node
    return qualified_name(source.target) if isinstance(source.target, OpOverload) else str(source.target)


def _function(node: torch.fx.Node) -> Callable[..., Any]:
    assert callable(node.target)
    return node.target


def _upstream(node: torch.fx.Node) -> set[torch.fx.Node]:
    found, left = {node}, [node]
    while left:
        new = set(left.pop().all_input_nodes) - found
        found |= new
        left += new
    return found


def _types(part: Part | None) -> tuple[str, ...]:
    return () if part is None else tuple(dict.fromkeys(node.op_type for node in part.nodes if node.op_type != "Constant"))


def _described(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}[{', '.join(map(str, tensor.shape))}]"
