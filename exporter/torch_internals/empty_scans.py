"""Runs a scan over no elements: its results have no elements, and the state is the initial one."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .fake_tensors import FakeTensorMode
from .patching import Slot, wrapped
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, _higher_order_ops/scan.py: it runs a scan in eager mode. The first element tells the shapes of
# the results; only 2.15 takes zeros where there is none.
_RUN = Symbol(
    "torch._higher_order_ops.scan:generic_scan",
    without="a loop over blocks is not exported for all sizes where the example is a single block",
)


def allowed() -> contextlib.AbstractContextManager[None]:
    """While it is open, a scan may have no elements."""
    # NOTE: as an attribute of its package, the module's name is that of its function.
    module = sys.modules.get("torch._higher_order_ops.scan")
    return wrapped(Slot(module, _RUN.name), _run) if module is not None and _RUN.is_present else contextlib.nullcontext()


def _run(original: Callable[..., Any], operator: Callable[..., Any], init: Sequence[Any], xs: Sequence[Tensor], **options: Any) -> Any:
    if not xs or xs[0].shape[0] != 0:
        return original(operator, init, xs, **options)
    # NOTE: an element that does not exist may index what is too small for it, so its results have no data.
    with FakeTensorMode(allow_non_fake_inputs=True):
        results = operator(*init, *(each.new_empty(each.shape[1:]) for each in xs), *options.get("additional_inputs", ()))
    return (*init, *map(_empty, results[len(init) :]))


def _empty(result: Any) -> Any:
    return torch.empty((0, *result.shape), dtype=result.dtype, device=result.device) if isinstance(result, Tensor) else result
