"""Assertions in GPU kernels: where the CPU raises an exception, such as for an index out of range, a GPU refuses all later calls.

An export runs the user's model with inputs that it has made, of other sizes, for which the model may fail. That must not cost the user the
process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from onnxplain.torch_internals import dispatch_modes, pytree
from onnxplain.torch_internals.operators import OpOverload

_GPUS = frozenset({"cuda", "xpu"})
"""The kinds of devices whose kernels assert."""
_BY_POSITIONS = frozenset(
    {"embedding", "embedding_bag", "_embedding_bag", "_embedding_bag_forward_only", "gather", "index", "index_select", "take"}
    | {"index_add", "index_copy", "index_fill", "index_put", "_index_put_impl", "index_reduce", "put"}
    | {"scatter", "scatter_add", "scatter_reduce", "masked_scatter"}
    | {"nll_loss_forward", "nll_loss2d_forward", "multi_margin_loss", "multilabel_margin_loss_forward", "max_unpool2d", "max_unpool3d"}
)
"""The operators whose kernels assert something of integers or bools."""
_BY_VALUES = frozenset({"_assert_async", "bernoulli", "binary_cross_entropy", "binomial", "multinomial", "poisson"})
"""Those whose kernels assert something of floats."""
_LARGE = 2**24
"""The most bytes of a tensor of floats that are copied although only its shape matters."""


@contextlib.contextmanager
def gpu_assertions_raised() -> Iterator[None]:
    """While it is open, a call that an assertion on a GPU would end raises the exception of the CPU: it is tried there first."""
    if not _may_assert():
        yield
        return
    with dispatch_modes.before_each_call(_try_on_cpu):
        yield


def _may_assert() -> bool:
    """Whether the process uses a GPU."""
    return bool(torch.cuda.is_initialized() or torch.xpu.is_initialized())


def _try_on_cpu(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    is_known = isinstance(operator, OpOverload) and operator.namespace == "aten"
    name = operator.overloadpacket.__name__.removesuffix("_") if is_known else ""
    if name not in _BY_POSITIONS | _BY_VALUES:
        return
    if not any(isinstance(each, torch.Tensor) and each.device.type in _GPUS for each in pytree.tree_leaves((args, kwargs))):
        return

    def on_cpu(value: Any) -> Any:
        if isinstance(value, torch.Generator):
            return None
        if not isinstance(value, torch.Tensor):
            return value
        if name in _BY_POSITIONS and value.is_floating_point() and value.nbytes > _LARGE:
            return torch.empty(value.shape, dtype=value.dtype, device="cpu")
        return value.detach().cpu().clone()

    copied, named = pytree.tree_map(on_cpu, (list(args), dict(kwargs)))
    # NOTE: some operators have kernels on GPUs only.
    with contextlib.suppress(NotImplementedError):
        operator(*copied, **named)
