"""Runs operators again on tensors without data and with known sizes, and compares their results with the graph."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from operator import getitem
from typing import Any

import sympy
import torch

from onnxplain.torch_internals import pytree, shape_env
from onnxplain.torch_internals.fake_tensors import FakeTensorMode, is_fake, needs_data
from onnxplain.torch_internals.operators import OpOverload, schema
from onnxplain.torch_internals.symbolic_expressions import at, expression_of, number_at, plain_at

Sizes = Mapping[sympy.Basic, int]
"""The size that each of torch's symbols stands for."""

_IN_PLACE = "aten::squeeze_"
_ASKING = frozenset({"aten::einsum", "aten::tensordot", "aten::bilinear", "aten::narrow"})
_SQUEEZES = frozenset({"aten::squeeze", "aten::squeeze_copy", _IN_PLACE})


@dataclasses.dataclass(frozen=True)
class Call:
    """An operator with its arguments, whose sizes are torch's symbols.

    Attributes:
        operator: The operator.
        args: Its positional arguments, with fake tensors.
        kwargs: Its keyword arguments.
        used: The indices of the results in use if it returns a list, as `split` does; None otherwise.
    """

    operator: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    used: tuple[int, ...] | None = None

    def symbolic(self) -> Any:
        """The operator's result in the graph; None if it cannot be computed."""
        environment = next((shape_env.of_tensor(each) for each in _tensors((self.args, self.kwargs)) if is_fake(each)), None)
        if environment is None:
            return None
        try:
            # NOTE: the graph is finished: questions about sizes must not become guards of it.
            with torch.no_grad(), shape_env.without_guards(environment):
                return self.operator(*self.args, **self.kwargs)
        except Exception:  # noqa: BLE001  operators refuse symbolic sizes with any exception
            return None

    def differs(self, result: Any, sizes: Sizes) -> bool:
        """Whether the operator returns other shapes for tensors of `sizes` than `result` has for them. False if it refuses these sizes."""
        results = list(_tensors(result))
        try:
            shapes = self._shapes(sizes)
            if len(shapes) != len(results) and self._counted(len(results)):
                return True
            promised = [_shape(each, sizes) for each in results]
        except Exception:  # noqa: BLE001  operators refuse sizes with any exception
            # NOTE: not every operator can run without data, or with an unknown size.
            return False
        return any(shapes[each : each + 1] != promised[each : each + 1] for each in self.used or range(len(promised)))

    def _counted(self, parts: int) -> bool:
        """Whether the number of results matters."""
        # NOTE: a graph does not tell `parts[-1]`, a loop over the parts and `len(parts)` from `parts[2]` and from no use at all.
        return not self.used or self.used[-1] == parts - 1

    def takes(self, sizes: Sizes) -> bool:
        """Whether the operator takes tensors of `sizes`."""
        return self.parts(sizes) is not None

    def may_take(self, sizes: Sizes) -> bool:
        """Whether the operator takes tensors of `sizes`, or depends on their data so that nothing tells."""
        try:
            self._shapes(sizes)
        except Exception as error:  # noqa: BLE001  operators refuse sizes with any exception
            return needs_data(error)
        return True

    def parts(self, sizes: Sizes) -> int | None:
        """How many tensors the operator returns for tensors of `sizes`; None if it refuses these sizes."""
        try:
            return len(self._shapes(sizes))
        except Exception:  # noqa: BLE001  operators refuse sizes with any exception
            return None

    def _shapes(self, sizes: Sizes) -> list[tuple[int, ...]]:
        # NOTE: an operator may return thousands of parts, and a fake tensor for each takes minutes.
        meta = self.counts and len(_tensors((self.args, self.kwargs))) == 1
        with torch.no_grad(), contextlib.nullcontext() if meta else FakeTensorMode(allow_non_fake_inputs=True):
            args, kwargs = pytree.tree_map(lambda each: _with_sizes(each, sizes, meta=meta), (self.args, self.kwargs))
            return [tuple(each.shape) for each in _tensors(self.operator(*args, **kwargs))]

    def symbols(self) -> set[sympy.Basic]:
        """The symbols of the sizes of its arguments."""
        dims: list[Any] = [each for tensor in _tensors((self.args, self.kwargs)) for each in tensor.shape]
        return {symbol for each in dims if isinstance(each, torch.SymInt) for symbol in expression_of(each).free_symbols}

    @property
    def relies_on_ones(self) -> bool:
        """Whether the graph relies on a size of 1 that it asks for, although it returns what the graph says for other sizes as well.

        A product leaves out dims of size 1. The length of a `narrow` is asked for if the example is asked, and a squeeze drops it then.
        """
        return isinstance(self.operator, OpOverload) and schema(self.operator).name in _ASKING

    @property
    def counts(self) -> bool:
        """Whether the number of its results may depend on the sizes of its arguments."""
        if not isinstance(self.operator, OpOverload):
            return False
        return any(isinstance(each.type, torch.ListType) for each in schema(self.operator).returns)

    @property
    def squeezes(self) -> bool:
        """Whether it drops dims of size 1."""
        return isinstance(self.operator, OpOverload) and schema(self.operator).name in _SQUEEZES

    @property
    def squeezes_in_place(self) -> bool:
        """Whether it drops dims of size 1 of its argument."""
        return isinstance(self.operator, OpOverload) and schema(self.operator).name == _IN_PLACE

    def ones(self, sizes: Sizes) -> set[sympy.Basic]:
        """The sizes of the arguments that are not fixed in the graph and are 1 at `sizes`."""
        dims: list[Any] = [each for tensor in _tensors((self.args, self.kwargs)) for each in tensor.shape]
        expressions = {expression_of(each) for each in dims if isinstance(each, torch.SymInt)}
        return {each for each in expressions if at(each, sizes) == 1}


