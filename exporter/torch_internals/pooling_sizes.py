"""The sizes of pooled images with `ceil_mode`, which torch computes with a branch: whether the last window begins within the image.

The branch limits the sizes of the image. One of the two numbers is never smaller than the other, whatever the size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from . import shape_env
from .patching import Slot, wrapped
from .symbols import Symbol

shape_env.leave_out(__file__)

# NOTE: read in torch 2.11, 2.13 and 2.15, _meta_registrations.py.
_ROUNDED = Symbol("torch._meta_registrations:pooling_output_shape_pad_lr", without="pooling with ceil_mode may limit dynamic sizes")


def of_any_size() -> contextlib.AbstractContextManager[None]:
    """While it is open, torch computes these sizes without a branch."""
    if not _ROUNDED.is_present:
        return contextlib.nullcontext()

    from torch import _meta_registrations

    return wrapped(Slot(_meta_registrations, _ROUNDED.name), _rounded)


def _rounded(original: Callable[..., Any], *given: Any) -> Any:
    size, kernel, before, behind, step, dilation, ceil_mode = given
    if not ceil_mode or not isinstance(size, torch.SymInt) or step < 1:
        return original(*given)
    # NOTE: the windows are as many as end within the padding, the last one perhaps beyond, or as many as begin within the image.
    ends, begins = behind - dilation * (kernel - 1) - 1 + step - 1, -1
    return (size + before + min(ends, begins)) // step + 1
