"""Translations that the user registered: whether what they return is right, and how to fix one that fails."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch

from onnxplain.diagnostics import Confidence, Edit, Evidence, Fix, Location
from onnxplain.dispatch import is_output_selection
from onnxplain.recording import UnknownArgument
from onnxplain.source import locations, stubs, syntax


def checked(node: torch.fx.Node, returned: Any) -> Any:
    """The value that a translation returned, or a list of them if the operator has several results.

    Raises:
        TypeError: The translation returned more values than the operator has results, or no value for a result that is used.
    """
    expected = node.meta.get("val")
    if expected is None or (isinstance(returned, ir.Value) and isinstance(returned.type, ir.SequenceType)):
        return returned
    several = isinstance(expected, list | tuple)
    results = list(expected) if several else [expected]
    values = list(returned) if isinstance(returned, list | tuple) else [returned]
    if len(values) > len(results):
        raise TypeError(f"it returns {len(values)} values, and the operator has {len(results)}")
    values += [None] * (len(results) - len(values))
    selected = several and all(map(is_output_selection, node.users))
    used = {user.args[1] for user in node.users if user.users} if selected else range(len(results))
    for index, (value, result) in enumerate(zip(values, results, strict=True)):
        if index in used and not _fits(value, result):
            raise TypeError(f"it returns {value!r} where the operator has result {index + 1} of {len(results)}, and no ONNX value")
    return values if several else values[0]


def _fits(value: Any, result: Any) -> bool:
    return isinstance(value, ir.Value) or (isinstance(value, int | float) and not isinstance(result, torch.Tensor))


def fix_for(error: BaseException, function: Callable[..., Any], called: Location | None) -> tuple[Evidence | None, Fix]:
    """Where a translation failed, and what the user can do about it.

    Args:
        error: What the translation raised, or what is wrong with how it was called or with what it returned.
        function: The translation.
        called: The model's line that called the operator.

    Returns:
        The translation's line that raised `error`, or else its definition, if it has a place; and the fix.
    """
    own = locations.at_exception(error)
    fix = Fix("Correct the translation. The arguments of an ONNX operator have to follow its schema.", Confidence.GUESS)
    if own.location is None:
        return stubs.at(function, called), fix
    unknown = next((each for each in (error, error.__cause__) if isinstance(each, UnknownArgument)), None)
    renamed = None if unknown is None else _renamed(own.location, unknown)
    if renamed is not None:
        fix = Fix("Use the name of the argument that the operator has.", Confidence.GUESS, (renamed,))
    return dataclasses.replace(own, related=stubs.related(called)), fix


def _renamed(place: Location, error: UnknownArgument) -> Edit | None:
    """Replaces an argument that the operator does not have by the one with the nearest name."""
    call = None if place.region is None else syntax.innermost(place.file, place.region, ast.Call)
    given = next((each for each in call.keywords if each.arg == error.name), None) if call is not None else None
    if given is None or error.nearest is None:
        return None
    value = given.value
    if error.is_int and isinstance(value, ast.List | ast.Tuple) and len(value.elts) == 1:
        value = value.elts[0]
    return Edit(place.file, syntax.region(place.file, given), f"{error.nearest}={syntax.text(place.file, value)}")
