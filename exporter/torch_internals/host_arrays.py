"""numpy arrays of tensors, in a capture that has the example's data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from . import shape_env, tensor_lists
from .fake_tensors import real_of, sizes_like
from .patching import Slot, all_wrapped
from .python_values import is_a
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, utils/_python_dispatch.py.
_WITHOUT_MODES = Symbol(
    "torch.utils._python_dispatch:_disable_current_modes",
    without="a failed export does not list the problems after a line that calls numpy",
    otherwise=contextlib.nullcontext,
)


_MAKERS = ("as_tensor", "asarray", "from_numpy", "tensor")
"""Functions that make a tensor of an array."""


@contextlib.contextmanager
def from_example(noted: Callable[[], object]) -> Iterator[None]:
    """While it is open, `numpy()` and `numpy.asarray` of a tensor without data take the example's data, and call `noted`.

    A tensor that the model makes of an array has the dynamic sizes of the tensors that became arrays, where the example's are equal.
    """
    given: list[tuple[torch.Tensor, torch.Tensor]] = []

    def of_real(original: Callable[..., Any], tensor: Any, *args: Any, **kwargs: Any) -> Any:
        real = real_of(tensor)
        if real is None:
            return original(tensor, *args, **kwargs)
        noted()
        given.append((tensor, real))
        # NOTE: within the capture's modes, the result of `detach` would have no data.
        with _WITHOUT_MODES.value():
            return original(real.detach(), *args, **kwargs)

    def of_array(original: Callable[..., torch.Tensor], array: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        made = original(array, *args, **kwargs) if args else tensor_lists.made(original, array, **kwargs)
        sizes = sizes_like(made, given) if given and is_a(array, np.ndarray) else made.shape
        symbolic = next((size for size in sizes if isinstance(size, torch.SymInt)), None)
        if symbolic is None:
            return made
        # NOTE: the array's sizes are numbers, which would fix the dims of all tensors that the model combines it with.
        with shape_env.without_guards(shape_env.of(symbolic)):
            return torch.empty(sizes, dtype=made.dtype, device=made.device).copy_(made)

    of_data = [(Slot(torch.Tensor, name), of_real) for name in ("numpy", "__array__")]
    with all_wrapped(of_data), all_wrapped((Slot(torch, name), of_array) for name in _MAKERS):
        yield
