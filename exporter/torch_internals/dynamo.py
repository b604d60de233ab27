"""TorchDynamo, which interprets the user's code instead of running it: its stack, and its names for code that it cannot trace."""

from __future__ import annotations

import traceback
from collections.abc import Sequence

from .symbols import Symbol

_CONTEXT = Symbol("torch._guards:TracingContext.extract_stack", without="findings of the strict strategy may lack a line")

DATA_DEPENDENT_BRANCH = "Data-dependent branching"
"""The name of a branch on a tensor (torch 2.11 to 2.15, _dynamo/symbolic_convert.py)."""
ALIASING = "Encountered aliasing during higher order op tracing"
"""The name of a branch that returns its input (torch 2.11 to 2.15)."""
LOST_SIZE = "PendingUnbackedSymbolNotFound"
"""The class of the exception about a data-dependent size that no output has (torch 2.11 to 2.15)."""


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
