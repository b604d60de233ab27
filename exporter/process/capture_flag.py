"""Tells a running model whether it is being exported."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from onnxplain.torch_internals.put_back import put_back

_capturing: int | None = None
"""The thread that captures a model; None if there is none."""


def is_in_onnx_export() -> bool:
    """True while onnxplain captures a model, and False in every other run, including those that an export compares with eager PyTorch.

    `torch.compiler.is_exporting()` gives the same answer for every use of torch.export. A model that asks may compute something else
    during an export than in other runs, so the export reports such a call as a note.
    """
    return _capturing is not None and _capturing == threading.get_ident()


@contextlib.contextmanager
def capturing() -> Iterator[None]:
    """While it is open, this thread captures a model."""
    global _capturing
    before = _capturing

    def undo() -> None:
        global _capturing
        _capturing = before

    with put_back(undo):
        _capturing = threading.get_ident()
        yield
