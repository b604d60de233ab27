"""The precision of float32: a GPU multiplies and convolves in TF32, with 10 bits instead of 23, and some CPUs do so in bfloat16."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from onnxplain.torch_internals.put_back import put_back

_BACKENDS = ("", "cudnn", "mkldnn", "cuda.matmul", "cudnn.conv", "cudnn.rnn", "mkldnn.matmul", "mkldnn.conv", "mkldnn.rnn")
"""What of torch.backends has a precision, each after what it may take it from."""
_ROUNDED = ("tf32", "bf16")


@contextlib.contextmanager
def exact_float32() -> Iterator[None]:
    """While it is open, all operators compute float32 as float32. What the caller has chosen is put back at the end."""
    with put_back(_set_all()):
        yield


def _set_all() -> Callable[[], None]:
    """Returns what undoes it."""
    try:
        convolutions, products = torch.backends.cudnn.allow_tf32, torch.get_float32_matmul_precision()
    except RuntimeError:
        # NOTE: PyTorch has two interfaces for this, and refuses to read one where the caller has used the other.
        return _set_each()

    def undo() -> None:
        torch.backends.cudnn.allow_tf32 = convolutions
        torch.set_float32_matmul_precision(products)

    if not convolutions and products == "highest":
        return lambda: None
    try:
        torch.backends.cudnn.allow_tf32 = False
    except RuntimeError:
        # NOTE: torch.backends.disable_global_flags forbids it, as PyTorch's own test utilities do.
        return lambda: None
    torch.set_float32_matmul_precision("highest")
    return undo


def _set_each() -> Callable[[], None]:
    changed: list[tuple[Any, str]] = []
    for name in _BACKENDS:
        backend: Any = functools.reduce(getattr, filter(None, name.split(".")), torch.backends)
        if backend.fp32_precision in _ROUNDED:
            changed.append((backend, backend.fp32_precision))
            backend.fp32_precision = "ieee"

    def undo() -> None:
        for backend, precision in changed:
            backend.fp32_precision = precision

    return undo
