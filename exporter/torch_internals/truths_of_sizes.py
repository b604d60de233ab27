"""The truth of a comparison of sizes, which fixes it: `if n > 1`, or `n > 1 and causal`."""

from __future__ import annotations

import types
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import torch

from . import patching, python_frames, shape_env
from .patching import Slot, wrapped

for _file in (__file__, patching.__file__):
    shape_env.leave_out(_file)


Answer: TypeAlias = "bool | tuple[Any, ...] | None"
"""The truth of a comparison; or numbers and comparisons of which one must be true; or None if it is not known."""
_PASSED_ON = (__file__, patching.__file__)


def answered(
    *answers: Callable[[types.FrameType], Answer], required: Callable[[types.FrameType], bool | None]
) -> AbstractContextManager[None]:
    """While it is open, the first of `answers` that knows the truth of a comparison of sizes for the frame that asks tells it to Python.

    Where data decide, Python gets the truth that is `required` of the frame, and the graph checks it.
    """

    def truth(original: Callable[[Any], bool], comparison: Any) -> bool:
        frame = python_frames.current()
        # NOTE: of a size itself, as in `if n`, Python asks the method of SymInt, which asks the comparison with 0.
        while frame is not None and (frame.f_code.co_filename in _PASSED_ON or frame.f_code is torch.SymInt.__bool__.__code__):
            frame = frame.f_back
        for known in () if frame is None else (answer(frame) for answer in answers):
            match known:
                case bool():
                    return known
                case tuple():
                    return _any(original, known)
        try:
            return original(comparison)
        except shape_env.DATA_NEEDED.value:
            truth = None if frame is None else required(frame)
            if truth is None:
                raise
            _check(comparison if truth else torch.sym_not(comparison))
            return truth

    return wrapped(Slot(torch.SymBool, "__bool__"), truth)


def _check(comparison: Any) -> None:
    """Adds a check to the graph."""
    try:
        torch._check(comparison)
    except AssertionError:
        # NOTE: torch cannot state that a size is a multiple of another one, whose bound is larger (read in torch 2.11, 2.13 and 2.15,
        # ShapeEnv._set_replacement).
        torch._assert_async(torch.scalar_tensor(comparison, dtype=torch.bool))


def _any(original: Callable[[Any], bool], operands: tuple[Any, ...]) -> bool:
    # NOTE: in this file, so that the decisions count as the model's.
    for operand in operands:
        comparison = operand != 0 if isinstance(operand, torch.SymInt) else operand
        if original(comparison) if isinstance(comparison, torch.SymBool) else comparison:
            return True
    return False
