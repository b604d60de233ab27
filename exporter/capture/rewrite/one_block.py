"""Lets a Python loop over blocks, such as `for i in range(0, n, k)`, run its body without a count where the whole size is one block."""

from __future__ import annotations

import ast

from .blocks import Rewrite
from .scope import Scope


def rewritten(where: Scope, statement: ast.For) -> Rewrite | None:
    """What the loop iterates over, with a branch for a single block; None if the loop takes no blocks.

    The branch holds for every size if the size is the length, as in `range(0, n, n)`. Otherwise the export tells which sizes it is for.
    """
    match statement.iter:
        case ast.Call(func=ast.Name(id="range"), args=[first, stop, ast.Name() | ast.Attribute() as length], keywords=[]):
            begin, end = where.text(first), where.text(stop)
        case _:
            return None
    size = end if begin == "0" else f"{end} - {begin}"
    code = f"({begin},) if 0 < {size} <= {where.text(length)} else {where.text(statement.iter)}"
    return Rewrite(where.region(statement.iter), code)
