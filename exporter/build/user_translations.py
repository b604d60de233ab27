"""What to mend in a translation of the user's that fails."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable
from typing import Any

from onnxplain.diagnostics import Confidence, Edit, Evidence, Fix, Location
from onnxplain.recording import UnknownArgument
from onnxplain.source import locations, stubs, syntax


def mending(error: Exception, function: Callable[..., Any], called: Location | None) -> tuple[Evidence | None, Fix]:
    """The line of the user's translation that raised `error`, or that where it is defined, and what to do about it.

    Args:
        error: What the translation raised, or what is wrong with how it was called or with what it returned.
        function: The translation.
        called: The model's line that called the operator.
    """
    own = locations.at_exception(error)
    fix = Fix("Mend the translation; the checks of an ONNX operator's arguments are those of its schema.", Confidence.GUESS)
    if own.location is None:
        return stubs.at(function, called), fix
    named = next((each for each in (error, error.__cause__) if isinstance(each, UnknownArgument)), None)
    renamed = None if named is None else _renamed(own.location, named)
    if renamed is not None:
        fix = Fix("Use the argument that the operator has.", Confidence.GUESS, (renamed,))
    return dataclasses.replace(own, related=stubs.related(called)), fix


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
