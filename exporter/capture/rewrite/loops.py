"""Rewrites a Python loop whose number of iterations is data as a torch.while_loop."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence

from . import blocks, branches, scope
from .blocks import Rewrite
from .scope import Scope


@dataclasses.dataclass(frozen=True)
class _Loop:
    """The parts of a loop whose body becomes a function.

    Attributes:
        test: The condition for another iteration.
        statements: The body.
        before: The code that runs once, before the loop.
        counter: The loop variable with its start, its next value and its name after the loop; empty for a `while`.
    """

    test: str
    statements: Sequence[ast.stmt]
    before: tuple[str, ...] = ()
    counter: tuple[str, str, str] | None = None


def rewritten(where: Scope, statement: ast.For | ast.While) -> Rewrite | None:
    """The loop as a torch.while_loop; None if the source does not tell how."""
    region = where.region(statement)
    column = region.column or 1
    loop = _range(where, statement) if isinstance(statement, ast.For) else _while(where, statement)
    if loop is None or where.tensors is None or not scope.is_plain(loop.statements) or scope.has_return(loop.statements):
        return None
    # NOTE: the test comes first: it must read the values that the previous iteration has set.
    asked = [ast.Expr(statement.test)] if isinstance(statement, ast.While) else []
    carried, results = [], []
    for name in scope.stored(loop.statements):
        after = blocks.read_after(where, region, name)
        before = scope.read_first([*asked, *loop.statements], name)
        if not after and not before:
            continue
        if name not in where.tensors | where.numbers or (result := blocks.result(where, loop.statements, name)) is None:
            return None
        carried.append(name)
        results.append(result)
    if not carried:
        return None
    starts = [name if name in where.numbers else f"{name}.clone()" for name in carried]
    names, outputs = list(carried), list(carried)
    if loop.counter is not None:
        counter, start, following = loop.counter
        if counter in scope.stored(loop.statements):
            return None
        names.insert(0, counter)
        starts.insert(0, start)
        results.insert(0, following)
        outputs.insert(0, "_")
    nested = branches.nested(where, loop.statements)
    if nested is None:
        return None
    body = where.unused("body")
    lines = [blocks.body(where, loop.statements, column + 4, nested), f"return {_targets(results)}"]
    code = "".join(line + "\n" + " " * (column - 1) for line in loop.before) + blocks.function(body, names, lines, column)
    head = f"{_targets(outputs)} = "
    test = f"lambda {', '.join(names)}: {loop.test}"
    code += blocks.call(head, f"{where.torch}.while_loop", [test, body, blocks.tuple_of(starts)], column)
    return Rewrite(region, code, not blocks.changes_others(where, loop.statements))


def left_by(module: ast.Module, branch: ast.If) -> ast.For | ast.While | None:
    """The loop that `branch` ends, or whose iteration it ends, directly or by a flag; None if it does neither."""
    around = [node for node in ast.walk(module) if isinstance(node, ast.For | ast.While) and branch in ast.walk(node)]
    if not around:
        return None
    loop = max(around, key=lambda node: node.lineno)
    if _ends(branch):
        return loop
    flags = set(scope.stored([*branch.body, *branch.orelse]))
    tests = [node.test for node in ast.walk(loop) if isinstance(node, ast.While) or (isinstance(node, ast.If) and _ends(node))]
    return loop if any(flags & scope.loaded([test]).keys() for test in tests) else None


def _ends(branch: ast.If) -> bool:
    """Whether one way of `branch` leaves the loop or the iteration around it."""
    ends = [node for each in (*branch.body, *branch.orelse) for node in ast.walk(each)]
    inner = [node for each in ends if isinstance(each, ast.For | ast.While) for node in ast.walk(each)]
    return any(isinstance(node, ast.Return) or (isinstance(node, ast.Break | ast.Continue) and node not in inner) for node in ends)


def _targets(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) > 1 else blocks.tuple_of(names)


def _while(where: Scope, statement: ast.While) -> _Loop | None:
    test = where.predicate(statement.test) if where.asks_tensor(statement.test) else where.text(statement.test)
    return None if test is None or statement.orelse else _Loop(test, statement.body)


def _range(where: Scope, statement: ast.For) -> _Loop | None:
    match statement:
        case ast.For(target=ast.Name(id=target), iter=ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]), orelse=[]):
            pass
        case _:
            return None
    if any(isinstance(each, ast.Starred) for each in bounds) or blocks.read_after(where, where.region(statement), target):
        return None
    used = target in scope.loaded(statement.body)
    counter = target if used or target != "_" else where.unused("i")
    step = int(ast.literal_eval(bounds[2])) if len(bounds) == 3 and _is_int(bounds[2]) else 1
    if (len(bounds) == 3 and not _is_int(bounds[2])) or step == 0:
        return None
    start = "0" if len(bounds) == 1 else where.text(_number(bounds[0]))
    stop = _number(bounds[0] if len(bounds) == 1 else bounds[1])
    limit, before = where.text(stop), ""
    if not isinstance(stop, ast.Constant | ast.Name) or limit in scope.stored(statement.body):
        limit = where.unused("rounds" if len(bounds) == 1 else "stop")
        before = f"{limit} = {where.text(stop)}"
    following = f"{counter} {'+' if step > 0 else '-'} {abs(step)}"
    test = f"{counter} {'<' if step > 0 else '>'} {limit}"
    return _Loop(test, statement.body, (before,) if before else (), (counter, start, following))


def _number(value: ast.expr) -> ast.expr:
    """`value` without a conversion to a Python number: torch.while_loop also compares tensors."""
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return inner
        case ast.Call(func=ast.Name(id="int"), args=[inner], keywords=[]):
            return _number(inner)
    return value


def _is_int(node: ast.expr) -> bool:
    try:
        return type(ast.literal_eval(node)) is int
    except ValueError:
        return False
