"""`dynamo_export` and its options, the interface of torch.onnx from 2.1 to 2.8, on the pipeline of `export`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

from onnxplain.diagnostics import DiagnosticOptions, InvalidArgument

from .api import export
from .fake import ONNXFakeContext
from .program import ONNXProgram
from .registry import OnnxRegistry
from .request import CONTROL_FLOW, STRATEGIES, FXGraphExtractor, checked, checked_choice, checked_strategies


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """The options of `dynamo_export`.

    Attributes:
        dynamic_shapes: True makes every dim of every input dynamic, except the dims that the model fixes; each of these becomes a note
            at its line. False keeps the sizes of the example. None is the same as False: every runtime accepts static shapes, and no
            line of the model can prevent them.
        fake_context: The result of `enable_fake_mode`, if the model was made in it.
        onnx_registry: Your translations and the opset; None has only onnxplain's translations and the default opset.
        diagnostic_options: What counts as a finding, and how much is recorded.
        strategies: The capture strategies to try, in order: names, and your `FXGraphExtractor`s. See `export`.
        try_fixes: Whether a failed export may run the model to explain the failure and to try fixes. See `export`.
        control_flow: Where Python loops and branches that torch.export cannot capture are rewritten. See `export`.

    Raises:
        InvalidArgument: An option has the wrong type, or names a strategy that does not exist.
    """

    dynamic_shapes: bool | None = None
    fake_context: ONNXFakeContext | None = None
    onnx_registry: OnnxRegistry | None = None
    diagnostic_options: DiagnosticOptions | None = None
    strategies: Sequence[str | FXGraphExtractor] = STRATEGIES
    try_fixes: bool = True
    control_flow: Literal["rewrite", "libraries", "report"] = "rewrite"

    def __post_init__(self) -> None:
        if not isinstance(self.dynamic_shapes, bool | None):
            hint = "to choose the dims, use export(dynamic_shapes=...)"
            raise InvalidArgument(f"dynamic_shapes: expected True, False or None ({hint}), got {self.dynamic_shapes!r}")
        kinds = {"fake_context": ONNXFakeContext, "onnx_registry": OnnxRegistry, "diagnostic_options": DiagnosticOptions}
        for name, kind in kinds.items():
            value = getattr(self, name)
            if not isinstance(value, kind | None):
                raise InvalidArgument(f"{name}: expected {kind.__name__} or None, got {value!r}")
        checked_strategies(self.strategies)
        checked("try_fixes", self.try_fixes, bool)
        checked_choice("control_flow", self.control_flow, CONTROL_FLOW)


def dynamo_export(
    model: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    /,
    *model_args: Any,
    export_options: ExportOptions | None = None,
    **model_kwargs: Any,
) -> ONNXProgram:
    """Exports a model to ONNX, in memory. `export` does the same with more options.

    Args:
        model: A module, a function of tensors, or an ExportedProgram.
        *model_args: Positional example inputs.
        export_options: The options.
        **model_kwargs: Keyword example inputs.

    Returns:
        The exported model with its log.

    Raises:
        ExportFailed: There is no result; it carries the log, and its text begins with the first finding.
        InvalidArgument: An argument has the wrong type or value (a TypeError and a ValueError).
    """
    options = ExportOptions() if export_options is None else export_options
    if not isinstance(options, ExportOptions):
        raise InvalidArgument(f"export_options: expected ExportOptions or None, got {export_options!r}")
    registry = options.onnx_registry or OnnxRegistry()
    return export(
        model,
        model_args,
        kwargs=model_kwargs,
        dynamic_shapes=options.dynamic_shapes or None,
        opset_version=registry.opset_version,
        diagnostic_options=options.diagnostic_options,
        strategies=options.strategies,
        try_fixes=options.try_fixes,
        control_flow=options.control_flow,
        _registry=registry,
    )
