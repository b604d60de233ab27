"""A mode that sees every operator that runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

# NOTE: read in torch 2.11, 2.13 and 2.15, utils/_python_dispatch.py: private by name only, since the documentation derives from it.
from torch.utils._python_dispatch import TorchDispatchMode

OnCall = Callable[[Any, tuple[Any, ...], Any], None]
"""Called with the operator, its positional arguments and its result."""


class _Seeing(TorchDispatchMode):
    def __init__(self, on_call: OnCall) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's __init__ is untyped
        self._on_call = on_call

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        self._on_call(func, args, result)
        return result


@contextlib.contextmanager
def each_call(on_call: OnCall) -> Iterator[None]:
    """Calls `on_call` after every operator that runs in this thread."""
    with _Seeing(on_call):
        yield
