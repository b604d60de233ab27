"""The request of an export as one frozen value: `export` makes it, the stages read it."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch

from onnxplain.diagnostics import Location

from .dynamic_axes import MisfitAxes
from .dynamic_shapes import DynamicShapes
from .module_functions import ModuleFunctions
from .strategies import FXGraphExtractor

DEFAULT_OPSET = 20
"""The ONNX opset of an export that names none.

20 is the first opset with `Gelu` and with volumetric `GridSample`, so fewer models need a detour; ONNX Runtime has run it since 1.17
(2024-01) and it is also what `torch.onnx.export(dynamo=True)` writes, so that a drop-in replacement changes no consumer. Newer opsets
mainly widen the dtypes of operators.
"""


VERIFY_SIZES = 2
"""With how many sizes of dynamic dims, beside the example's, a verification compares: a larger and a smaller one."""
CONTROL_FLOW = ("rewrite", "libraries", "report")
"""What an export may do about Python loops and branches that stop its capture; the first is the default."""


@dataclasses.dataclass(frozen=True)
class Request:
    """One export as the user asked for it.

    Attributes:
        model: The model.
        args: Positional example inputs.
        kwargs: Keyword example inputs.
        shapes: Which dims of the inputs are dynamic.
        input_names: Names for the graph's inputs, in order.
        output_names: Names for the graph's outputs, in order.
        opset_version: The ONNX opset to write.
        strategies: The capture strategies to try, in order: names, and the user's extractors.
        control_flow: Where loops and branches may be rewritten in a copy: everywhere ("rewrite"), in "libraries", or nowhere ("report").
        destination: Where the model is saved; None keeps it in memory.
        external_data: True writes weights beside the model, False never does, None does if the model exceeds protobuf's limit.
        export_params: False leaves the weights out of the file.
        keep_initializers_as_inputs: True also lists initializers among the graph's inputs.
        optimize: Whether the ONNX graph is cleaned up; with "memory", large tensors are computed in chunks as well.
        verify: Whether the result is compared with eager PyTorch in ONNX Runtime.
        verify_sizes: With how many other sizes of the dynamic dims; or with which ones, by the names of the dims.
        callers: The user's lines that called the export, innermost first; or the line that defines the model.
        misfit_axes: The argument `dynamic_axes`, if it does not fit the inputs.
        functions: The modules whose calls become functions of the ONNX model; None for no modules.
    """

    model: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    shapes: DynamicShapes
    input_names: Sequence[str]
    output_names: Sequence[str]
    opset_version: int
    strategies: tuple[str | FXGraphExtractor, ...]
    control_flow: str
    destination: pathlib.Path | None
    external_data: bool | None
    export_params: bool
    keep_initializers_as_inputs: bool
    optimize: bool | Literal["memory"]
    verify: bool
    callers: tuple[Location, ...]
    verify_sizes: int | tuple[Mapping[str, int], ...] = VERIFY_SIZES
    misfit_axes: MisfitAxes | None = None
    functions: ModuleFunctions | None = None

    @property
    def caller(self) -> Location | None:
        """The line that called the export, if it is known; findings about arguments are reported there."""
        return next(iter(self.callers), None)
