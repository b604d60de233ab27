"""Takes the general way of a branch in an export where the other one only spares work, which a comparison of both has to show."""

from __future__ import annotations

import ast
from collections.abc import Callable

from onnxplain.capture.observe.frames import Site
from onnxplain.diagnostics import Confidence, Edit, Fix, Location
from onnxplain.source import syntax

from . import certain_sizes, spared_masks
from .scope import Scope

_ALL_SIZES = "Compute for this size what all other sizes need."
_MASK = "Use the mask even if it leaves nothing out."


def for_certain_sizes(place: Location) -> list[Fix]:
    """The fix for a branch at `place` that has another way for certain sizes: the export takes the way for all others.

    It computes the same for all other sizes; for the certain ones, this must be tried.
    """
    scope = _scope(place, frozenset())
    edit = None if scope is None else certain_sizes.rewritten(scope, place)
    return [] if edit is None else [Fix(_ALL_SIZES, Confidence.SAFE, (Edit(place.file, edit.region, edit.code),))]


def only_resizes(place: Location) -> bool:
    """Whether the branch at `place` does nothing but to resize a tensor, and to note it, for the sizes that are no certain ones."""
    test = syntax.test_at(place)
    owner = None if test is None else syntax.innermost(place.file, syntax.region(place.file, test), ast.If)
    return isinstance(owner, ast.If) and owner.test is test and not owner.orelse and all(map(_is_resizing, owner.body))


def _is_resizing(step: ast.stmt) -> bool:
    match step:
        case ast.Assign(targets=[ast.Name()], value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function, args=[ast.Name(id=resized), *_], keywords=keywords)):
            return name == resized and syntax.last_name(function) == "interpolate" and any(each.arg == "size" for each in keywords)
    return False


def for_mask(place: Location, site: Site, always: Callable[[str, int, str], bool]) -> list[Fix]:
    """The fix for a branch at `place` that takes None for a mask which leaves nothing out: the export uses the mask.

    It computes the same for masks that leave something out; for the others, this must be tried.

    Args:
        place: The place of its test.
        site: The variables that are known there.
        always: Whether an expression is true whenever the example reaches a line of a file: otherwise, a trial would tell nothing.
    """
    scope, test = _scope(place, site.tensors), syntax.test_at(place)
    found = None if scope is None or test is None else spared_masks.rewritten(scope, test)
    statement = None if test is None else syntax.innermost(place.file, syntax.region(place.file, test), ast.stmt)
    if found is None or statement is None or not always(place.file, statement.lineno, found[1]):
        return []
    return [Fix(_MASK, Confidence.SAFE, (Edit(place.file, found[0].region, found[0].code),))]


def _scope(place: Location, tensors: frozenset[str] | None) -> Scope | None:
    function = None if place.region is None else syntax.innermost(place.file, place.region, ast.FunctionDef)
    torch = syntax.name_of_torch(place.file)
    return None if function is None or torch is None else Scope(place.file, function, torch, tensors, frozenset())
