"""Values that no input decides, such as the largest entry of a mask that the code makes of ones: known during a capture.

torch gives `.item()` an unknown value, at which Python code cannot branch. But the graph so far tells where the tensor comes from. If it
comes from operators that make tensors of numbers, these operators are run here, on data.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from . import known_weights, numbers_of_sizes, pytree, shape_env, tracing
from .fake_kernels import TABLE, KernelSlot
from .fake_tensors import FakeTensor, share_memory
from .operators import ITEMS, OpOverload, OpOverloadPacket, overloads, schema
from .patching import all_wrapped
from .symbols import Attribute, Symbol

shape_env.leave_out(__file__)

# NOTE: read in torch 2.11, 2.13 and 2.15, fx/experimental/proxy_tensor.py: the tracer makes the node of an operator before the operator's
# fake kernel runs.
_WITHOUT = "code that branches on a value that no input decides cannot be captured"
_ROOT = Attribute("torch.fx.experimental.proxy_tensor:PythonKeyTracer.root", without=_WITHOUT)
_LARGEST = 1 << 20
"""The most elements of a tensor whose values are computed."""

_MOST = 1 << 24
"""The most elements of all these tensors together."""

# NOTE: operators whose names begin with an underscore are those of core ATen, which torch documents.
_ATEN = torch.ops.aten

_FILLED: dict[OpOverloadPacket, int | float | str] = {
    _ATEN.zeros: 0,
    _ATEN.zeros_like: 0,
    _ATEN.new_zeros: 0,
    _ATEN.ones: 1,
    _ATEN.ones_like: 1,
    _ATEN.new_ones: 1,
    _ATEN.full: "fill_value",
    _ATEN.full_like: "fill_value",
    _ATEN.new_full: "fill_value",
}
"""The operators that fill a new tensor: with which number, or with which argument."""

_EQUAL = _ATEN.equal.default
_REPEATED = _ATEN.repeat_interleave.Tensor
_OF_ANY_SIZE = (
    _ATEN.bincount.default,
    _ATEN.index.Tensor,
    _ATEN.masked_select.default,
    _ATEN.nonzero.default,
    _ATEN.nonzero_numpy.default,
    _REPEATED,
    _ATEN.unique_consecutive.default,
    _ATEN.unique_dim.default,
)
"""Operators whose results have sizes that data decide."""
_DISTINCT = Symbol("torch.ops:aten._unique2.default", without="code that loops over the distinct values of a constant cannot be captured")

_UNINITIALIZED = frozenset(
    {_ATEN.empty, _ATEN.empty_like, _ATEN.empty_strided, _ATEN.empty_permuted, _ATEN.new_empty, _ATEN.new_empty_strided}
)

_COPIES = {_ATEN.clone, _ATEN.contiguous, _ATEN.detach, _ATEN.alias, _ATEN.lift_fresh_copy, _ATEN.to, _ATEN._to_copy, _ATEN.type_as}
_SHAPES = {_ATEN.flatten, _ATEN.reshape, _ATEN.reshape_as, _ATEN.squeeze, _ATEN.unflatten, _ATEN.unsqueeze, _ATEN.view, _ATEN.view_as}
_ORDERS = {_ATEN.flip, _ATEN.movedim, _ATEN.permute, _ATEN.swapaxes, _ATEN.t, _ATEN.transpose}
_REPEATS = {_ATEN.broadcast_tensors, _ATEN.broadcast_to, _ATEN.expand, _ATEN.expand_as, _ATEN.repeat, _ATEN.tile}
_SELECTIONS = {_ATEN.index_select, _ATEN.narrow, _ATEN.select, _ATEN.slice}
_PARTS = {_ATEN.cat, _ATEN.chunk, _ATEN.concat, _ATEN.split, _ATEN.split_with_sizes, _ATEN.stack, _ATEN.unbind}
_ARRANGE = frozenset(_COPIES | _SHAPES | _ORDERS | _REPEATS | _SELECTIONS | _PARTS)
"""The operators whose result has elements of their arguments and no others."""

_PICKS = frozenset({_ATEN.gather, _ATEN.index, _ATEN.take})
"""The operators whose result has elements of their first argument and no others, wherever the other arguments point."""

_MASKED = frozenset({_ATEN.index_put_.default, _ATEN.masked_fill_.Scalar, _ATEN.masked_fill_.Tensor})
"""The operators that write where a mask is true."""

_BITS = frozenset({_ATEN.__and__, _ATEN.__or__, _ATEN.__xor__})
"""Operators on elements that torch does not tag as such."""

_OF_EQUAL_ONES = frozenset({_ATEN.any, _ATEN.all, _ATEN.amax, _ATEN.amin, _ATEN.max, _ATEN.min, _ATEN.mean})
"""The reductions whose result is, for equal elements, that element, unless there are none."""


class _Unknown(Exception):
    """An input decides the value, or it is too large."""


@dataclasses.dataclass(frozen=True)
class _Value:
    """A known tensor.

    Attributes:
        data: The data. If the sizes are symbolic, one element: all are equal.
        is_whole: Whether `data` has the tensor's shape; otherwise as many dims, each of size 1.
    """

    data: torch.Tensor
    is_whole: bool

    def element(self) -> torch.Tensor:
        """The one element, with as many dims as the tensor.

        Raises:
            _Unknown: There are elements that are not equal, or none.
        """
        element = self.data[(slice(1),) * self.data.ndim]
        if element.numel() != 1 or not bool((self.data == element).all()):
            raise _Unknown
        return element


class _Graph:
    """The known values of a graph that is being recorded."""

    def __init__(self) -> None:
        self._values: dict[torch.fx.Node, Any] = {}
        self._last: torch.fx.Node | None = None
        self._left = _MOST

    def value(self, node: torch.fx.Node, root: Any) -> Any:
        """The value of `node`, the operator that runs now or an argument of it; None if it is not known."""
        for each in self._new(node):
            try:
                self._values[each] = self._computed(each, root)
            except _Unknown:
                continue
            except Exception:  # noqa: BLE001  the operators of a user's model run here, maybe on values for which they fail
                continue
        if self._last is not None and "val" not in self._last.meta and self._last not in self._values:
            # NOTE: the operator that runs now has no result yet, so the next call looks at it again.
            self._last = self._last.prev
        return self._values.get(node)

    def _new(self, last: torch.fx.Node) -> Iterator[torch.fx.Node]:
        """The nodes since the last call, up to the newest one."""
        nodes = last.graph.nodes
        newest = next(iter(reversed(nodes)))
        while self._last is not newest:
            self._last = self._last.next if self._last is not None else next(iter(nodes))
            yield self._last

    def _computed(self, node: torch.fx.Node, root: Any) -> Any:
        if node.op == "get_attr":
            return _constant(operator.attrgetter(str(node.target))(root))
        if node.op != "call_function":
            raise _Unknown
        if node.target is operator.getitem:
            return self._values[node.args[0]][node.args[1]]  # type: ignore[index]  # nodes are keys
        if not isinstance(node.target, OpOverload) or node.target.namespace != "aten":
            # NOTE: functions and operators of other code may write to what they get.
            self._forget([value for each in node.all_input_nodes for value in pytree.tree_leaves(self._values.get(each))])
            raise _Unknown
        if schema(node.target).is_mutable:
            return self._written(node, node.target)
        packet = node.target.overloadpacket
        if torch.Tag.nondeterministic_seeded in node.target.tags or packet in _UNINITIALIZED:
            raise _Unknown
        meta = node.meta.get("val")
        if packet in _FILLED:
            self._spend(node)
            return _filled(node, meta)
        try:
            args, kwargs = self._arguments(node, whole=True)
        except _Unknown:
            return self._of_equal_elements(node, packet, meta)
        # NOTE: only now, so that large tensors that are not known cost nothing.
        self._spend(node)
        return pytree.tree_map(lambda each: _Value(each, True) if isinstance(each, torch.Tensor) else each, node.target(*args, **kwargs))

    def _spend(self, node: torch.fx.Node) -> None:
        # NOTE: the operator that runs now has no result yet.
        for meta in pytree.tree_leaves(node.meta["val"]) if "val" in node.meta else ():
            if not isinstance(meta, torch.Tensor) or meta.device.type == "meta" or meta.layout is not torch.strided:
                raise _Unknown
            if isinstance(size := meta.numel(), int):
                self._left -= size
                if size > _LARGEST or self._left < 0:
                    raise _Unknown

    def _arguments(self, node: torch.fx.Node, *, whole: bool) -> tuple[Any, Any]:
        """The arguments with data in place of nodes: all of them of whole shapes, or each of one element."""

        def known(each: Any) -> Any:
            value = self._values.get(each)
            if not isinstance(value, _Value) or (whole and not value.is_whole):
                raise _Unknown
            return value.data if whole else value.element()

        return torch.fx.node.map_arg((node.args, dict(node.kwargs)), known)

    def _written(self, node: torch.fx.Node, target: OpOverload) -> Any:
        """The results of an operator that writes to its arguments."""
        written = [
            value
            for position, argument in enumerate(schema(target).arguments)
            if argument.alias_info is not None and argument.alias_info.is_write
            for each in pytree.tree_leaves(node.kwargs.get(argument.name, node.args[position] if position < len(node.args) else None))
            if isinstance(value := self._values.get(each), _Value)
        ]
        if not written:
            raise _Unknown
        if target in _MASKED and self._is_untouched(node):
            return self._values[node.args[0]]  # type: ignore[index]  # nodes are keys
        try:
            if torch.Tag.nondeterministic_seeded in target.tags:
                raise _Unknown
            args, kwargs = self._arguments(node, whole=True)
            result = target(*args, **kwargs)
        except Exception:
            # NOTE: whatever it would have written, the old values are no longer those.
            self._forget(written)
            raise
        return pytree.tree_map(lambda each: _Value(each, True) if isinstance(each, torch.Tensor) else each, result)

    def _is_untouched(self, node: torch.fx.Node) -> bool:
        """Whether a write by masks changes nothing, since a mask is false everywhere."""
        masks = [self._values.get(each) for each in pytree.tree_leaves(node.args[1]) if isinstance(each, torch.fx.Node)]
        return any(isinstance(each, _Value) and each.data.dtype is torch.bool and not each.data.any() for each in masks)

    def _forget(self, written: list[Any]) -> None:
        """Forgets values, and all that share their memory."""
        memory = {each.data.untyped_storage().data_ptr() for each in written if isinstance(each, _Value)}
        for node, value in list(self._values.items()):
            if any(isinstance(each, _Value) and each.data.untyped_storage().data_ptr() in memory for each in pytree.tree_leaves(value)):
                del self._values[node]

    def _of_equal_elements(self, node: torch.fx.Node, packet: OpOverloadPacket, meta: Any) -> Any:
        """The result of an operator on tensors whose elements are all equal, whatever their sizes."""
        tensors = [each for each in node.all_input_nodes if isinstance(each.meta.get("val"), torch.Tensor)]
        if packet in _PICKS and isinstance(meta, torch.Tensor):
            tensors = [each for each in tensors if each is node.args[0]]
        known = [value for each in tensors if isinstance(value := self._values.get(each), _Value)]
        if not known or len(known) < len(tensors):
            raise _Unknown
        first, *others = (each.element() for each in known)
        if packet in _ARRANGE or packet in _PICKS:
            if any(each.item() != first.item() for each in others):
                raise _Unknown
            return pytree.tree_map(lambda each: _Value(first.to(each.device, each.dtype).reshape((1,) * each.ndim), False), meta)
        # NOTE: `max` and `min` of two tensors have the same names as those of one.
        if len(tensors) == 1 and (packet in _OF_EQUAL_ONES or packet is _ATEN.sum):
            return _Value(_reduced(packet, first, tensors[0].meta["val"], meta), False)
        if packet in _BITS or _is_on_elements(packet):
            args, kwargs = self._arguments(node, whole=False)
            result = node.target(*args, **kwargs)  # type: ignore[operator]  # an operator
            return _Value(result.reshape((1,) * meta.ndim), False)
        raise _Unknown


def _data(value: Any) -> torch.Tensor | None:
    return value.data if isinstance(value, _Value) and value.is_whole else None


def _constant(value: Any) -> _Value:
    if type(value) is not torch.Tensor or isinstance(value, FakeTensor) or value.device.type == "meta" or value.numel() > _LARGEST:
        raise _Unknown
    # NOTE: a copy, because operators that write to it run as well.
    return _Value(value.detach().clone(), True)


def _filled(node: torch.fx.Node, meta: Any) -> _Value:
    """The result of an operator that fills a new tensor."""
    number = _FILLED[node.target.overloadpacket]  # type: ignore[union-attr]  # an operator
    if isinstance(number, str):
        position = [each.name for each in schema(node.target).arguments].index(number)  # type: ignore[arg-type]  # it is a name
        given: Any = node.kwargs.get(number, node.args[position] if position < len(node.args) else None)
        if not isinstance(given, int | float | bool):
            raise _Unknown
        number = given
    is_whole = all(isinstance(size, int) for size in meta.shape)
    return _Value(torch.full(meta.shape if is_whole else (1,) * meta.ndim, number, dtype=meta.dtype, device=meta.device), is_whole)


def _reduced(packet: OpOverloadPacket, element: torch.Tensor, source: torch.Tensor, meta: Any) -> torch.Tensor:
    """The result of a reduction of equal elements."""
    if not isinstance(meta, torch.Tensor):
        raise _Unknown
    result = element.reshape((1,) * meta.ndim).to(meta.dtype)
    truth = bool(element.item())
    # NOTE: these results are those of no elements as well.
    is_any_size = (packet is _ATEN.any and not truth) or (packet is _ATEN.all and truth) or (packet is _ATEN.sum and not truth)
    if not is_any_size and (packet is _ATEN.sum or not all(shape_env.is_true(size > 0) for size in source.shape)):
        raise _Unknown
    return result


def _is_on_elements(packet: OpOverloadPacket) -> bool:
    name = packet.__name__
    return not name.endswith("_") and any(torch.Tag.pointwise in each.tags for each in overloads(name))


def _positions(mode: Any, indices: Sequence[Any], known: Sequence[Any]) -> list[Any]:
    """`indices` with tensors of positions, as many as elements that are chosen, in place of masks that are known."""
    found: list[Any] = []
    for index, value in zip(indices, known, strict=True):
        if isinstance(value, _Value) and value.is_whole and value.data.dtype in (torch.bool, torch.uint8):
            count = int(value.data.count_nonzero())
            with mode:
                found += [torch.empty(count, dtype=torch.int64, device=index.device) for _ in index.shape]
        else:
            found.append(index)
    return found


class _Kernels:
    """Fake kernels that know the values of the graphs that are being recorded."""

    def __init__(self) -> None:
        self._graphs: dict[torch.fx.Graph, _Graph] = {}

    def _running(self, target: OpOverload, *given: Any) -> tuple[torch.fx.Node, Callable[[Any], Any]] | None:
        """The node of the operator that runs now with the arguments `given`, and what tells the values of nodes; None if there is none."""
        newest = tracing.newest_node()
        if newest is None or newest[1].target not in (ITEMS if target in ITEMS else (target,)):
            return None
        tracer, node = newest
        metas = [each.meta.get("val") for each in pytree.tree_leaves((node.args, node.kwargs)) if isinstance(each, torch.fx.Node)]
        metas = [each for each in metas if not isinstance(each, int | torch.SymInt)]
        tensors = [each for each in pytree.tree_leaves(given) if isinstance(each, torch.Tensor)]
        # NOTE: operators that are not recorded run as well.
        if len(metas) != len(tensors) or not all(
            isinstance(each, torch.Tensor) and share_memory(each, of) for each, of in zip(metas, tensors, strict=True)
        ):
            return None
        graph = self._graphs.setdefault(node.graph, _Graph())
        return node, lambda each: graph.value(each, tracer.root) if isinstance(each, torch.fx.Node) else None

    def item(self, original: Callable[..., Any], mode: Any, target: OpOverload, tensor: torch.Tensor) -> Any:
        """The element of a tensor as a number."""
        found = self._running(target, tensor)
        newest = tracing.newest_node()
        if found is None or newest is None:
            return original(mode, target, tensor)
        (node, value), (tracer, _) = found, newest
        source = node.args[0]
        if isinstance(known := value(source), _Value):
            return known.data.item()
        assert isinstance(source, torch.fx.Node)
        size = numbers_of_sizes.number(source, _constants(value, tracer))
        return original(mode, target, tensor) if size is None else size

    def equal(self, original: Callable[..., Any], mode: Any, target: OpOverload, *tensors: torch.Tensor) -> Any:
        """Whether tensors are equal."""
        found = self._running(target, *tensors)
        values = [] if found is None else [found[1](each) for each in found[0].args]
        if values and all(isinstance(each, _Value) and each.is_whole for each in values):
            return torch.equal(*(each.data for each in values))
        return original(mode, target, *tensors)

    def sized(self, original: Callable[..., Any], mode: Any, target: OpOverload, *args: Any, **kwargs: Any) -> Any:
        """Results whose sizes data decide."""
        found = self._running(target, args, kwargs)
        if found is None:
            return _with_dtype_of_weights(target, args, original(mode, target, *args, **kwargs))
        node, value = found
        if (result := value(node)) is not None:
            with mode:
                return pytree.tree_map(lambda each: _empty(each.data), result)
        newest = tracing.newest_node()
        if target is _REPEATED and newest is not None and isinstance(repeats := node.args[0], torch.fx.Node):
            size = numbers_of_sizes.total(repeats, _constants(value, newest[0]))
            if size is not None:
                with mode:
                    return args[0].new_empty(size)
        if target is _ATEN.index.Tensor:
            args = (args[0], _positions(mode, args[1], [value(each) for each in node.args[1]]))  # type: ignore[union-attr]  # a list
        return _with_dtype_of_weights(target, args, original(mode, target, *args, **kwargs))


def _constants(value: Callable[[torch.fx.Node], Any], tracer: Any) -> Callable[[torch.fx.Node], torch.Tensor | None]:
    """What tells the data of the nodes of weights, and of those whose whole value is known."""
    return lambda node: known_weights.data_of(node, tracer) if node.op == "placeholder" else _data(value(node))


def _empty(like: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)


def _with_dtype_of_weights(target: OpOverload, args: tuple[Any, ...], result: Any) -> Any:
    """`result`, of float32 or float64 if it is that of bincount with weights."""
    # NOTE: read in torch 2.11, _subclasses/fake_impls.py: there, the result would be integers. 2.13 and 2.15 have these dtypes.
    weights = args[1] if target is _ATEN.bincount.default and len(args) > 1 else None
    if weights is None or result is NotImplemented:
        return result
    return result.to(torch.float32 if weights.dtype == torch.float32 else torch.float64)


@contextlib.contextmanager
def known() -> Iterator[None]:
    """While it is open, `.item()` of a tensor that no input decides returns its value, and sizes that no input decides are known."""
    if not (TABLE.is_present and _ROOT.is_present):
        yield
        return
    kernels = _Kernels()
    of_any_size = (*_OF_ANY_SIZE, *([_DISTINCT.value] if _DISTINCT.is_present else []))
    ours = ((kernels.item, ITEMS), (kernels.equal, (_EQUAL,)), (kernels.sized, of_any_size))
    with all_wrapped((KernelSlot(TABLE.value, target), kernel) for kernel, targets in ours for target in targets):
        yield
