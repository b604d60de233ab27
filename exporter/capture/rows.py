"""A Python loop over the rows of a tensor as torch.vmap."""

from __future__ import annotations

import ast

from onnxplain import syntax, where
from onnxplain.diagnostics import Confidence, Edit, Fix, Location


def fixes(place: Location) -> list[Fix]:
    """Computes `torch.stack([f(row) for row in x])` at `place` for all rows at once."""
    function = syntax.name_of_torch(place.file)
    if place.region is None or function is None or where.origin(place.file) is not where.Origin.USER:
        return []
    stacks = [node for node in syntax.around(place.file, place.region) if isinstance(node, ast.Call)]
    for call in reversed(stacks):
        match call:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr="stack"),
                args=[ast.ListComp(elt=value, generators=[ast.comprehension(target=ast.Name(id=row), iter=rows, ifs=[], is_async=0)])],
                keywords=[],
            ) if owner == function and isinstance(rows, ast.Name | ast.Attribute):
                code = f"{function}.vmap(lambda {row}: {syntax.text(place.file, value)})({syntax.text(place.file, rows)})"
                match value:
                    case ast.Call(func=called, args=[ast.Name(id=given)], keywords=[]) if given == row:
                        code = f"{function}.vmap({syntax.text(place.file, called)})({syntax.text(place.file, rows)})"
                advice = "Compute all rows at once."
                return [Fix(advice, Confidence.SAFE, edits=(Edit(place.file, syntax.region(place.file, call), code),))]
    return []
