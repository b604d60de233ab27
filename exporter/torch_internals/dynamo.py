"""TorchDynamo, which interprets the user's code instead of running it: its stack, its marks, its names for code that it cannot trace."""

from __future__ import annotations

import copy
import functools
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from . import patching, python_frames, pytree
from .code_objects import code_of
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
_MARKS = ("_dynamo_", "_has_dynamo_dim_marking", "_specialize_on")
Symbol(
    "torch._dynamo.decorators:mark_dynamic",
    without="an export that fails may leave its dynamic dims to the next one",
    names=("_dynamo_dynamic_indices",),
)

# NOTE: read in torch 2.11, 2.13 and 2.15, _dynamo/guards.py: for a message in a debug log only, it empties the caches of the processor.
_TIMING = Symbol("torch._dynamo.guards:profile_guard_manager", without="captures of loops and branches take longer")


@contextmanager
def guards_untimed() -> Iterator[None]:
    """While it is open, TorchDynamo does not measure its guards, which takes 35 ms for each loop and branch."""
    if not _TIMING.is_present:
        yield
        return
    with patching.wrapped(patching.Slot(sys.modules["torch._dynamo.guards"], _TIMING.name), lambda _original, *_: 0.0):
        yield


# NOTE: read in torch 2.11, 2.13 and 2.15, _higher_order_ops/scan.py: functions that are not compiled return one flat tuple.
_SCAN = Symbol(
    "torch._higher_order_ops.scan:scan",
    without="a model with a scan may not run for a comparison",
    names=("_maybe_compile_and_run_fn", "run_flattened_scan", "combine_fn", "spec_init"),
)


@contextmanager
def uncompiled() -> Iterator[None]:
    """While it is open, `torch.compile` calls what it is given.

    In eager mode, `torch.cond` and `torch.while_loop` compile their functions anew for each call, which takes a thousand times as long as
    to run them.
    """
    with torch.compiler.set_stance("force_eager"):
        if not _SCAN.is_present:
            yield
            return
        with patching.wrapped(patching.Slot(sys.modules["torch._higher_order_ops.scan"], "_maybe_compile_and_run_fn"), _scan):
            yield


def _scan(original: Any, function: Callable[..., Any], combine: functools.partial[Any], states: Sequence[Any], *rest: Any) -> Any:
    structures = []

    def combined(state: Any, item: Any) -> tuple[Any, Any]:
        state, result = combine.keywords["combine_fn"](state, item)
        structures.append(pytree.tree_flatten(result)[1])
        return state, result

    results = function(functools.partial(combine, combine_fn=combined), states, *rest)
    if not structures:
        with torch.compiler.set_stance("default"):
            return original(function, combine, states, *rest)
    last, others = results[: len(states)], results[len(states) :]
    return pytree.tree_unflatten(last, combine.keywords["spec_init"]), pytree.tree_unflatten(others, structures[0])


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


# NOTE: read in torch 2.11, 2.13 and 2.15, _dynamo/symbolic_convert.py.
_INTERPRETER = "torch._dynamo.symbolic_convert:InstructionTranslatorBase"
_RUN = Symbol(f"{_INTERPRETER}.run", without="with the strict strategy, a profile of the export has fewer lines", names=("self",))
_LINE = Attribute(f"{_INTERPRETER}.lineno", without=_RUN.without)
_CODE = Attribute(f"{_INTERPRETER}.f_code", without=_RUN.without)


@functools.cache
def _interpreting() -> types.CodeType | None:
    """The code of the method that interprets."""
    return code_of(_RUN.value)


def interpreted(look: python_frames.Look) -> tuple[types.CodeType, int] | None:
    """The code that TorchDynamo interprets in its own frame, and the line; None if the frame interprets nothing."""
    if look.code is not _interpreting():
        return None
    interpreter = python_frames.variables(look.frame).get("self")
    code, line = _CODE.of(interpreter), _LINE.of(interpreter)
    return (code, line) if isinstance(code, types.CodeType) and isinstance(line, int) else None
