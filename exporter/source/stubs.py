"""The user's translations: a skeleton for an operator that has none, and the place of an existing one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnxplain.diagnostics import Confidence, Evidence, Fix, Location
from onnxplain.request import DEFAULT_OPSET
from onnxplain.torch_internals.operators import OpOverload, schema

from . import locations


def skeleton(target: object) -> Fix:
    """The fix that offers a skeleton of a translation for the operator `target`."""
    if not isinstance(target, OpOverload):
        return Fix("Rewrite the line without this operator; an export takes no translation for it.", Confidence.GUESS)
    parameters = ", ".join(argument.name for argument in schema(target).arguments)
    name = schema(target).name.replace("::", "_").replace(".", "_")
    return Fix(
        "Rewrite the line with other operators, or write a translation and pass it to the export.",
        Confidence.GUESS,
        snippet=f"from onnxscript import opset{DEFAULT_OPSET} as op\n\ndef {name}({parameters}):\n    return op....\n\n"
        f"onnxplain.export(..., custom_translation_table={{torch.ops.{target}: {name}}})",
    )


def at(function: Callable[..., Any], called: Location | None) -> Evidence | None:
    """The user's translation `function` as a place, if its source is known; `called` is the model's line that called the operator."""
    place = locations.definition_of(function)
    return None if place is None else Evidence(place, related=related(called))


def related(called: Location | None) -> tuple[Location, ...]:
    """The model's line that called the operator, as a related place."""
    return () if called is None else (called.saying("the operator is called here"),)
