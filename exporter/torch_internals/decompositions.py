"""torch's decompositions of operators, and graphs of the operators that a function calls."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

# NOTE: read in torch 2.11, 2.13 and 2.15; no public function replaces it, and torch.export traces with it as well (_export/__init__.py).
from torch.fx.experimental.proxy_tensor import make_fx

from . import fourier_shapes, resizing
from .operators import OpOverload
from .symbols import Symbol

__all__ = ["TABLE", "decomposition_of", "traced"]

# NOTE: read in torch 2.11, 2.13 and 2.15, _decomp/__init__.py and _ops.py.
TABLE = Symbol(
    "torch._decomp:decomposition_table",
    without="operators that only eager mode knows how to decompose have no translation, and parts of dynamic dims have a dim too many",
    otherwise={},
)
_CORE = Symbol(
    "torch._decomp:_core_aten_decompositions_post_autograd",
    without="an export that decomposes operators takes a tenth of a second longer",
    otherwise=torch.export.default_decompositions,
)
_CAN_DECOMPOSE = Symbol("torch._ops:OpOverload._can_decompose", without="operators that torch decomposes in C++ have no translation")
# NOTE: `make_fx` takes decompositions as well, but copies the whole table.
_DECOMPOSING = Symbol(
    "torch.fx.experimental.proxy_tensor:decompose",
    without="operators are decomposed in several steps, so an export takes longer",
    otherwise=lambda _: contextlib.nullcontext(),
)
Decomposition = Callable[..., Any]


def decomposition_of(operator: OpOverload) -> Decomposition | None:
    """The decomposition of an operator; None if torch knows none.

    NOTE: in the order of `torch.export.default_decompositions`, which collects all operators at every call, and after them those that core
    ATen's table lacks since eager never decomposes them. Users may register decompositions at any time.
    """
    if operator in _core():
        return _core()[operator]
    try:
        return operator.decompose if _CAN_DECOMPOSE.is_present and _CAN_DECOMPOSE.value(operator) else TABLE.value.get(operator)
    except RuntimeError:
        # NOTE: the dispatcher does not know operators that only TorchScript has, such as aten::size (read in torch 2.11, 2.13 and 2.15).
        return None


@functools.cache
def _core() -> Mapping[OpOverload, Decomposition]:
    """The decompositions to core ATen: a fixed list."""
    return dict(_CORE.value().items())


class _Wanted(Mapping[OpOverload, Decomposition]):
    """The decompositions of some operators, looked up when a trace meets an operator."""

    def __init__(self, find: Callable[[OpOverload], Decomposition | None]) -> None:
        self._find = find

    def __contains__(self, operator: object) -> bool:
        return isinstance(operator, OpOverload) and self._find(operator) is not None

    def __getitem__(self, operator: OpOverload) -> Decomposition:
        found = self._find(operator)
        if found is None:
            raise KeyError(operator)
        return found

    def __iter__(self) -> Iterator[OpOverload]:
        return filter(self.__contains__, iter(TABLE.value))

    def __len__(self) -> int:
        # NOTE: torch asks whether there are any.
        return len(TABLE.value)


def traced(
    function: Callable[..., Any],
    inputs: tuple[Any, ...],
    find: Callable[[OpOverload], Decomposition | None] = lambda _: None,
    *,
    writes: bool = True,
) -> torch.fx.GraphModule:
    """The graph of the operators that `function` calls, without side effects.

    Args:
        function: A function of tensors. It may write to tensors that it has made.
        inputs: Its arguments, fake tensors and symbolic sizes.
        find: The decomposition that replaces an operator; None leaves it in the graph.
        writes: Whether it may write to tensors. If not, it may call what torch cannot free of side effects.
    """
    functional = torch.func.functionalize(function) if writes else function

    def call(*inputs: Any) -> Any:
        with _DECOMPOSING.value(_Wanted(find)), resizing.to_any_size(), fourier_shapes.of_any_size():
            return functional(*inputs)

    made: torch.fx.GraphModule = make_fx(call)(*inputs)
    return made
