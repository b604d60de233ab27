"""An assertion for the tests of a model: it exports. Otherwise the assertion fails with the findings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

import torch

from onnxplain.diagnostics import Diagnostic, ExportFailed, InvalidArgument
from onnxplain.rules import KernelMissing, NotRun, OutputsNotCompared, SizesNotCompared

from .api import export
from .program import ONNXProgram


def assert_exports(
    model: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    args: tuple[Any, ...] | torch.Tensor = (),
    *,
    verify: bool = True,
    random_outputs: Collection[str] = (),
    **options: Any,
) -> ONNXProgram:
    """Exports a model and compares the result with eager PyTorch.

    Warnings and notes do not fail the assertion, except about outputs that were not compared.
    `diagnostic_options=DiagnosticOptions(warnings_as_errors=True, ignore=("OXP1007",))` makes it fail for all warnings except those of the
    rule OXP1007.

    Args:
        model: As for `onnxplain.export`.
        args: Positional example inputs; a single tensor is the only one.
        verify: Whether ONNX Runtime's outputs are compared with those of eager PyTorch.
        random_outputs: The names of outputs of the exported model that may differ in each run, and so need not be compared.
        **options: The other arguments of `onnxplain.export`, such as `kwargs`, `dynamic_shapes` or `sarif`.

    Returns:
        The exported model with its log.

    Raises:
        AssertionError: The model does not export, or other outputs than `random_outputs` were not compared. The message contains all
            findings that are not suppressed, the worst first.
        InvalidArgument: An argument has the wrong type or value.
    """
    # NOTE: pytest then shows the line of the test and leaves this function out.
    __tracebackhide__ = True
    if isinstance(random_outputs, str) or not isinstance(random_outputs, Collection):
        raise InvalidArgument(f"random_outputs: expected a collection of names, got {random_outputs!r}")
    try:
        program = export(model, args, verify=verify, **options)
    except ExportFailed as failed:
        log = failed.log
    else:
        log = program.diagnostics
        if not any(map(functools.partial(_is_unverified, set(random_outputs)), log.active)):
            return program
    raise AssertionError("\n\n".join([f"{log.verdict}: {log.summary}", *map(str, log.active)]))


def _is_unverified(random_outputs: set[str], finding: Diagnostic) -> bool:
    """Whether the finding is about outputs that were not compared, others than `random_outputs`."""
    match finding.rule:
        case OutputsNotCompared(outputs=outputs):
            return not random_outputs.issuperset(outputs)
        case NotRun() | KernelMissing() | SizesNotCompared():
            return True
    return False
