"""How deeply Python's calls may be nested."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from onnxplain.torch_internals.put_back import put_back

_DEPTH = 5_000
"""torch.export needs some twelve calls for each module inside another one, and eager PyTorch two or three. Python allows 1,000 calls."""


@contextlib.contextmanager
def deeper_calls() -> Iterator[None]:
    """Allows more nested calls, so that every model that runs in eager PyTorch is captured as well."""
    before = sys.getrecursionlimit()
    deeper = max(before, _DEPTH)

    def undo() -> None:
        # NOTE: the model may have set another limit.
        if sys.getrecursionlimit() == deeper:
            sys.setrecursionlimit(before)

    with put_back(undo):
        sys.setrecursionlimit(deeper)
        yield
