"""What torch's functions are doing, by their names and local variables (torch 2.11 to 2.15). No interface of torch offers this."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from . import python_frames
from .operators import OpOverload
from .python_values import is_a

Calling = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""An operator with its positional and keyword arguments."""


def asks_for_number(frame: types.FrameType) -> bool:
    """Whether code asks a symbolic size for its value as a Python number or bool."""
    return is_a(python_frames.variables(frame).get("self"), torch.SymInt, torch.SymFloat, torch.SymBool)


def stands_for_python(frame: types.FrameType) -> bool:
    """Whether `frame` runs the replacement of `max` and `min` during a capture (_export/non_strict_utils.py), or our wrapper of it."""
    return frame.f_code.co_name in ("_tensor_min_max", "min_max", "dispatch")


def computes_fake_values(frames: Iterable[types.FrameType]) -> bool:
    """Whether one of `frames` computes the result of an operator on fake tensors, in its kernel for them."""
    # NOTE: _subclasses/fake_tensor.py.
    return any(frame.f_code.co_name == "_dispatch_impl" for frame in frames)


def asks_for_truth(frame: types.FrameType) -> bool:
    """Whether code asks a tensor for its truth value."""
    # NOTE: torch calls a function mode (torch/overrides.py) with the function that Python called.
    return python_frames.variables(frame).get("func") is torch.Tensor.__bool__


def operator_at_work(frame: types.FrameType) -> Calling | None:
    """The operator that torch's dispatch, or `run_node` of TorchDynamo, is calling."""
    known = python_frames.variables(frame)
    node = known.get("node")
    called = node.target if is_a(node, torch.fx.Node) else known.get("func")
    called = getattr(torch.Tensor, called, None) if is_a(called, str) else called
    if callable(called) and is_a(known.get("args"), tuple) and is_a(known.get("kwargs"), dict):
        return called, known["args"], known["kwargs"]
    return None


def branches_of_cond(error: BaseException) -> tuple[Callable[..., Any], Callable[..., Any], Sequence[Any]] | None:
    """The two branches and the operands of the torch.cond that raised `error`."""
    # NOTE: _higher_order_ops/cond.py: the parameters of torch.cond.
    for frame, _, _ in python_frames.of_traceback(error):
        known = python_frames.variables(frame)
        if frame.f_code.co_name == "cond" and all(name in known for name in ("true_fn", "false_fn", "operands")):
            return known["true_fn"], known["false_fn"], known["operands"]
    return None


def operator_without_fake_kernel(error: BaseException) -> OpOverload | None:
    """The operator without a fake kernel that `error` names."""
    # NOTE: _subclasses/fake_tensor.py raises UnsupportedOperatorException for operators of torch.library.define, _library/custom_ops.py an
    # anonymous exception, in `fake_impl`, for those of torch.library.custom_op.
    candidates = [getattr(error, "func", None)] if type(error).__name__ == "UnsupportedOperatorException" else []
    frames = [frame for frame, _, _ in python_frames.of_traceback(error)]
    if frames and frames[-1].f_code.co_name == "fake_impl":
        candidates += [python_frames.variables(frame).get("op") for frame in frames]
    return next((each for each in candidates if is_a(each, OpOverload)), None)


def makes_constraints(error: BaseException) -> bool:
    """Whether torch raised `error` while it checked the constraints of `dynamic_shapes`."""
    # NOTE: for a Dim.DYNAMIC torch raises a ValueError from `make_constraints` (_export/non_strict_utils.py).
    return _passes(error, "make_constraints") or solves_constraints(error)


def solves_constraints(error: BaseException) -> bool:
    """Whether torch's solver raised `error` because it could not simplify the constraints, or state its result."""
    # NOTE: it raises a ValueError or AssertionError from `produce_guards_and_solve_constraints` (_export/non_strict_utils.py).
    return _passes(error, "produce_guards_and_solve_constraints")


def _passes(error: BaseException, function: str) -> bool:
    return any(frame.f_code.co_name == function for frame, _, _ in python_frames.of_traceback(error))


def values_on_the_way(error: BaseException) -> Iterator[Any]:
    """The values of the local variables of all functions in the traceback of `error`."""
    for frame, _, _ in python_frames.of_traceback(error):
        yield from list(python_frames.variables(frame).values())


def modules_running(error: BaseException) -> Iterator[torch.nn.Module]:
    """The modules whose methods were running, outermost first."""
    for frame, _, _ in python_frames.of_traceback(error):
        owner = python_frames.variables(frame).get("self")
        if is_a(owner, torch.nn.Module):
            yield owner
