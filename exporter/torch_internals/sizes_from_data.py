"""Sizes that data decide, such as the number of frames of speech: an operator that asks whether one is 0 or 1 goes on as if it were larger.

torch cannot know the answer and would end the capture. What an operator does for these sizes mostly is what it does for others.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from . import empty_examples, patching, python_frames, shape_env, truths_of_sizes
from .patching import Slot, wrapped
from .symbols import Symbol

shape_env.leave_out(__file__)

# NOTE: read in torch 2.11, 2.13 and 2.15, fx/experimental/sym_node.py: kernels ask in this way, and so does the truth of a comparison.
_ASKED = Symbol(
    "torch.fx.experimental.sym_node:SymNode.evaluate",
    without="layers such as batch norm and attention end a capture if data decide a size of their inputs",
)
_QUESTIONS = ("__bool__", "bool_", "guard_bool")
"""The methods of a comparison and of its node that pass the question on."""
_PASS_ON = (__file__, patching.__file__, empty_examples.__file__, truths_of_sizes.__file__)
_TORCH = tuple(path + os.sep for path in torch.__path__)


def taken_for_large() -> AbstractContextManager[None]:
    """While it is open, operators take such sizes for larger than 1; the model's own code asks as before."""
    if not _ASKED.is_present:
        return nullcontext()

    def asked(original: Callable[..., Any], node: Any, *args: Any) -> Any:
        try:
            return original(node, *args)
        except shape_env.DATA_NEEDED.value:
            truth = shape_env.truth_if_large(node.shape_env, node.expr) if _is_operators() else None
            if truth is None:
                raise
            return truth

    from torch.fx.experimental.sym_node import SymNode

    return wrapped(Slot(SymNode, _ASKED.name), asked)


def _is_operators() -> bool:
    """Whether the code that asks is torch's."""
    frames = (frame for frame in python_frames.outward(python_frames.current()) if frame.f_code.co_filename not in _PASS_ON)
    asking = next((frame for frame in frames if frame.f_code.co_name not in _QUESTIONS), None)
    return asking is not None and asking.f_code.co_filename.startswith(_TORCH)
