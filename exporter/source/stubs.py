"""Translations that a user writes: one to fill in for an operator without any, and the place of one that is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnxplain.diagnostics import Confidence, Evidence, Fix, Location
from onnxplain.torch_internals.operators import OpOverload, schema

from . import locations


def skeleton(target: object) -> Fix:
    """A translation of the operator `target` for the user to fill in."""
    if not isinstance(target, OpOverload):
        return Fix("Rewrite the line without this operator; it is not one that a translation can be given for.", Confidence.GUESS)
    parameters = ", ".join(argument.name for argument in schema(target).arguments)
    name = schema(target).name.replace("::", "_").replace(".", "_")
    return Fix(
        "Rewrite the line with other operators, or write a translation and pass it to the export.",
        Confidence.GUESS,
        snippet=f"from onnxscript import opset18 as op\n\ndef {name}({parameters}):\n    return op....\n\n"
        f"onnxplain.export(..., custom_translation_table={{torch.ops.{target}: {name}}})",
    )


def at(function: Callable[..., Any], called: Location | None) -> Evidence | None:
    """The user's translation `function` as a place, if its source is known; `called` is the model's line that called the operator."""
    place = locations.definition_of(function)
    return None if place is None else Evidence(place, related=related(called))


def related(called: Location | None) -> tuple[Location, ...]:
    """The model's line that called the operator, as a related place."""
    return () if called is None else (called.saying("the operator is called here"),)
