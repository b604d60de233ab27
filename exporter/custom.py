"""Translations that a user writes: one to fill in for an operator without any, and what to mend in one that fails."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import torch

from onnxplain.diagnostics import Confidence, Edit, Evidence, Fix, Location, Region

from . import syntax, where
from .recorder import UnknownArgument


def skeleton(target: object) -> Fix:
    """A translation of the operator `target` for the user to fill in."""
    if not isinstance(target, torch._ops.OpOverload):
        return Fix("Rewrite the line without this operator; it is not one that a translation can be given for.", Confidence.GUESS)
    parameters = ", ".join(argument.name for argument in target._schema.arguments)
    name = target._schema.name.replace("::", "_").replace(".", "_")
    return Fix(
        "Rewrite the line with other operators, or write a translation and pass it to the export.",
        Confidence.GUESS,
        snippet=f"from onnxscript import opset18 as op\n\ndef {name}({parameters}):\n    return op....\n\n"
        f"onnxplain.export(..., custom_translation_table={{torch.ops.{target}: {name}}})",
    )


def definition(function: Callable[..., Any]) -> Location | None:
    """The line where a translation is defined."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else Location(code.co_filename, Region(code.co_firstlineno), code.co_name)


def at(function: Callable[..., Any], called: Location | None) -> Evidence | None:
    """The user's translation `function` as a place, if its source is known; `called` is the model's line that called the operator."""
    place = definition(function)
    return None if place is None else Evidence(place, related=_related(called))


def mending(error: Exception, function: Callable[..., Any], called: Location | None) -> tuple[Evidence | None, Fix]:
    """The line of the user's translation that raised `error`, or that where it is defined, and what to do about it.

    Args:
        error: What the translation raised, or what is wrong with how it was called or with what it returned.
        function: The translation.
        called: The model's line that called the operator.
    """
    own = where.at_exception(error)
    fix = Fix("Mend the translation; the checks of an ONNX operator's arguments are those of its schema.", Confidence.GUESS)
    if own.location is None:
        return at(function, called), fix
    named = next((each for each in (error, error.__cause__) if isinstance(each, UnknownArgument)), None)
    renamed = None if named is None else _renamed(own.location, named)
    if renamed is not None:
        fix = Fix("Use the argument that the operator has.", Confidence.GUESS, (renamed,))
    return dataclasses.replace(own, related=_related(called)), fix


def _related(called: Location | None) -> tuple[Location, ...]:
    return () if called is None else (called.saying("the operator is called here"),)


def _renamed(place: Location, error: UnknownArgument) -> Edit | None:
    """Replaces the argument by its nearest name."""
    call = None if place.region is None else syntax.innermost(place.file, place.region, ast.Call)
    given = next((each for each in call.keywords if each.arg == error.name), None) if call is not None else None
    if given is None or error.nearest is None:
        return None
    value = given.value
    if error.is_int and isinstance(value, ast.List | ast.Tuple) and len(value.elts) == 1:
        value = value.elts[0]
    return Edit(place.file, syntax.region(place.file, given), f"{error.nearest}={syntax.text(place.file, value)}")
