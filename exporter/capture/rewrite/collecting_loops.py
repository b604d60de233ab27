"""Rewrites a Python loop that collects results in lists as a scan."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from onnxplain.diagnostics import Region

from . import blocks, scope, tensors_of_lists
from .blocks import Rewrite
from .iterations import Loop
from .scope import Scope


@dataclasses.dataclass(frozen=True)
class Collected:
    """A list to which each iteration appends a tensor.

    Attributes:
        name: Its name.
        item: The name of the tensor that an iteration appends.
        statement: The statement that appends it.
        value: The tensor.
        uses: What the calls that make one tensor of the list become, when the list is that tensor already.
        last: The name of the tensor that a last iteration, which comes after the others, appends; empty if there is none.
    """

    name: str
    item: str
    statement: ast.stmt
    value: ast.expr
    uses: tuple[Rewrite, ...]
    last: str = ""

    def rewrites(self, where: Scope, item: str) -> list[Rewrite]:
        """The statement as one that sets `item`."""
        whole, value = where.region(self.statement), where.region(self.value)
        before = Region(whole.line, whole.column, value.line, value.column)
        after = Region(value.last_line, value.end_column, whole.last_line, whole.end_column)
        return [Rewrite(before, f"{item} = "), Rewrite(after, "")]


def of(where: Scope, loop: ast.For | ast.While, statements: Sequence[ast.stmt], *, has_last: bool) -> list[Collected] | None:
    """The lists that a loop fills; None if it fills one in another way, or if something else reads it.

    Args:
        where: The function around it.
        loop: The loop.
        statements: Those of an iteration.
        has_last: Whether a last iteration comes after the others.
    """
    found: list[Collected] = []
    for statement in statements:
        match statement:
            case (
                ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value], keywords=[]))
                | ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=ast.List(elts=[value]))
            ):
                last = where.unused(f"{name}_last") if has_last else ""
                uses = _uses(where, loop, name, last)
                if uses is None or name in (each.name for each in found):
                    return None
                found.append(Collected(name, where.unused(f"{name}_item"), statement, value, tuple(uses), last))
    return found


def _uses(where: Scope, loop: ast.For | ast.While, name: str, last: str) -> list[Rewrite] | None:
    """What the calls that make one tensor of the list `name` become; None if the list is used in another way."""
    other_ways = _other_ways(where, loop)
    made = [
        node for node in ast.walk(where.function) if id(node) not in other_ways and _is_empty_list(node, name) and node.lineno < loop.lineno
    ]
    # NOTE: it is named where it is made, where an iteration appends to it, and in the calls.
    return uses_after(where, loop, name, others=2, last=last) if len(made) == 1 else None


def _is_empty_list(node: ast.AST, name: str) -> TypeGuard[ast.Assign]:
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.List(elts=[])):
            return target == name
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            return any(_is_empty_list(ast.Assign([one], value), name) for one, value in zip(targets, values, strict=True))
    return False


def uses_after(where: Scope, statement: ast.stmt, name: str, others: int, last: str = "") -> list[Rewrite] | None:
    """What the calls that make one tensor of a list become after the statement that makes it. `last` is the name of a last item.

    None if the function has the name elsewhere than in these calls and in `others` other places, before it gives the name to such a tensor.
    """
    inside, other_ways = {id(node) for node in ast.walk(statement)}, _other_ways(where, statement)
    renamed = _renamed(where, statement, name)
    end = None if renamed is None else renamed.end_lineno
    nodes = [
        node
        for node in ast.walk(where.function)
        if isinstance(node, ast.expr) and id(node) not in other_ways and (end is None or node.lineno <= end)
    ]
    calls = [
        node for node in nodes if id(node) not in inside and tensors_of_lists.makes_tensor(node, where) and node.lineno > statement.lineno
    ]
    calls = [call for call in calls if isinstance(given := scope.listed(call.args[0]), ast.Name) and given.id == name]
    known = sum(isinstance(node, ast.Name) and node.id == name for node in nodes)
    if not calls or known != others + len(calls) + (renamed is not None):
        return None
    texts = [tensors_of_lists.with_last(where, name, last, call) if last else tensors_of_lists.as_tensor(name, call) for call in calls]
    rewrites = [Rewrite(where.region(call), text) for call, text in zip(calls, texts, strict=True) if text is not None]
    return rewrites if len(rewrites) == len(calls) else None


def _other_ways(where: Scope, statement: ast.stmt) -> set[int]:
    """The nodes of the ways of branches that are not taken where `statement` runs."""
    around = [node for node in ast.walk(where.function) if isinstance(node, ast.If) and statement in ast.walk(node)]
    ways = [node.orelse if any(statement in ast.walk(each) for each in node.body) else node.body for node in around]
    return {id(node) for way in ways for each in way for node in ast.walk(each)}


def _renamed(where: Scope, statement: ast.stmt, name: str) -> ast.Assign | None:
    """The statement behind `statement` that gives `name` to something else, as in `parts = torch.cat(parts)`."""
    for each in blocks.following(where, where.region(statement)):
        match each:
            case ast.Assign(targets=[ast.Name(id=target)]) if target == name:
                return each
    return None


def scan(
    where: Scope,
    loop: Loop,
    lists: Sequence[Collected],
    carried: Mapping[str, str],
    starts: Sequence[str],
    lines: Sequence[str],
    indent: int,
) -> str | None:
    """The loop as a scan over its numbers.

    Args:
        where: The function around it.
        loop: Its parts.
        lists: The lists that it fills.
        carried: The variables that an iteration takes from the one before, with their values after it.
        starts: Their values before the loop.
        lines: The lines of an iteration.
        indent: The indentation of the loop.
    """
    if loop.counter is None:
        return None
    counter = loop.counter[0]
    # NOTE: a scan needs something to carry.
    unused = where.unused("nothing")
    names = list(carried) or [unused]
    results = [*carried.values()] or [f"{unused}.clone()"]
    state, body = where.unused("state"), where.unused("body")
    items = [f"{each.item}.clone()" for each in lists]
    inside = [f"{blocks.tuple_of(names)} = {state}", *lines]
    code = blocks.function(body, [state, counter], [*inside, f"return {blocks.tuple_of(results)}, {blocks.tuple_of(items)}"], indent)
    head = f"{blocks.tuple_of(names)}, {blocks.tuple_of([each.name for each in lists])} = "
    initial = blocks.tuple_of(starts or [f"{where.torch}.zeros(())"])
    return code + blocks.call(
        head, f"{where.torch}._higher_order_ops.scan", [body, initial, f"{where.torch}.arange({loop.numbers})"], indent
    )
