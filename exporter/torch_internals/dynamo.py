"""TorchDynamo, which interprets the user's code instead of running it: its stack, its marks, its names for code that it cannot trace."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from .put_back import put_back
from .symbols import Symbol

_CONTEXT = Symbol("torch._guards:TracingContext.extract_stack", without="findings of the strict strategy may lack a line")

DATA_DEPENDENT_BRANCH = "Data-dependent branching"
"""The name of a branch on a tensor (torch 2.11 to 2.15, _dynamo/symbolic_convert.py)."""
ALIASING = "Encountered aliasing during higher order op tracing"
"""The name of a branch that returns its input (torch 2.11 to 2.15)."""
LOST_SIZE = "PendingUnbackedSymbolNotFound"
"""The class of the exception about a data-dependent size that no output has (torch 2.11 to 2.15)."""


# NOTE: read in torch 2.11, 2.13 and 2.15, _dynamo/decorators.py: `mark_dynamic` and others set these attributes of a tensor.
_MARKS = ("_dynamo_", "_has_dynamo_dim_marking")


@contextmanager
def marks_kept(tensors: Iterable[torch.Tensor]) -> Iterator[None]:
    """Puts back the marks of dynamic dims on `tensors`. torch.export sets marks, and a failing one leaves them to the next export."""
    before = [(tensor, _marks(tensor)) for tensor in tensors]

    def undo() -> None:
        for tensor, marks in before:
            for name in _marks(tensor).keys() - marks.keys():
                delattr(tensor, name)
            for name, value in marks.items():
                setattr(tensor, name, value)

    with put_back(undo):
        yield


def _marks(tensor: torch.Tensor) -> dict[str, Any]:
    return {name: copy.copy(value) for name, value in vars(tensor).items() if name.startswith(_MARKS)}


def interpreted_stack() -> list[traceback.FrameSummary]:
    """The frames that TorchDynamo is interpreting, outermost first. They are not on Python's stack."""
    return list(_CONTEXT.value()) if _CONTEXT.is_present else []


def graph_break_type(error: BaseException) -> str:
    """TorchDynamo's name for the code that it could not trace; empty for other errors."""
    # NOTE: read in torch 2.11, 2.13 and 2.15, _dynamo/exc.py, Unsupported.
    found = getattr(error, "gb_type", None)
    return found if isinstance(found, str) else ""


def user_error_type(error: BaseException) -> str:
    """The name of the `UserErrorType` of an exception, such as CONSTRAINT_VIOLATION; empty for other errors."""
    return str(getattr(getattr(error, "error_type", None), "name", ""))


def interpreted_frames(error: BaseException) -> Sequence[traceback.FrameSummary]:
    """The interpreted frames behind an exception. They are not in its traceback."""
    # NOTE: read in torch 2.11, 2.13 and 2.15, _dynamo/exc.py: `real_stack` of Unsupported and UserError.
    return getattr(error, "real_stack", None) or ()