def calls(program: torch.export.ExportedProgram) -> Iterator[tuple[torch.fx.Node, Call]]:
    """Every operator of `program`. A call that repeats another one with the same sizes and the same result does not count."""
    seen: set[object] = set()
    for graph_module in program.graph_module.modules():
        for node in graph_module.graph.nodes if isinstance(graph_module, torch.fx.GraphModule) else ():
            if isinstance(node.target, OpOverload):
                args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: each.meta.get("val"))
                used = _used(node)
                # NOTE: an equal call may have another result, where torch takes a size for 1 in the meantime.
                key = (node.target, _described((args, kwargs, node.meta.get("val"))), used)
                if key not in seen:
                    seen.add(key)
                    yield node, Call(node.target, args, kwargs, used)


def _used(node: torch.fx.Node) -> tuple[int, ...] | None:
    if not isinstance(node.meta.get("val"), list | tuple):
        return None
    picked = {user.args[1] for user in node.users if user.target is getitem and user.users}
    return tuple(sorted(each for each in picked if isinstance(each, int)))


def _tensors(value: Any) -> list[torch.Tensor]:
    return [each for each in pytree.tree_leaves(value) if isinstance(each, torch.Tensor)]


def _described(value: Any) -> object:
    """What tells `value` from others, with the shapes of tensors. Texts of large expressions would take long."""
    match value:
        case torch.Tensor():
            return tuple(map(_described, value.shape)), tuple(map(_described, value.stride())), value.dtype
        case torch.SymInt() | torch.SymFloat() | torch.SymBool():
            return expression_of(value)
        case tuple() | list():
            return tuple(map(_described, value))
        case dict():
            return tuple((name, _described(each)) for name, each in value.items())
    return repr(value)


def _with_sizes(value: Any, sizes: Sizes, *, meta: bool) -> Any:
    if not isinstance(value, torch.Tensor):
        return plain_at(value, sizes)
    strides = tuple(number_at(each, sizes) for each in value.stride())
    return torch.empty_strided(_shape(value, sizes), strides, dtype=value.dtype, device="meta" if meta else value.device)


def _shape(tensor: torch.Tensor, sizes: Sizes) -> tuple[int, ...]:
    return tuple(number_at(each, sizes) for each in tensor.shape)
