"""Branches of a torch.cond with different results."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch

from onnxplain.diagnostics import Confidence, Edit, Fix, Location, chain
from onnxplain.source import locations, syntax
from onnxplain.torch_internals import pytree, torch_frames


@dataclasses.dataclass(frozen=True)
class Difference:
    """How the results of the branches differ for the example.

    Attributes:
        text: The first results that differ.
        related: The branches.
        fix: The fix to offer.
    """

    text: str
    related: tuple[Location, ...]
    fix: Fix


def difference(error: Exception) -> Difference | None:
    """The difference between the branches' results, if `error` comes from a torch.cond that cannot join them."""
    given = next(filter(None, map(torch_frames.branches_of_cond, chain(error))), None)
    if given is None:
        return None
    *branches, operands = given
    results: list[list[Any]] = []
    for branch in branches:
        # NOTE: the branches are the user's code, and one that raises has no results to compare.
        with contextlib.suppress(Exception), torch.no_grad():
            results.append(pytree.tree_leaves(branch(*operands)))
    pairs = list(zip(*results, strict=False)) if len(results) == 2 else []
    differing = next((pair for pair in pairs if _kind(pair[0]) != _kind(pair[1])), None)
    if differing is None:
        return None
    kinds = [_kind(each) for each in differing]
    places = [_place(branch) for branch in branches]
    related = [place.saying(f"returns {kind}") for place, kind in zip(places, kinds, strict=True) if place is not None]
    advice = "Let both branches return tensors of the same dtype and shape."
    edits = tuple(_converted(branches, differing)) if len(pairs) == 1 else ()
    fix = Fix(
        advice, Confidence.CHANGES_BEHAVIOUR if edits else Confidence.GUESS, edits, snippet="" if edits else "return result.to(x.dtype)"
    )
    return Difference(" and ".join(kinds), tuple(related), fix)


def _place(branch: Callable[..., Any]) -> Location | None:
    place = locations.definition_of(branch)
    return place if place is not None and locations.is_users(place.file) else None


def _kind(result: object) -> str:
    if not isinstance(result, torch.Tensor):
        return type(result).__name__
    return f"{result.dtype}[{', '.join(map(str, result.shape))}]"


def _converted(branches: list[Callable[..., Any]], results: tuple[Any, Any]) -> Iterator[Edit]:
    """The edits that convert one branch's result to the dtype of the other, if only the dtype differs."""
    if not all(isinstance(each, torch.Tensor) for each in results) or results[0].shape != results[1].shape:
        return
    dtype = torch.promote_types(results[0].dtype, results[1].dtype)
    for branch, result in zip(branches, results, strict=True):
        if result.dtype != dtype and (found := _returned(branch)) is not None:
            file, value = found
            text = syntax.text(file, value)
            atom = isinstance(value, ast.Name | ast.Call | ast.Attribute | ast.Subscript)
            torch_name = syntax.name_of_torch(file) or "torch"
            converted = f"{text if atom else f'({text})'}.to({str(dtype).replace('torch', torch_name, 1)})"
            yield Edit(file, syntax.region(file, value), converted)


def _returned(branch: Callable[..., Any]) -> tuple[str, ast.expr] | None:
    """The only expression that `branch` returns, with its file."""
    place = _place(branch)
    if place is None:
        return None
    found: list[ast.expr] = []
    for node in ast.walk(syntax.tree(place.file) or ast.Module([], [])):
        if isinstance(node, ast.FunctionDef) and (node.name, node.lineno) == (place.function, place.line):
            found += [each.value for each in ast.walk(node) if isinstance(each, ast.Return) and each.value is not None]
        elif isinstance(node, ast.Lambda) and place.function == "<lambda>" and node.lineno == place.line:
            found.append(node.body)
    return (place.file, found[0]) if len(found) == 1 else None
