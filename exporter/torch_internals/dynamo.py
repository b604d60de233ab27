"""TorchDynamo, which interprets the user's code instead of running it: its stack, its marks, its names for code that it cannot trace."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from .put_back import put_back
from .symbols import Attribute, Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15: _guards.py, Unsupported and UserError in _dynamo/exc.py, and the names that TorchDynamo gives to
# code that it cannot trace.
_CONTEXT = Symbol("torch._guards:TracingContext.extract_stack", without="findings of the strict strategy may lack a line")
_EXCEPTIONS = "torch._dynamo.exc"
_REASON = Attribute(f"{_EXCEPTIONS}:Unsupported.gb_type", without="with the strict strategy, findings do not say what stops a capture")
_KIND = Attribute(f"{_EXCEPTIONS}:UserError.error_type", without="a dim that cannot have every size looks like other failures")
_STACKS = [
    Attribute(f"{_EXCEPTIONS}:{name}.real_stack", without="with the strict strategy, findings may lack their line")
    for name in ("Unsupported", "UserError")
]

DATA_DEPENDENT_BRANCH = "Data-dependent branching"
"""The name of a branch on a tensor."""
ALIASING = "Encountered aliasing during higher order op tracing"
"""The name of a branch that returns its input."""
Symbol(
    "torch._dynamo.symbolic_convert:generic_jump",
    without="with the strict strategy, a line that decides by data looks like other failures",
    names=(DATA_DEPENDENT_BRANCH,),
)
Symbol(
    "torch._dynamo.variables.higher_order_ops:check_aliasing_and_input_mutation",
    without="with the strict strategy, a branch that returns its input looks like other failures",
    names=(ALIASING,),
)
LOST_SIZE = Symbol(
    "torch.fx.experimental.symbolic_shapes:PendingUnbackedSymbolNotFound",
    without="a size from data that no output has looks like other failures",
    otherwise=(),
)
"""The class of the exception about a data-dependent size that no output has."""

# NOTE: read in torch 2.11, 2.13 and 2.15, _dynamo/decorators.py: `mark_dynamic` and others set these attributes of a tensor. 2.11 lacks the
# second one.
_MARKS = ("_dynamo_", "_has_dynamo_dim_marking")
Symbol(
    "torch._dynamo.decorators:mark_dynamic",
    without="an export that fails may leave its dynamic dims to the next one",
    names=("_dynamo_dynamic_indices",),
)


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
    found = _REASON.of(error)
    return found if isinstance(found, str) else ""


def user_error_type(error: BaseException) -> str:
    """The name of the `UserErrorType` of an exception, such as CONSTRAINT_VIOLATION; empty for other errors."""
    return str(getattr(_KIND.of(error), "name", ""))


def interpreted_frames(error: BaseException) -> Sequence[traceback.FrameSummary]:
    """The interpreted frames behind an exception. They are not in its traceback."""
    return next(filter(None, (each.of(error) for each in _STACKS)), ())
