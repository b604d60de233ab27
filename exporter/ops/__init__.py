"""Translations that onnxscript's torchlib lacks or gets wrong, by subject. A translation takes the operator's arguments in the order of
its ATen schema, with ONNX values for tensors, and calls operators of ONNX opset 18 on `recorder.op`.

The most common operators are here, too, so that most exports need not load torchlib, which parses the source of its functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

_MODULES = (
    "activations",
    "attention",
    "casts",
    "cells",
    "complex",
    "convolution",
    "creation",
    "elementwise",
    "indexing",
    "linear",
    "logic",
    "losses",
    "normalization",
    "order",
    "pooling",
    "random",
    "reductions",
    "shapes",
    "symbolic",
)
_table: dict[str, list[tuple[Callable[..., Any], bool | None]]] = {}

F = TypeVar("F", bound=Callable[..., Any])


def translates(*names: str, is_complex: bool | None = False) -> Callable[[F], F]:
    """Registers the decorated function for qualified operator names such as `aten::add.Tensor`; `aten::relu` is a default overload.

    `is_complex` says that it is for complex tensors, which are real ones with a last dim of size 2; None that it is right for both.
    """

    def register(function: F) -> F:
        for name in names:
            _table.setdefault(name, []).append((function, is_complex))
        return function

    return register


def load() -> Mapping[str, Sequence[tuple[Callable[..., Any], bool | None]]]:
    """Every translation of ours by qualified name, and whether it is for complex tensors; None is for both."""
    for module in _MODULES:
        importlib.import_module(f"{__name__}.{module}")
    return _table


def emit(op_type: str, inputs: Sequence[Any], attributes: Mapping[str, Any], outputs: int, opset: int = 18) -> list[Any]:
    """Records an ONNX operator, as of an opset, with a number of outputs that its schema may leave open."""
    from onnxplain.recording import current

    return current().emit(op_type, inputs, attributes, outputs, opset)
