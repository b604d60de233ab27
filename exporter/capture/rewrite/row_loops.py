"""Rewrites a Python loop over the rows of a tensor as torch.vmap."""

from __future__ import annotations

import ast

from onnxplain.diagnostics import Confidence, Edit, Fix, Location
from onnxplain.source import locations, syntax


def fixes(place: Location) -> list[Fix]:
    """Fixes that compute `torch.stack([f(row) for row in x])` at `place` for all rows at once."""
    function = syntax.name_of_torch(place.file)
    if place.region is None or function is None or not locations.is_users(place.file):
        return []
    stacks = [node for node in syntax.around(place.file, place.region) if isinstance(node, ast.Call)]
    for call in reversed(stacks):
        match call:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr="stack"),
                args=[ast.ListComp(elt=value, generators=[ast.comprehension(target=ast.Name(id=row), iter=rows, ifs=[], is_async=0)])],
                keywords=[],
            ) if owner == function and isinstance(rows, ast.Name | ast.Attribute):
                whole, region = syntax.text(place.file, rows), syntax.region(place.file, call)
                code = f"lambda {row}: {syntax.text(place.file, value)}"
                found = []
                match value:
                    case ast.Call(func=called, args=[ast.Name(id=given)], keywords=[]) if given == row:
                        code = syntax.text(place.file, called)
                        advice = "Pass the whole tensor, if the function treats each row separately."
                        found.append(Fix(advice, Confidence.GUESS, edits=(Edit(place.file, region, f"{code}({whole})"),)))
                vmap = Edit(place.file, region, f"{function}.vmap({code})({whole})")
                return [Fix("Compute all rows at once.", Confidence.SAFE, edits=(vmap,)), *found]
    return []
