"""Which modules become functions of the ONNX model."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from typing import Any

import torch

from onnxplain.diagnostics import InvalidArgument

from .checks import checked_choice

FUNCTIONS = ("none", "modules")
"""What may become functions of the ONNX model; the first is the default."""


@dataclasses.dataclass(frozen=True)
class ModuleFunctions:
    """The modules whose calls become functions.

    Attributes:
        argument: The argument of the export that asks for it.
        classes: Their classes; None for all.
    """

    argument: str
    classes: frozenset[type] | None = None


def checked_functions(functions: object, export_modules_as_functions: Any) -> ModuleFunctions | None:
    """Reads the arguments of `export` with these names. None if nothing becomes a function.

    Raises:
        InvalidArgument: An argument has the wrong type or value.
    """
    every = checked_choice("functions", functions, FUNCTIONS) == "modules"
    if isinstance(export_modules_as_functions, bool):
        argument = "functions" if every else "export_modules_as_functions"
        return ModuleFunctions(argument) if every or export_modules_as_functions else None
    classes = export_modules_as_functions
    are_classes = isinstance(classes, Collection) and all(isinstance(each, type) and issubclass(each, torch.nn.Module) for each in classes)
    if not are_classes:
        raise InvalidArgument(f"export_modules_as_functions: expected True, False or a set of classes of torch.nn.Module, got {classes!r}")
    if every:
        return ModuleFunctions("functions")
    return ModuleFunctions("export_modules_as_functions", frozenset(classes)) if classes else None
