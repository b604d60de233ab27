"""Calls of loggers, and of functions that write files. Whoever watches learns the frame of each caller."""

from __future__ import annotations

import builtins
import contextlib
import io
import logging
import types
from collections.abc import Callable
from typing import Any

import torch

from . import patching, python_frames
from .patching import Slot, all_wrapped

Happens = Callable[[types.FrameType], None]
"""Called with the frame that called the function."""

PASSED_THROUGH = frozenset({__file__, patching.__file__})
"""The files whose frames stand between a caller and these functions while they are watched."""

_WRITES = frozenset("wax+")
"""What the mode of a file that is opened to be written has one of."""


def watched(happens: Happens) -> contextlib.AbstractContextManager[None]:
    """While it is open, calls `happens` before this thread calls one of these. A log record below the level of its logger does not count.

    `onnxplain.process` tells of prints and warnings: TorchDynamo, which `torch.cond` calls, knows these functions by identity.
    """

    def tell() -> None:
        # NOTE: above this function are the wrapper and the dispatcher of `all_wrapped`.
        if (frame := python_frames.current(2)) is not None:
            happens(frame)

    def tell_first(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        tell()
        return original(*args, **kwargs)

    def open_file(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        mode = args[1] if len(args) > 1 else kwargs.get("mode")
        if isinstance(mode, str) and not _WRITES.isdisjoint(mode):
            tell()
        return original(*args, **kwargs)

    wrappers = (
        (Slot(builtins, "open"), open_file),
        (Slot(io, "open"), open_file),
        (Slot(torch, "save"), tell_first),
        # NOTE: only what reaches a handler. Watching the methods of loggers, which torch calls 20,000 times, made exports a quarter slower.
        (Slot(logging.Logger, "handle"), tell_first),
    )
    return all_wrapped(wrappers)
