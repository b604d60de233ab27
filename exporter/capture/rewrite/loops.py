"""Rewrites a Python loop whose number of iterations is a size, or data, as a torch.while_loop."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Mapping, Sequence

from onnxplain.diagnostics import Region
from onnxplain.source import syntax

from . import blocks, branches, collecting_loops, iterations, scope
from .blocks import Rewrite
from .collecting_loops import Collected
from .iterations import Loop
from .scope import Scope


def rewritten(where: Scope, statement: ast.For | ast.While, *, inner: bool = False) -> list[Rewrite] | None:
    """The loop as a torch.while_loop, or as a scan if it collects results in lists; None if the source does not tell how.

    Args:
        where: The function around it.
        statement: The loop.
        inner: Whether the loops that its body consists of are rewritten as well.
    """
    region = where.region(statement)
    indent = region.offset
    loop = iterations.of_for(where, statement) if isinstance(statement, ast.For) else _while(where, statement)
    if loop is None or where.tensors is None or len({each.lineno for each in loop.statements}) < len(loop.statements):
        return None
    end = early_end(loop.statements)
    if end is not None:
        loop = dataclasses.replace(loop, statements=loop.statements[:-1])
    within = dataclasses.replace(where, tensors=where.tensors | loop.rows.keys())
    lists = collecting_loops.of(within, statement, loop.statements, has_last=bool(loop.last))
    if lists is None or ((lists or loop.last) and end is not None) or scope.has_return(loop.statements):
        return None
    appending = [each.statement for each in lists]
    written = scope.written(loop.statements)
    if not scope.is_plain([each for each in loop.statements if each not in appending], items=True) or not written.keys() <= where.tensors:
        return None
    known = where.tensors | loop.rows.keys()
    inside = dataclasses.replace(where, tensors=known)
    carried = _carried(where, statement, loop, end, [each.total or each.name for each in lists])
    # NOTE: torch.cond also takes a comparison of numbers.
    replaced = branches.nested(dataclasses.replace(where, tensors=known | {loop.number} - {""}), loop.statements)
    selected = iterations.selected(inside, loop, scans=bool(lists))
    if inner and replaced is not None and selected is not None:
        replaced = None if lists else _with_inner(inside, loop, replaced, selected)
    stop = None if end is None else _stopping(inside, loop, end)
    if carried is None or replaced is None or selected is None or loop.number in carried or (end is not None and stop is None):
        return None
    if any(syntax.covers(branch.region, item.region) for branch in replaced for item in selected):
        return None
    in_place = iterations.written_otherwise(loop)
    after = _last(where, loop, lists, replaced, indent) if loop.last else ""
    after += "".join("\n" + " " * indent + each.then for each in lists if each.then)
    if loop.last and not lists and not carried.keys() <= written.keys() - in_place.keys():
        # NOTE: without any iteration, they stay what they are.
        return None
    selected += iterations.transposed(inside, loop)
    if loop.blocks is not None:
        selected += loop.blocks.in_whole_blocks(loop.statements)
    own = [
        *(f"{name} = {name}.clone()" for name in in_place),
        *(f"{name} = {row.read(scans=bool(lists))}" for name, row in loop.rows.items()),
    ]
    replaced += [*selected, *(rewrite for each in lists for rewrite in each.rewrites(where, each.item))]
    lines = [*own, blocks.body(where, loop.statements, indent + 4, replaced)]
    starts = {name: name if name in where.numbers else f"{name}.clone()" for name in carried}
    copied = _sharing(where, loop, carried)
    before = "".join(line + "\n" + " " * indent for line in (*loop.before, *(f"{name} = {name}.clone()" for name in copied)))
    exact = not blocks.changes_others(where, loop.statements) and not blocks.is_changed_later(where, region, [*carried, *copied])
    if lists:
        code = collecting_loops.scan(where, loop, lists, carried, list(starts.values()), lines, indent)
        return (
            None
            if code is None
            else [
                Rewrite(region, before + code + after, exact),
                *(use for each in lists for use in each.uses),
                *loop.parts,
            ]
        )
    if not carried:
        return None
    code = _while_loop(where, loop, carried, starts, lines, stop, indent)
    return [Rewrite(region, before + code + after, exact), *loop.parts]


def _sharing(where: Scope, loop: Loop, carried: Mapping[str, str]) -> list[str]:
    """The tensors that an iteration reads and that may share their data: torch refuses several of them in a loop (seen in 2.13)."""
    own = {*scope.stored(loop.statements), *carried, *loop.rows}
    read = [name for name in scope.loaded(loop.statements) if name in (where.tensors or ()) and name not in own]
    made = [node for node in ast.walk(where.function) if isinstance(node, ast.Assign | ast.AnnAssign)]
    shared = {name for node in made if scope.shares(node.value) for name in scope.stored([node])}
    may_share = [name for name in read if name in shared or name in scope.parameters([where.function])]
    return may_share if len(may_share) > 1 else []


def _last(where: Scope, loop: Loop, lists: Sequence[Collected], replaced: Sequence[Rewrite], indent: int) -> str:
    """The code of the last iteration, after the loop over the others. `replaced` are its branches."""
    assert loop.counter is not None
    last = [*replaced, *(rewrite for each in lists for rewrite in each.rewrites(where, each.last))]
    if loop.blocks is not None:
        last += loop.blocks.in_last_block(loop.statements)
    sets = [f"{loop.counter[0]} = {loop.last}", *(f"{name} = {end}" for name, end in loop.ends.items())]
    return "".join("\n" + " " * indent + line for line in [*sets, blocks.body(where, loop.statements, indent, last)])


def _while_loop(
    where: Scope, loop: Loop, carried: Mapping[str, str], starts: Mapping[str, str], lines: Sequence[str], stop: str | None, indent: int
) -> str:
    """The loop as a torch.while_loop.

    Args:
        where: The function around it.
        loop: Its parts.
        carried: The variables that an iteration takes from the one before, with their values after it.
        starts: Their values before the loop.
        lines: The lines of an iteration.
        stop: The condition at the end of an iteration that ends the loop, as a tensor.
        indent: The indentation of the loop.
    """
    names, first, results, outputs = list(carried), list(starts.values()), list(carried.values()), list(carried)
    if loop.counter is not None:
        counter, start, following = loop.counter
        for values, value in ((names, counter), (first, start), (results, following), (outputs, "_")):
            values.insert(0, value)
    test = loop.test
    if stop is not None:
        stopped = where.unused("stopped")
        lines = [*lines, f"{stopped} = {stop}"]
        for values, value in ((names, stopped), (first, f"{where.torch}.tensor(False)"), (results, stopped), (outputs, "_")):
            values.append(value)
        going_on = f"{where.torch}.scalar_tensor({loop.left}) > 0" if loop.left else test
        test = f"~{stopped}" if going_on == "True" else f"({going_on}) & ~{stopped}"
    body = where.unused("body")
    code = blocks.function(body, names, [*lines, f"return {blocks.targets(results)}"], indent)
    arguments = [f"lambda {', '.join(names)}: {test}", body, blocks.tuple_of(first)]
    return code + blocks.call(f"{blocks.targets(outputs)} = ", f"{where.torch}.while_loop", arguments, indent)


def _with_inner(inside: Scope, loop: Loop, replaced: Sequence[Rewrite], selected: Sequence[Rewrite]) -> list[Rewrite] | None:
    """`replaced` with the loops that the body of `loop` consists of; None if one of them cannot be rewritten."""
    within = dataclasses.replace(
        inside, tensors=branches.tensors_after(inside, loop.statements), numbers=inside.numbers | {loop.number} - {""}
    )
    made: list[Rewrite] = []
    for each in loop.statements:
        if isinstance(each, ast.For):
            rewrites = rewritten(within, each, inner=any(isinstance(one, ast.For) for one in each.body))
            if rewrites is None or len(rewrites) > 1:
                return None
            made += rewrites
    # NOTE: the text of an inner loop is made from the source as it is.
    if not made or any(syntax.covers(new.region, old.region) for new in made for old in (*replaced, *selected)):
        return None
    return [*replaced, *made]


def early_end(statements: Sequence[ast.stmt]) -> ast.If | None:
    """The `if test: break` that ends `statements`; None if they end in another way."""
    match statements:
        case [_, *_, ast.If(body=[ast.Break()], orelse=[]) as branch]:
            return branch
    return None


def _stopping(where: Scope, loop: Loop, end: ast.If) -> str | None:
    inside = dataclasses.replace(where, tensors=branches.tensors_after(where, loop.statements))
    known = not loop.number or loop.number not in scope.loaded([end.test])
    return inside.predicate(end.test) if known and inside.asks_tensor(end.test) else None


def run_through(where: Scope, statement: ast.For, end: ast.If) -> list[Rewrite] | None:
    """A loop with a fixed number of iterations that data ends early, as one that goes on and keeps its results.

    None if the source does not tell how.
    """
    statements = statement.body[:-1]
    if statement.orelse or where.tensors is None or not scope.is_plain(statements) or scope.has_return(statements):
        return None
    if any(isinstance(node, ast.AugAssign) for each in statements for node in ast.walk(each)):
        return None
    inside = dataclasses.replace(where, tensors=branches.tensors_after(where, statements))
    carried = _carried(where, statement, Loop("", statements), end)
    stop = inside.predicate(end.test) if inside.asks_tensor(end.test) else None
    if not carried or stop is None or not carried.keys() <= where.tensors:
        return None
    stopped, torch = where.unused("stopped"), where.torch
    kept = {name: where.unused(f"{name}_before") for name in carried}
    loop, first, last = (where.region(each) for each in (statement, statements[0], end))
    indent = "\n" + " " * first.offset
    start = f"{stopped} = {torch}.tensor(False)\n" + " " * loop.offset
    before = indent.join([*(f"{before} = {name}" for name, before in kept.items()), ""])
    after = [
        *(f"{name} = {torch}.where({stopped}, {before}, {name})" for name, before in kept.items()),
        f"{stopped} = {stopped} | ({stop})",
    ]
    return [
        Rewrite(Region(loop.line, loop.column, loop.line, loop.column), start),
        Rewrite(Region(first.line, first.column, first.line, first.column), before),
        Rewrite(last, indent.join(after)),
    ]


def _carried(
    where: Scope, statement: ast.For | ast.While, loop: Loop, end: ast.If | None, lists: Sequence[str] = ()
) -> dict[str, str] | None:
    """The variables that an iteration takes from the one before or that outlive the loop, with their values after an iteration.

    Without `lists`, which the loop fills.
    """
    region = where.region(statement)
    written = scope.written(loop.statements)
    # NOTE: the test comes first: it must read the values that the previous iteration has set.
    asked = [ast.Expr(statement.test)] if isinstance(statement, ast.While) else []
    steps = [*asked, *loop.statements, *([] if end is None else [ast.Expr(end.test)])]
    carried: dict[str, str] = {}
    for name in dict.fromkeys((*scope.stored(loop.statements), *written)):
        if name in lists:
            continue
        before = name in written or scope.read_first(steps, name)
        if not before and not blocks.read_after(where, region, name):
            continue
        result = blocks.result(where, loop.statements, name)
        if result is None or name not in (where.tensors or frozenset()) | where.numbers:
            return None
        carried[name] = name if name in written else result
    return carried


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


def _while(where: Scope, statement: ast.While) -> Loop | None:
    test: str | None = where.text(statement.test)
    if where.asks_tensor(statement.test):
        # NOTE: what counts the iterations is a number, and the other part of the test a tensor.
        counted = where.numbers & scope.stored(statement.body).keys() & scope.loaded([statement.test]).keys()
        test = dataclasses.replace(where, tensors=(where.tensors or frozenset()) | counted).predicate(statement.test)
        for name in counted if test is not None else ():
            test = re.sub(rf"(?<![\w.]){name}\b", f"{where.torch}.scalar_tensor({name})", str(test))
    return None if test is None or statement.orelse else Loop(test, statement.body)
