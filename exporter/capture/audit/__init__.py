"""Checks a captured program for differences from the model: values that became constants, random numbers, dropped checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from onnxplain.capture.finding import Finding

from . import (
    baked_inputs,
    changed_attributes,
    double_precision,
    dropped_checks,
    examples_of_one,
    hooks,
    host_values,
    random_operators,
    side_effects,
    symbolics,
    tensor_reads,
    training_mode,
    unrolled_loops,
    vector_signs,
    written_checks,
)
from .finished import Finished
from .side_effects import of_attempt as side_effects_of
from .written_checks import of_sizes as checks_of_sizes
from .written_checks import written_check

Check = Callable[[Finished], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    examples_of_one.findings,
    training_mode.findings,
    baked_inputs.findings,
    unrolled_loops.findings,
    symbolics.findings,
    host_values.findings,
    changed_attributes.findings,
    tensor_reads.findings,
    random_operators.findings,
    vector_signs.findings,
    dropped_checks.findings,
    written_checks.findings,
    side_effects.findings,
    double_precision.findings,
    hooks.findings,
)
"""Every check, in the order in which its findings are reported. To add one, write its file and its line here."""


def findings(finished: Finished) -> Iterator[Finding]:
    """The findings of all checks."""
    for check in CHECKS:
        yield from check(finished)


__all__ = ["CHECKS", "Check", "Finished", "checks_of_sizes", "findings", "side_effects_of", "written_check"]
