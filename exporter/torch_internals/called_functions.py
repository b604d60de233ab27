"""What a model calls of torch while Python runs it for a capture.

Patches replace functions in their modules. A model may hold the function itself, as in `self.pool = functional.avg_pool2d`: such a call
gets the replacement here. Indices of several kinds become plain ones, and masks of bytes truths.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from . import byte_masks, mixed_indices, patching, shape_env
from .patching import Slot, wrapped
from .symbols import Symbol

shape_env.leave_out(__file__)

# NOTE: read in torch 2.11, 2.13 and 2.15, _export/non_strict_utils.py: each function of torch that the model calls passes here, with its
# arguments, and calls of what it returns do not. To replace a method of the class of tensors would make a tensor a sequence for Python, and
# `torch.tensor([x])` would ask its length.
_CALLED = Symbol(
    "torch._export.non_strict_utils:_NonStrictTorchFunctionHandler._override",
    without="an index that mixes a size or a tensor of one number with others, or a function that a model holds, fixes the size "
    "or ends the export",
)


def replaced() -> AbstractContextManager[None]:
    """While it is open, functions that models hold are replaced as those of modules are, and tensors take indices of several kinds."""
    if not _CALLED.is_present:
        return nullcontext()

    from torch._export.non_strict_utils import _NonStrictTorchFunctionHandler as Handler

    def called(original: Callable[..., Any], handler: Any, function: Any, args: Any, kwargs: Any) -> Any:
        replacement = patching.replacement(function)
        if replacement is None:
            taken = mixed_indices.plain(function, byte_masks.as_truths(function, args), kwargs)
            return original(handler, function, taken, kwargs)

        def call() -> Any:
            with handler:
                return replacement(*args, **kwargs)

        return call, (), {}

    return wrapped(Slot(Handler, _CALLED.name), called)
