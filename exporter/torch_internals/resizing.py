"""Resizing to sizes that are known only when the model runs: torch asks whether a size is 1, or positive."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .patching import Slot, all_wrapped
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, _decomp/decompositions.py and _meta_registrations.py.
_SCALE = Symbol(
    "torch._decomp.decompositions:_compute_scale", without="resizing with align_corners to a dynamic size that is 1 may fail or be NaN"
)
_WITHOUT = "resizing with antialiasing takes no sizes from data"
_COMMON = Symbol("torch._meta_registrations:upsample_common_check", without=_WITHOUT)
_LAYOUT = "with a dynamic number of channels on a GPU, resizing limits it"
_BY_CHANNELS = [Symbol(f"torch._decomp.decompositions:{name}", without=_LAYOUT) for name in ("_upsample_nearest", "_upsample_linear")]
CHECK = Symbol("torch:_check", without=f"{_WITHOUT}, and reshapes take none beside -1", otherwise=lambda _: None)


def to_any_size() -> contextlib.AbstractContextManager[None]:
    """While it is open, torch computes the shapes and decompositions of operators that resize without these questions."""
    if not (_SCALE.is_present and _COMMON.is_present):
        return contextlib.nullcontext()

    from torch import _meta_registrations
    from torch._decomp import decompositions

    by_channels = [(Slot(decompositions, each.name), _with_any_channels) for each in _BY_CHANNELS if each.is_present]
    return all_wrapped([(Slot(decompositions, _SCALE.name), _scale), (Slot(_meta_registrations, _COMMON.name), _shape), *by_channels])


def _with_any_channels(original: Callable[..., Any], input: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    # NOTE: on a GPU, torch asks whether there are few channels, to choose a layout of memory.
    if input.device.type != "cuda" or isinstance(input.shape[1], int):
        return original(input, *args, **kwargs)
    return original(input.cpu(), *args, **kwargs).to(input.device)


def _scale(original: Callable[..., Any], in_size: Any, out_size: Any, align_corners: bool, scale: float | None = None) -> Any:
    """The distance of neighbours, in elements of the input."""
    if align_corners and isinstance(out_size, torch.SymInt):
        # NOTE: of one point, at place 0, any distance is right.
        return (in_size - 1.0) / (torch.sym_max(out_size, 2) - 1.0)
    return original(in_size, out_size, align_corners, scale)


def _shape(original: Callable[..., Any], input_size: Sequence[Any], output_size: Sequence[Any], num_spatial_dims: int) -> Any:
    """The shape of the output; checks the known sizes."""
    for size in output_size:
        # NOTE: one by one, since `and` would ask for a truth.
        if isinstance(size, torch.SymInt):
            CHECK.value(size > 0)
    # NOTE: 1 stands for a size that is not known.
    original(input_size, [1 if isinstance(size, torch.SymInt) else size for size in output_size], num_spatial_dims)
    return (*input_size[:2], *output_size)
