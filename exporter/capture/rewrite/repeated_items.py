"""Rewrites a tensor of a list that holds one item as often as a size says, such as `torch.stack([x] * n)`, as a repetition."""

from __future__ import annotations

import ast

from . import collecting_loops, iterations
from .blocks import Rewrite
from .scope import Scope


def rewritten(where: Scope, call: ast.Call) -> Rewrite | None:
    """The call, without a list whose length is a size; None if it makes no tensor of such a list."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=where.torch), attr=name), args=[items, *rest]):
            item, number = _repeated(items)
        case _:
            return None
    if item is None or number is None or not (name == "tensor" or collecting_loops.makes_tensor(call, where)):
        return None
    count, one = iterations.count(where, number), f"{where.torch}.stack([{where.text(item)}])"
    if name == "tensor":
        options = [*map(where.text, rest), *(f"{each.arg}={where.text(each.value)}" for each in call.keywords)]
        one = f"{where.torch}.tensor({', '.join([f'[{where.text(item)}]', *options])})"
    all_of = f"{one}.repeat_interleave({count}, 0)"
    code = all_of if name == "tensor" else collecting_loops.as_tensor(all_of, call)
    return None if code is None else Rewrite(where.region(call), code)


def _repeated(items: ast.expr) -> tuple[ast.expr | None, ast.expr | None]:
    """The item and the number of a list such as `[x] * n` or `[x for _ in range(n)]`."""
    match items:
        case (
            ast.BinOp(left=ast.List(elts=[item]), op=ast.Mult(), right=number)
            | ast.BinOp(left=number, op=ast.Mult(), right=ast.List(elts=[item]))
        ):
            return item, number
        case ast.ListComp(
            elt=ast.Name(id=name) as item,
            generators=[
                ast.comprehension(
                    target=ast.Name(id=counter), iter=ast.Call(func=ast.Name(id="range"), args=[number], keywords=[]), ifs=[], is_async=0
                )
            ],
        ) if name != counter:
            return item, number
    return None, None
