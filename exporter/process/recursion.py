"""How deeply Python's calls may be nested."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from onnxplain.torch_internals import patching
from onnxplain.torch_internals.put_back import put_back

_DEPTH = 5_000
"""torch.export needs some twelve calls for each module inside another one, and eager PyTorch two or three. Python allows 1,000 calls."""


@contextlib.contextmanager
def deeper_calls() -> Iterator[None]:
    """Allows more nested calls, so that every model that runs in eager PyTorch is captured as well.

    Of limits that the model sets, only one above that of before holds afterwards: more than the model's code runs in this process.
    """
    limit = sys.getrecursionlimit()

    def set_limit(original: Callable[[int], None], asked: int) -> None:
        nonlocal limit
        original(max(asked, _DEPTH) if isinstance(asked, int) and asked > 0 else asked)
        limit = max(limit, asked)

    def undo() -> None:
        sys.setrecursionlimit(limit)

    with put_back(undo):
        sys.setrecursionlimit(max(limit, _DEPTH))
        with patching.wrapped(patching.Slot(sys, "setrecursionlimit"), set_limit):
            yield
