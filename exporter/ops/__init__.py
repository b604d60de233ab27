"""Our translations of operators to ONNX, by subject. They replace what onnxscript's torchlib lacks or gets wrong.

A translation takes the operator's arguments in the order of its ATen schema, with ONNX values for tensors, and calls operators of ONNX
opset 18 on `recording.op`. Its docstring gives the schema; by default, the result has the shape and dtype of `self`.
`load` finds translations by itself: a new one is a decorated function in a file of this folder, and a case in tests/ops/cases.

The most common operators are here as well, so that most exports need not load torchlib, which parses the source of its functions.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from onnxplain.recording import current

_table: dict[str, list[tuple[Callable[..., Any], bool | None]]] = {}

F = TypeVar("F", bound=Callable[..., Any])


def translates(*names: str, is_complex: bool | None = False) -> Callable[[F], F]:
    """Registers the decorated function as the translation of operators.

    Args:
        names: Qualified names such as `aten::add.Tensor`; `aten::relu` is a default overload.
        is_complex: True for complex tensors, which are real tensors with a last dim of size 2; False for all others; None for both.

    Raises:
        TypeError: A name has a translation for these tensors already.
    """

    def register(function: F) -> F:
        for name in names:
            registered = _table.setdefault(name, [])
            for other, kind in registered:
                if is_complex is kind or is_complex is None or kind is None:
                    raise TypeError(f"{name} has two translations: {_place(other)} and {_place(function)}")
            registered.append((function, is_complex))
        return function

    return register


def _place(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def load() -> Mapping[str, Sequence[tuple[Callable[..., Any], bool | None]]]:
    """All our translations by qualified name, each with its `is_complex`. Imports every module of this folder."""
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    return _table


def emit(op_type: str, inputs: Sequence[Any], attributes: Mapping[str, Any], outputs: int, opset: int = 18) -> list[Any]:
    """Records an ONNX operator of an opset with a number of outputs, which its schema may leave open."""
    return current().emit(op_type, inputs, attributes, outputs, opset)
