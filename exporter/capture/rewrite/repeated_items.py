"""Rewrites a tensor of a list that holds one item as often as a size says, such as `torch.stack([x] * n)`, as a repetition."""

from __future__ import annotations

import ast

from . import iterations, scope, tensors_of_lists
from .blocks import Rewrite
from .scope import Scope


def rewritten(where: Scope, call: ast.Call) -> list[Rewrite] | None:
    """The call, without a list whose length is a size; None if it makes no tensor of such a list."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=where.torch), attr="tensor"), args=[items, *rest]):
            item, number = _repeated(items)
            options = [*map(where.text, rest), *(f"{each.arg}={where.text(each.value)}" for each in call.keywords)]
            if item is None or number is None:
                return None
            one = f"{where.torch}.tensor({', '.join([f'[{where.text(item)}]', *options])})"
            return [Rewrite(where.region(call), f"{one}.repeat_interleave({iterations.count(where, number)}, 0)")]
        case _ if not tensors_of_lists.makes_tensor(call, where):
            return None
    if (all_of := _tensor(where, call.args[0], call)) is not None:
        return [Rewrite(where.region(call), all_of)]
    return _parts(where, call.args[0], call) if tensors_of_lists.joins(call, where) else None


def _tensor(where: Scope, items: ast.expr, call: ast.Call) -> str | None:
    """What `call` makes of `items`; None if they are no item that is repeated."""
    item, number = _repeated(scope.listed(items))
    if item is None or number is None:
        return None
    repeated = f"{where.torch}.stack([{where.text(item)}]).repeat_interleave({iterations.count(where, number)}, 0)"
    return tensors_of_lists.as_tensor(repeated, call)


def _parts(where: Scope, items: ast.expr, call: ast.Call) -> list[Rewrite] | None:
    """The lists with repeated items that `items` consists of, each as a list of one tensor; None if there is none."""
    match items:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [*(_parts(where, left, call) or ()), *(_parts(where, right, call) or ())]
        case ast.List(elts=elements):
            starred = [each for each in elements if isinstance(each, ast.Starred)]
            made = [(each, _tensor(where, each.value, call)) for each in starred]
            parts = [Rewrite(where.region(each), text) for each, text in made if text is not None]
        case _:
            text = _tensor(where, items, call)
            parts = [] if text is None else [Rewrite(where.region(items), f"[{text}]")]
    return parts or None


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
