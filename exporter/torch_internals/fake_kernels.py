"""Shapes of operators of torch that have no fake kernel, or one that errs about dynamic sizes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import decompositions, pytree, torch_frames
from .fake_tensors import real_of, sizes_like
from .operators import OpOverload
from .patching import Slot, all_wrapped
from .python_values import is_a
from .symbols import Symbol

TABLE = Symbol(
    "torch._subclasses.fake_impls:op_implementations_dict",
    without="fake quantization with dynamic sizes and code that branches on constant masks cannot be captured",
)


# NOTE: read in torch 2.13, _subclasses/fake_tensor.py: in a capture that has the example's data, torch takes the sizes of such results for
# sizes from data.
_INFERRED = Symbol(
    "torch._subclasses.fake_tensor:inferred_fake_kernel_from_real_out",
    without="a failed export does not list the lines that fix a dim after an operator without a fake kernel",
)


_DISTINCT = Symbol("torch._subclasses.fake_impls:_unique", without="distinct parts along a dim counted from the end have a wrong shape")


class KernelSlot(Slot):
    """The place of an operator's fake kernel in torch's table."""

    def __init__(self, table: dict[Any, Any], operator: OpOverload) -> None:
        super().__init__(table, str(operator))
        self.operator = operator

    def get(self) -> Any:
        """The kernel, or one that refuses every call."""
        return self.owner.get(self.operator, _refused)

    def put(self, function: Any) -> None:
        """Puts another kernel there. The one that refuses every call is as good as none."""
        if function is _refused:
            self.owner.pop(self.operator, None)
        else:
            self.owner[self.operator] = function


def present() -> contextlib.AbstractContextManager[None]:
    """While it is open, fake quantization has fake kernels, and the parts of a dynamic dim have their shapes."""
    # NOTE: read in torch 2.11, 2.13 and 2.15, _subclasses/fake_tensor.py. It passes over a kernel that returns NotImplemented, and runs
    # such a decomposition as a fake kernel. torch runs operators without either on zeros, which it cannot do for dynamic sizes.
    tables = [(TABLE, _KERNELS), (decompositions.TABLE, _DECOMPOSITIONS)]
    present = [(table, *each) for table, kernels in tables if table.is_present for each in kernels if each[0].is_present]
    slots: list[tuple[Slot, Callable[..., Any]]] = [(KernelSlot(table.value, each.value), kernel) for table, each, kernel in present]
    if _DISTINCT.is_present:
        slots.append((Slot(sys.modules["torch._subclasses.fake_impls"], _DISTINCT.name), _distinct))
    return all_wrapped(slots)


@contextlib.contextmanager
def inferred(noted: Callable[[OpOverload], object]) -> Iterator[None]:
    """While it is open, an operator without a fake kernel has results like those for the example, if the capture has its data.

    A size that an argument also has in the example is the size of that argument. `noted` is called with the operator.
    """
    if not (torch_frames.FAKE.is_present and _INFERRED.is_present):
        yield
        return

    from torch._subclasses import fake_tensor

    calls: list[Any] = []

    def dispatch(original: Callable[..., Any], mode: Any, operator: Any, types: Any, args: Any, kwargs: Any) -> Any:
        calls.append((args, kwargs))
        try:
            return original(mode, operator, types, args, kwargs)
        finally:
            calls.pop()

    def infer(original: Callable[..., Any], mode: Any, operator: OpOverload, results: Any) -> Any:
        noted(operator)
        given = [(tensor, real) for tensor in pytree.tree_leaves(calls[-1]) if (real := real_of(tensor)) is not None] if calls else []
        if not all(is_a(each, torch.Tensor) and each.is_contiguous() for each in pytree.tree_leaves(results)):
            return original(mode, operator, results)
        with mode:
            return pytree.tree_map(lambda each: torch.empty(sizes_like(each, given), dtype=each.dtype, device=each.device), results)

    slots = ((Slot(fake_tensor.FakeTensorMode, torch_frames.FAKE.name), dispatch), (Slot(fake_tensor, _INFERRED.name), infer))
    with all_wrapped(slots):
        yield


def _refused(*_: Any, **__: Any) -> Any:
    return NotImplemented


def _alike(original: Any, mode: Any, operator: OpOverload, values: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    del original, operator
    with mode:
        return torch.empty_like(values)


def _with_mask(original: Any, mode: Any, operator: OpOverload, values: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, ...]:
    del original, operator
    with mode:
        return torch.empty_like(values), torch.empty_like(values, dtype=torch.bool)


def _unbound(original: Any, values: torch.Tensor, dim: int = 0) -> tuple[torch.Tensor, ...]:
    # NOTE: torch squeezes each of the parts, which does nothing where it does not know that their size is 1 (seen in 2.13).
    del original
    return tuple(values.select(dim, index) for index in range(values.shape[dim]))


def _places(original: Any, condition: torch.Tensor) -> tuple[torch.Tensor, ...]:
    # NOTE: torch calls an operator that has no fake kernel, once something has imported torch._refs (seen in 2.13).
    del original
    places: tuple[torch.Tensor, ...] = torch.atleast_1d(condition).nonzero().unbind(1)
    return places


def _distinct(
    original: Any, mode: Any, operator: OpOverload, values: torch.Tensor, dim: int | None = None, *args: Any, **kwargs: Any
) -> Any:
    # NOTE: read in torch 2.11, 2.13 and 2.15, _subclasses/fake_impls.py: a dim counted from the end gives results of another rank.
    return original(mode, operator, values, None if dim is None else dim % max(values.ndim, 1), *args, **kwargs)


def _gru_cell(
    original: Any, mode: Any, operator: OpOverload, input_gates: torch.Tensor, hidden_gates: Any, hx: torch.Tensor, *_: Any
) -> Any:
    """The new state, and what a backward pass needs."""
    del original, operator, hidden_gates
    with mode:
        return torch.empty_like(hx), input_gates.new_empty((*hx.shape[:-1], hx.shape[-1] * 5))


def _lstm_cell(
    original: Any, mode: Any, operator: OpOverload, input_gates: torch.Tensor, hidden_gates: Any, cx: torch.Tensor, *_: Any
) -> Any:
    """The two new states, and what a backward pass needs."""
    del original, operator, hidden_gates
    with mode:
        return torch.empty_like(cx), torch.empty_like(cx), torch.empty_like(input_gates)


_CELLS = "cells of recurrent layers on a GPU cannot be captured"
_KERNELS: list[tuple[Symbol, Callable[..., Any]]] = [
    (Symbol("torch.ops:aten._thnn_fused_gru_cell.default", without=_CELLS), _gru_cell),
    # NOTE: read in torch 2.11, 2.13 and 2.15, _meta_registrations.py: torch's kernel takes it for granted that there are biases.
    (Symbol("torch.ops:aten._thnn_fused_lstm_cell.default", without=_CELLS), _lstm_cell),
] + [
    (Symbol(f"torch.ops:aten.{name}.default", without="fake quantization with dynamic sizes cannot be captured"), kernel)
    for name, kernel in (
        ("fake_quantize_per_tensor_affine_cachemask", _with_mask),
        ("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", _with_mask),
        ("fake_quantize_per_channel_affine_cachemask", _with_mask),
        ("_fake_quantize_learnable_per_tensor_affine", _alike),
        ("_fake_quantize_learnable_per_channel_affine", _alike),
    )
]
"""The operators without a fake kernel, and ours."""

_DECOMPOSITIONS: list[tuple[Symbol, Callable[..., Any]]] = [
    (Symbol("torch.ops:aten.unbind.int", without="the parts of a dynamic dim have a dim too many"), _unbound),
    (Symbol("torch.ops:aten.where.default", without="torch.where of a condition alone may not be traced again"), _places),
]
"""The operators whose decomposition, which is their fake kernel, errs; and ours."""
