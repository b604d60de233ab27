"""What a model can ask while it runs: whether it is being exported."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from onnxplain.torch_internals.put_back import put_back

_capturing: int | None = None
"""The thread that captures a model."""


def is_in_onnx_export() -> bool:
    """True while onnxplain captures a model; false in every other run of it, those included in which an export compares with eager PyTorch.

    `torch.compiler.is_exporting()` answers alike for each use of torch.export. What a model computes only then is not what it computes
    otherwise: the export notes such a call.
    """
    return _capturing is not None and _capturing == threading.get_ident()


@contextlib.contextmanager
def capturing() -> Iterator[None]:
    """The time in which this thread captures a model."""
    global _capturing
    before = _capturing

    def undo() -> None:
        global _capturing
        _capturing = before

    with put_back(undo):
        _capturing = threading.get_ident()
        yield
