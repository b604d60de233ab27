"""An assertion for the tests of a model: it exports. Otherwise the assertion fails with the findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from onnxplain.diagnostics import ExportFailed

from .api import export
from .program import ONNXProgram


def assert_exports(
    model: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    args: tuple[Any, ...] | torch.Tensor = (),
    *,
    verify: bool = True,
    **options: Any,
) -> ONNXProgram:
    """Exports a model and compares the result with eager PyTorch.

    Warnings and notes do not fail the assertion. `diagnostic_options=DiagnosticOptions(warnings_as_errors=True, ignore=("OXP1007",))`
    makes it fail for all warnings except those of the rule OXP1007.

    Args:
        model: As for `onnxplain.export`.
        args: Positional example inputs; a single tensor is the only one.
        verify: Whether ONNX Runtime's outputs are compared with those of eager PyTorch.
        **options: The other arguments of `onnxplain.export`, such as `kwargs`, `dynamic_shapes` or `sarif`.

    Returns:
        The exported model with its log.

    Raises:
        AssertionError: The model does not export. The message contains all findings that are not suppressed, the worst first.
        InvalidArgument: An argument has the wrong type or value.
    """
    # NOTE: pytest then shows the line of the test and leaves this function out.
    __tracebackhide__ = True
    try:
        return export(model, args, verify=verify, **options)
    except ExportFailed as failed:
        log = failed.log
    raise AssertionError("\n\n".join([f"{log.verdict}: {log.summary}", *map(str, log.active)]))
