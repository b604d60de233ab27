"""Regions of torch.autocast around an export: the model is captured within them, and the export itself computes without."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

_DEVICES = ("cpu", "cuda", "xpu", "mps")
"""The kinds of devices whose operators may be cast."""


def autocast_devices() -> list[str]:
    """The kinds of devices whose operators are cast at the moment."""
    return [kind for kind in _DEVICES if torch.is_autocast_enabled(kind)]


@contextlib.contextmanager
def without_autocast() -> Iterator[None]:
    """Computes without casts while it is open: what passes compute of a program has its dtypes already."""
    with contextlib.ExitStack() as regions:
        for kind in autocast_devices():
            regions.enter_context(torch.autocast(kind, enabled=False))
        yield
