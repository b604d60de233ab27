"""What torch's functions are doing, by their names and local variables. No interface of torch offers this."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from . import python_frames, shape_env, size_conversions, size_rows, size_texts, sizes_from_data, truths_of_sizes
from .fake_tensors import UNSUPPORTED
from .operators import OpOverload
from .python_values import is_a
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15: the functions whose frames are recognized, and the names that are read there. `_dispatch_impl`
# calls the fake kernel of an operator (_subclasses/fake_tensor.py), `proxy_call` records an operator and runs it
# (fx/experimental/proxy_tensor.py), the function mode is that of captures without TorchDynamo (_export/non_strict_utils.py), TorchDynamo
# calls `run_node`, and torch.library.custom_op makes the last two (_library).
FAKE = Symbol(
    "torch._subclasses.fake_tensor:FakeTensorMode._dispatch_impl",
    without="a model with an operator whose decomposition fixes a size may be silently wrong at other sizes",
    names=("func", "args", "kwargs"),
)
Symbol(
    "torch._export.non_strict_utils:_NonStrictTorchFunctionHandler.__torch_function__",
    without="findings about a line that decides by data, or about sizes, may not name the operator",
    names=("func", "args", "kwargs"),
)
Symbol(
    "torch._dynamo.utils:run_node",
    without="with the strict strategy, findings about sizes may not name the operator",
    names=("node", "args", "kwargs"),
)
_RECORDED = Symbol(
    "torch.fx.experimental.proxy_tensor:proxy_call",
    without="numbers that an operator makes of sizes may be told although the graph is right for other sizes",
)
_COND = Symbol(
    "torch._higher_order_ops.cond:cond",
    without="branches of torch.cond with different results look like other failures",
    names=("true_fn", "false_fn", "operands"),
)
_MADE = Symbol("torch._export.non_strict_utils:make_constraints", without="a dim that cannot have every size looks like other failures")
_SOLVED = Symbol("torch._export.non_strict_utils:produce_guards_and_solve_constraints", without=_MADE.without)
# NOTE: 2.11 has the first of these methods, 2.13 and 2.15 have both.
_OLDER, _NEWER = "_register_to_dispatcher", "_register_fake_dispatcher_impl"
_CUSTOM = Symbol(
    f"torch.library:CustomOpDef.{_NEWER if hasattr(getattr(torch.library, 'CustomOpDef', None), _NEWER) else _OLDER}.<locals>.fake_impl",
    without="an operator of torch.library.custom_op without a fake kernel looks like other failures",
)
Symbol("torch._library.autograd:make_autograd_impl", without=_CUSTOM.without, names=("op",))

Calling = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""An operator with its positional and keyword arguments."""


def makes_number(frame: types.FrameType) -> bool:
    """Whether code makes a Python number of a symbolic size."""
    return any(each.is_present and frame.f_code.co_name == each.name for each in (shape_env.NUMBER_MADE, shape_env.FLOAT_MADE))


def records(frame: types.FrameType) -> bool:
    """Whether torch is recording an operator as a node of a graph; its arguments stay symbolic there, whatever its kernel makes of them."""
    return _RECORDED.is_present and frame.f_code.co_name == _RECORDED.name


def asks_for_number(frame: types.FrameType) -> bool:
    """Whether code asks a symbolic size, or a tensor that may hold one, for its value as a Python number or bool."""
    known = python_frames.variables(frame)
    # NOTE: torch calls a function mode (torch/overrides.py) with the function that Python called.
    if any(known.get("func") is each for each in (Tensor.__bool__, Tensor.__int__, Tensor.__index__, Tensor.__float__)):
        return True
    return is_a(known.get("self"), torch.SymInt, torch.SymFloat, torch.SymBool)


def stands_for_python(frame: types.FrameType) -> bool:
    """Whether `frame` runs what replaces a function of Python during a capture: torch's `max` (_export/non_strict_utils.py), or ours."""
    own = {each.__file__ for each in (size_conversions, size_rows, size_texts, sizes_from_data, truths_of_sizes)}
    return frame.f_code.co_name in ("_tensor_min_max", "min_max", "dispatch") or frame.f_code.co_filename in own


def computes_fake_values(frames: Iterable[types.FrameType]) -> bool:
    """Whether one of `frames` computes the result of an operator on fake tensors, in its kernel for them. True if that is not known."""
    return not FAKE.is_present or any(frame.f_code.co_name == FAKE.name for frame in frames)


def asks_for_truth(frame: types.FrameType) -> bool:
    """Whether code asks a tensor for its truth value."""
    return python_frames.variables(frame).get("func") is Tensor.__bool__


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
    for frame, _, _ in python_frames.of_traceback(error) if _COND.is_present else ():
        known = python_frames.variables(frame)
        if frame.f_code.co_name == _COND.name and all(name in known for name in _COND.names):
            return known["true_fn"], known["false_fn"], known["operands"]
    return None


def operator_without_fake_kernel(error: BaseException) -> OpOverload | None:
    """The operator without a fake kernel that `error` names."""
    # NOTE: for operators of torch.library.custom_op, torch raises an exception without a class.
    candidates = [UNSUPPORTED.of(error)] if UNSUPPORTED.is_present and isinstance(error, UNSUPPORTED.value) else []
    frames = [frame for frame, _, _ in python_frames.of_traceback(error)]
    if _CUSTOM.is_present and frames and frames[-1].f_code.co_name == _CUSTOM.name:
        candidates += [python_frames.variables(frame).get("op") for frame in frames]
    return next((each for each in candidates if is_a(each, OpOverload)), None)


def makes_constraints(error: BaseException) -> bool:
    """Whether torch raised `error` while it checked the constraints of `dynamic_shapes`."""
    # NOTE: for a Dim.DYNAMIC, torch raises a ValueError there.
    return _passes(error, _MADE) or solves_constraints(error)


def solves_constraints(error: BaseException) -> bool:
    """Whether torch's solver raised `error` because it could not simplify the constraints, or state its result."""
    # NOTE: torch raises a ValueError or an AssertionError there.
    return _passes(error, _SOLVED)


def _passes(error: BaseException, function: Symbol) -> bool:
    return function.is_present and any(frame.f_code.co_name == function.name for frame, _, _ in python_frames.of_traceback(error))


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
