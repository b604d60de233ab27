"""Tensors whose data Python reads during a capture: the values become constants of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from onnxplain.diagnostics import Location
from onnxplain.torch_internals import shape_env
from onnxplain.torch_internals.fake_tensors import is_fake
from onnxplain.torch_internals.modules import REGISTERED, named_modules
from onnxplain.torch_internals.python_values import is_a

_READERS = frozenset({"__array__", "__bool__", "__float__", "__index__", "__int__", "item", "numpy", "tolist"})

# NOTE: the frame of a mode is on the stack of every function.
shape_env.leave_out(__file__)


def holds_tensors(model: torch.nn.Module) -> bool:
    """Whether a module of `model` has a tensor that is neither parameter nor buffer, as an attribute or in a list or dict."""
    return any(
        is_a(part, torch.Tensor)
        for _, module in named_modules(model)
        for name, value in vars(module).items()
        if name not in REGISTERED
        for part in (value if is_a(value, list, tuple) else value.values() if is_a(value, dict) else (value,))
    )


class Reads(TorchFunctionMode):
    """Watches for functions that read a tensor's data.

    torch.export makes fake tensors of parameters, buffers and inputs. A tensor that is a plain attribute of a module stays real, and
    torch does not tell that Python read it (seen in torch 2.11, 2.13 and 2.15).

    Args:
        stack: Returns the frames outside torch, outermost first.
    """

    def __init__(self, stack: Callable[[], tuple[Location, ...]]) -> None:
        super().__init__()
        self._stack = stack
        self._made: list[tuple[Location, ...]] = []

    def __torch_function__(self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Notes the stack if `func` reads a real tensor, and calls `func`."""
        del types
        if getattr(func, "__name__", "") in _READERS and args and isinstance(args[0], torch.Tensor) and not is_fake(args[0]):
            self._made.append(self._stack())
        return func(*args, **(kwargs or {}))

    def made(self) -> tuple[tuple[Location, ...], ...]:
        """The stacks that read a tensor, each once."""
        return tuple(dict.fromkeys(self._made))
