"""Takes the general way of a branch in an export where the other one only spares work, which a comparison of both has to show."""

from __future__ import annotations

import ast
from onnxplain.diagnostics import Confidence, Edit, Fix, Location
from onnxplain.source import syntax

from . import certain_sizes
from .scope import Scope

_ALL_SIZES = "Compute for this size what all other sizes need."


def for_certain_sizes(place: Location) -> list[Fix]:
    """The fix for a branch at `place` that has another way for certain sizes: the export takes the way for all others.

    It computes the same for all other sizes; for the certain ones, this must be tried.
    """
    scope = _scope(place, frozenset())
    edit = None if scope is None else certain_sizes.rewritten(scope, place)
    return [] if edit is None else [Fix(_ALL_SIZES, Confidence.SAFE, (Edit(place.file, edit.region, edit.code),))]


def _scope(place: Location, tensors: frozenset[str] | None) -> Scope | None:
    function = None if place.region is None else syntax.innermost(place.file, place.region, ast.FunctionDef)
    torch = syntax.name_of_torch(place.file)
    return None if function is None or torch is None else Scope(place.file, function, torch, tensors, frozenset())
