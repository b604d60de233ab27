"""Shapes of operators of torch that have no fake kernel, or one that errs about dynamic sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from . import decompositions
from .operators import OpOverload
from .patching import Slot, all_wrapped
from .symbols import Symbol

TABLE = Symbol(
    "torch._subclasses.fake_impls:op_implementations_dict",
    without="fake quantization with dynamic sizes and code that branches on constant masks cannot be captured",
)


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
    return all_wrapped((KernelSlot(table.value, operator.value), kernel) for table, operator, kernel in present)


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


_KERNELS: list[tuple[Symbol, Callable[..., Any]]] = [
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
