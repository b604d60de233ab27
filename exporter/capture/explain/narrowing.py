"""The narrower `dynamic_shapes` that torch's solver of constraints suggests after a capture that violates those of the request."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from typing import Any

import torch
from torch.export import Dim

from onnxplain.capture.observe.guards import Guards
from onnxplain.request import InputDim, Kind, Request
from onnxplain.torch_internals import dim_entries, dynamo, torch_frames


def violates(error: BaseException) -> bool:
    """Whether `error` is about dims that cannot have every size."""
    return dynamo.user_error_type(error) == "CONSTRAINT_VIOLATION" or torch_frames.makes_constraints(error)


def unsolved(error: BaseException | None) -> bool:
    """Whether torch's solver could not tell whether the dims can have every size. Without ranges there is nothing to solve."""
    return error is not None and not dynamo.user_error_type(error) and torch_frames.solves_constraints(error)


def narrowed(request: Request, error: Exception | None, guards: Guards) -> Request | None:
    """`request` with the `dynamic_shapes` that torch's solver suggests after `error`; None if it suggests nothing.

    If the solver itself failed, the dims keep their names without their ranges; `dims.undelivered` finds what the model assumes of them.
    """
    suggested = {} if error is None else refined(error, request)
    if not suggested and error is not None and (unsolved(error) or violates(error)):
        return dataclasses.replace(request, shapes=request.shapes.replaced(dict.fromkeys(request.shapes.dynamic, Dim.AUTO)))
    if not suggested:
        return None
    given_up = {dim: Dim.AUTO for dim, given in suggested.items() if gives_up(dim, given, guards)}
    return dataclasses.replace(request, shapes=request.shapes.replaced(suggested | given_up))


def gives_up(dim: InputDim, suggested: Any, guards: Guards) -> bool:
    """Whether torch's solver suggests a number or a factor that no guard asks for, as it does where it cannot simplify the guards."""
    if isinstance(suggested, int):
        return guards.varies(dim)
    if not isinstance(suggested, Dim) or dim_entries.root(suggested) is None or not guards.varies(dim):
        return False
    # NOTE: where a quotient is rounded, it divides as if the remainder were always the example's.
    function = dim_entries.from_root(suggested)
    between = range(dim.size + 1, dim.size + function(2) - function(1))
    return any(dim.allows(size) and next(guards.excluding(dim, (size,)), None) is None for size in between)


def refined(error: Exception, request: Request) -> dict[InputDim, Any]:
    """The specs that torch's solver suggests for dims in place of those that the user gave."""
    # NOTE: torch's function stops at a hint such as Dim.DYNAMIC, and the solver suggests nothing for hints.
    shapes = request.shapes.replaced(dict.fromkeys(set(request.shapes.dims).difference(_ranges(request))))
    # NOTE: torch's solver may stop at anything; then there is no suggestion.
    with contextlib.suppress(Exception):
        torch_shapes = shapes.for_torch()
        refine = torch.export.dynamic_shapes.refine_dynamic_shapes_from_suggested_fixes
        suggested = refine(error.msg, torch_shapes)  # type: ignore[attr-defined]  # torch's UserError has a message
        said = {dim: dim.given for dim in shapes.reread(suggested).dims}
        before = {dim: dim.given for dim in shapes.reread(torch_shapes).dims}
        return {dim: said[dim] for dim in shapes.dynamic if said[dim] is not None and not _equal(said[dim], before[dim])}
    return {}


def relation(before: Dim, after: Dim) -> str:
    """What a narrower Dim says of the sizes beside the user's, such as `n >= 2`; empty if it says nothing."""
    if before.__name__ != after.__name__:
        return f"{before.__name__} == {after.__name__}"
    bounds = [
        text
        for text, changed in (
            (f"{before.__name__} >= {after.min}", after.min != before.min),
            # NOTE: a number from data has a largest value, and so has a dim that equals one.
            (f"{before.__name__} <= {after.max}", after.max != before.max and after.max < sys.maxsize - 1),
        )
        if changed
    ]
    return " and ".join(bounds)


def _ranges(request: Request) -> list[InputDim]:
    """The dims with a torch.export.Dim."""
    return [dim for dim in request.shapes.dims if dim.kind in (Kind.DIM, Kind.DERIVED)]


def _equal(one: Any, other: Any) -> bool:
    """Whether two specs of a dim state the same range of one name."""
    both = isinstance(one, Dim) and isinstance(other, Dim)
    return both and (one.__name__, one.min, one.max) == (other.__name__, other.min, other.max)
