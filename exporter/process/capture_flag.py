"""What a model can ask while it runs: whether it is being exported."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

# NOTE: a plain global, which TorchDynamo can read, too, when it interprets a model that asks.
_capturing = False


def is_in_onnx_export() -> bool:
    """True while onnxplain captures a model; false in every other run of it, those included in which an export compares with eager PyTorch.

    `torch.compiler.is_exporting()` answers alike for each use of torch.export. What a model computes only then is not what it computes
    otherwise: the export notes such a call.
    """
    return _capturing


@contextlib.contextmanager
def capturing() -> Iterator[None]:
    """The time in which a model is captured."""
    global _capturing
    before, _capturing = _capturing, True
    try:
        yield
    finally:
        _capturing = before
