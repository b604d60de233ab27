"""Calls of single operators of PyTorch, with their arguments, to make again: in float64, or as Python code."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.operators import OpOverload, schema
from onnxplain.torch_internals.python_values import is_a


@dataclasses.dataclass(frozen=True)
class Call:
    """A call.

    Attributes:
        target: The operator.
        args: Its arguments.
        kwargs: Its keyword arguments.
        index: Which of several results counts; None if there is one.
    """

    target: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    index: int | None = None

    def run(self) -> Any:
        """The result."""
        result = called(self.target, self.args, self.kwargs)
        return result if self.index is None else result[self.index]

    def in_double(self) -> torch.Tensor | None:
        """The result for arguments in float64; None if the operator refuses them."""
        try:
            result = dataclasses.replace(self, args=widened(self.args), kwargs=widened(self.kwargs)).run()
        except Exception:  # noqa: BLE001  operators refuse dtypes with any exception
            return None
        return result if is_a(result, torch.Tensor) else None

    def tensors(self) -> list[torch.Tensor]:
        """The tensors among the arguments."""
        return [each for each in pytree.tree_leaves((list(self.args), dict(self.kwargs))) if is_a(each, torch.Tensor)]

    def replaced(self, tensors: Sequence[torch.Tensor]) -> Call:
        """The same call with other tensors, in the order of `tensors()`."""
        given = iter(tensors)
        args, kwargs = pytree.tree_map(lambda each: next(given) if is_a(each, torch.Tensor) else each, (list(self.args), dict(self.kwargs)))
        return dataclasses.replace(self, args=args, kwargs=kwargs)

    def text(self, names: Sequence[str]) -> str:
        """The call as Python code, with names for the tensors; empty if an argument has no such form."""
        if not isinstance(self.target, OpOverload):
            return ""
        given = iter(names)
        try:
            args = [_text(each, lambda: next(given)) for each in self.args]
            kwargs = [f"{name}={_text(each, lambda: next(given))}" for name, each in self.kwargs.items()]
        except TypeError:
            return ""
        return f"torch.ops.{self.target}({', '.join([*args, *kwargs])}){'' if self.index is None else f'[{self.index}]'}"


def called(target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of an operator of a prepared graph in PyTorch."""
    function = _one_sided_stft if target is torch.ops.aten.stft.default else target
    if isinstance(target, OpOverload) and (numbers := _numbers(target)):
        # NOTE: the pass `promote` casts numbers that are computed from sizes, as ONNX must.
        args = [each.item() if index in numbers and is_a(each, torch.Tensor) else each for index, each in enumerate(args)]
        kwargs = {name: each.item() if name in numbers and is_a(each, torch.Tensor) else each for name, each in kwargs.items()}
    return function(*args, **kwargs)


@functools.cache
def _numbers(target: OpOverload) -> frozenset[int | str]:
    """The positions and the names of the arguments that are Python numbers."""
    numbers = {index: each.name for index, each in enumerate(schema(target).arguments) if "number" in str(each.type)}
    return frozenset({*numbers, *numbers.values()})


def _one_sided_stft(signal: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    # NOTE: PyTorch gives one side only of real signals, which the pass `promote` has made complex.
    if kwargs.get("onesided"):
        window = kwargs.get("window")
        signal, kwargs["window"] = _real(signal), None if window is None else _real(window)
    return torch.ops.aten.stft.default(signal, *args, **kwargs)


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.real if tensor.is_complex() else tensor


def widened(value: Any) -> Any:
    """Arguments of an operator with float64 in place of all floating dtypes, and complex128 in place of complex ones."""
    return pytree.tree_map(_widened, value)


def _widened(value: Any) -> Any:
    if is_a(value, torch.Tensor) or is_a(value, torch.dtype):
        dtype = value.dtype if is_a(value, torch.Tensor) else value
        wide = torch.float64 if dtype.is_floating_point else torch.complex128 if dtype.is_complex else dtype
        return value.to(wide) if is_a(value, torch.Tensor) else wide
    return value


def _text(value: Any, name: Callable[[], str]) -> str:
    """An argument as Python code. Raises TypeError for one without such a form."""
    if is_a(value, torch.Tensor):
        return name()
    if is_a(value, list) or is_a(value, tuple):
        return f"[{', '.join(_text(each, name) for each in value)}]"
    if value is None or type(value) in (bool, int, str, torch.dtype, torch.memory_format, torch.layout):
        return repr(value)
    if type(value) is float:
        return f"float({str(value)!r})" if value in (float("inf"), float("-inf")) or value != value else repr(value)
    if type(value) is torch.device:
        return repr(str(value))
    raise TypeError(f"an argument of type {type(value).__name__} cannot be written as code")
