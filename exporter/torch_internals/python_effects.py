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
    """While it is open, calls `happens` before this thread calls one of these functions. A log record below the logger's level counts.

    `onnxplain.process` tells of prints and warnings: TorchDynamo, which `torch.cond` calls, knows these functions by identity.
    """

    def tell() -> None:
        # NOTE: above this function are the wrapper and the dispatcher of `all_wrapped`.
        if (frame := python_frames.current(2)) is not None:
            happens(frame)

    def save(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        tell()
        return original(*args, **kwargs)

    def open_file(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        mode = args[1] if len(args) > 1 else kwargs.get("mode")
        if isinstance(mode, str) and not _WRITES.isdisjoint(mode):
            tell()
        return original(*args, **kwargs)

    def ask_level(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        # NOTE: every method of a logger asks this first. Whoever asks it by itself logs nothing yet.
        frame = python_frames.current(1)
        if frame is not None and frame.f_code.co_filename == logging.__file__:
            happens(frame)
        return original(*args, **kwargs)

    wrappers = (
        (Slot(builtins, "open"), open_file),
        (Slot(io, "open"), open_file),
        (Slot(torch, "save"), save),
        (Slot(logging.Logger, "isEnabledFor"), ask_level),
    )
    return all_wrapped(wrappers)
