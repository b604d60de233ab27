"""The truth of a comparison of sizes, which fixes it: `if n > 1`, or `n > 1 and causal`."""

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from . import patching, python_frames, shape_env
from .patching import Slot, wrapped

for _file in (__file__, patching.__file__):
    shape_env.leave_out(_file)


def answered(answer: Callable[[types.FrameType], bool | None]) -> AbstractContextManager[None]:
    """While it is open, `answer` tells Python the truth of comparisons of sizes, where it returns one for the frame that asks."""

    def truth(original: Callable[[Any], bool], comparison: Any) -> bool:
        frame = python_frames.current()
        while frame is not None and frame.f_code.co_filename in (__file__, patching.__file__):
            frame = frame.f_back
        known = None if frame is None else answer(frame)
        return original(comparison) if known is None else known

    return wrapped(Slot(torch.SymBool, "__bool__"), truth)
