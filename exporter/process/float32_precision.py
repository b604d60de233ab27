"""The precision of float32: a GPU multiplies and convolves in TF32, with 10 bits instead of 23, and some CPUs do so in bfloat16."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from onnxplain.torch_internals.put_back import put_back

_NEWER = ("", "cudnn", "mkldnn", "mkldnn.conv", "mkldnn.rnn")
"""What of torch.backends has a precision that PyTorch's older interface does not set."""
_BACKENDS = (*_NEWER, "cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul")
"""All that has a precision, each after what it may take it from."""
_ROUNDED = ("tf32", "bf16")


@contextlib.contextmanager
def exact_float32() -> Iterator[None]:
    """While it is open, all operators compute float32 as float32. What the caller has chosen is put back at the end."""
    with put_back(_set_all()):
        yield


def _set_all() -> Callable[[], None]:
    """Returns what undoes it."""
    if any(_backend(name).fp32_precision in _ROUNDED for name in _NEWER):
        return _set_each()
    try:
        convolutions, products = torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    except RuntimeError:
        # NOTE: PyTorch refuses to read one of its two interfaces where the caller has used the other.
        return _set_each()
    undo = contextlib.ExitStack()
    # NOTE: to set what is exact already would look like a choice of the caller.
    if convolutions:
        try:
            torch.backends.cudnn.allow_tf32 = False
        except RuntimeError:
            # NOTE: torch.backends.disable_global_flags forbids it, as PyTorch's own test utilities do.
            return undo.close
        undo.callback(setattr, torch.backends.cudnn, "allow_tf32", convolutions)
    if products != "highest":
        torch.set_float32_matmul_precision("highest")
        undo.callback(torch.set_float32_matmul_precision, products)
    return undo.close


def _set_each() -> Callable[[], None]:
    undo = contextlib.ExitStack()
    for name in _BACKENDS:
        backend = _backend(name)
        if backend.fp32_precision in _ROUNDED:
            undo.callback(setattr, backend, "fp32_precision", backend.fp32_precision)
            backend.fp32_precision = "ieee"
    return undo.close


def _backend(name: str) -> Any:
    return functools.reduce(getattr, filter(None, name.split(".")), torch.backends)
