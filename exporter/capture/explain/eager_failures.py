"""Exceptions that the model raises in eager mode: faults of the model itself."""

from __future__ import annotations

import dataclasses

from onnxplain.capture.eager import EagerRuns
from onnxplain.capture.finding import Finding
from onnxplain.diagnostics import Evidence, Rule
from onnxplain.request import Request
from onnxplain.rules import BranchesMismatch
from onnxplain.source import locations

from . import branch_results, remedies


def finding(request: Request, error: Exception, runs: EagerRuns) -> Finding:
    """The finding about `error`, which the model raises in eager mode."""
    at = locations.at_exception(error, runs.module)
    if at.location is None:
        # NOTE: `forward` never began, because the arguments do not fit it.
        definition = locations.module_definition(request.model)
        at = Evidence(request.caller, related=(definition.saying("forward is defined here"),) if definition else ())
    notes = ("The model also fails with these inputs in eager mode.",)
    if (differing := branch_results.difference(error)) is not None:
        rule: Rule = BranchesMismatch(problem=differing.text)
        return Finding(rule, dataclasses.replace(at, related=(*at.related, *differing.related)), notes, (differing.fix,), final=True)
    rule, fix, at = remedies.for_eager_error(error, at, request, runs.holds)
    return Finding(rule, at, notes, (fix,), final=True)
