"""How deeply Python's calls may be nested."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

_DEPTH = 5_000
"""torch.export needs some twelve calls for each module inside another one, and eager PyTorch two or three. Python allows 1,000 calls."""


@contextlib.contextmanager
def deeper_calls() -> Iterator[None]:
    """Allows more nested calls, so that every model that runs in eager PyTorch is captured as well."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEPTH))
    try:
        yield
    finally:
        # NOTE: the model may have set a limit of its own.
        if sys.getrecursionlimit() == max(before, _DEPTH):
            sys.setrecursionlimit(before)
