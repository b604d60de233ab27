"""What a model calls of torch while Python runs it for a capture.

Patches replace functions in their modules. A model may hold the function itself, as in `self.pool = functional.avg_pool2d`: such a call
gets the replacement here. Indices of several kinds become plain ones, and masks of bytes truths.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from . import byte_masks, mixed_indices, patching, python_frames, shape_env
from .patching import Slot, wrapped
from .symbols import Symbol

shape_env.leave_out(__file__)
_PASS_ON = (__file__, patching.__file__)

# NOTE: read in torch 2.11, 2.13 and 2.15, _export/non_strict_utils.py: each function of torch that the model calls passes here, with its
# arguments, and calls of what it returns do not. To replace a method of the class of tensors would make a tensor a sequence for Python, and
# `torch.tensor([x])` would ask its length.
_CALLED = Symbol(
    "torch._export.non_strict_utils:_NonStrictTorchFunctionHandler._override",
    without="an index that mixes a size or a tensor of one number with others, or a function that a model holds, fixes the size "
    "or ends the export",
)


def replaced(required: Callable[[types.FrameType], bool | None]) -> AbstractContextManager[None]:
    """While it is open, functions that models hold are replaced as those of modules are, and tensors take indices of several kinds.

    A tensor of unknown data has the truth that is `required` of the frame that asks, and the graph checks it.
    """
    if not _CALLED.is_present:
        return nullcontext()

    from torch._export.non_strict_utils import _NonStrictTorchFunctionHandler as Handler

    def called(original: Callable[..., Any], handler: Any, function: Any, args: Any, kwargs: Any) -> Any:
        if function is torch.Tensor.__bool__ and (truth := _required(required)) is not None:
            return functools.partial(_checked, truth), args, kwargs
        replacement = patching.replacement(function)
        if replacement is None:
            taken = mixed_indices.plain(function, byte_masks.as_truths(function, args), kwargs)
            return original(handler, function, taken, kwargs)

        def call() -> Any:
            with handler:
                return replacement(*args, **kwargs)

        return call, (), {}

    return wrapped(Slot(Handler, _CALLED.name), called)


def _required(required: Callable[[types.FrameType], bool | None]) -> bool | None:
    """The truth that is required of the frame that asks a tensor: the innermost one that does not only pass the question on."""
    frames = (frame for frame in python_frames.outward(python_frames.current()) if frame.f_code.co_filename not in _PASS_ON)
    # NOTE: torch calls each function mode with what Python called.
    asking = next((frame for frame in frames if frame.f_code.co_name != "__torch_function__"), None)
    return None if asking is None else required(asking)


def _checked(truth: bool, tensor: torch.Tensor) -> bool:
    """The truth of a tensor, which the graph checks where data decide it."""
    try:
        return bool(tensor)
    except shape_env.DATA_NEEDED.value:
        torch._assert_async(tensor if truth else tensor.logical_not())
        return truth
