"""Initializers of weights that look at the numbers they draw, which a weight without data cannot have."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .fake_tensors import is_fake
from .patching import Slot, wrapped
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, nn/init.py. From 2.13 on, it draws again as long as a number is too large. A patch of
# trunc_normal_ itself would miss libraries that keep a reference to it.
_TRUNCATED = Symbol(
    "torch.nn.init:_no_grad_trunc_normal_",
    without="models whose weights come from torch.nn.init.trunc_normal_ cannot be built within enable_fake_mode",
)


@contextlib.contextmanager
def without_data() -> Iterator[None]:
    """While it is open, such initializers leave fake tensors alone."""
    if not _TRUNCATED.is_present:
        yield
        return
    with wrapped(Slot(torch.nn.init, _TRUNCATED.name), _with_data_only):
        yield


def _with_data_only(original: Callable[..., Any], tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    return tensor if is_fake(tensor) else original(tensor, *args, **kwargs)
