"""numpy arrays of tensors, in a capture that has the example's data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .fake_tensors import real_of
from .patching import Slot, wrapped
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, utils/_python_dispatch.py.
_WITHOUT_MODES = Symbol(
    "torch.utils._python_dispatch:_disable_current_modes",
    without="a failed export does not list the problems after a line that calls numpy",
    otherwise=contextlib.nullcontext,
)


@contextlib.contextmanager
def from_example(noted: Callable[[], object]) -> Iterator[None]:
    """While it is open, `numpy()` and `numpy.asarray` of a tensor without data take the example's data, and call `noted`."""

    def of_real(original: Callable[..., Any], tensor: Any, *args: Any, **kwargs: Any) -> Any:
        real = real_of(tensor)
        if real is None:
            return original(tensor, *args, **kwargs)
        noted()
        # NOTE: within the capture's modes, the result of `detach` would have no data.
        with _WITHOUT_MODES.value():
            return original(real.detach(), *args, **kwargs)

    with wrapped(Slot(torch.Tensor, "numpy"), of_real), wrapped(Slot(torch.Tensor, "__array__"), of_real):
        yield
