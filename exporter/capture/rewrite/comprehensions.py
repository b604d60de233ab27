"""Rewrites a tensor of as many results as a size, such as `torch.stack([f(x[i]) for i in range(n)])`, as a scan."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence

from onnxplain.diagnostics import Region, line_text
from onnxplain.source import syntax

from . import blocks, branches, collecting_loops, iterations, scope, tensors_of_lists
from .blocks import Rewrite
from .collecting_loops import Collected
from .scope import Scope

_ONCE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
"""Statements whose expressions Python evaluates once, before anything else happens."""
_LISTS = ("list", "tuple")
_MAYBE = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""Expressions whose parts Python may evaluate never, or several times."""


def rewritten(where: Scope, listed: ast.ListComp | ast.GeneratorExp) -> list[Rewrite] | None:
    """The list as a scan, and the calls that make one tensor of it; None if the source does not tell how."""
    around = syntax.around(where.file, where.region(listed))
    statement = next((node for node in reversed(around) if isinstance(node, ast.stmt)), None)
    match listed.generators:
        case [ast.comprehension(ifs=[], is_async=0) as generator] if isinstance(statement, _ONCE):
            loop = iterations.of_comprehension(where, generator, listed.elt)
        case _:
            return None
    if loop is None or where.tensors is None or scope.stored([listed.elt]) or not scope.is_plain(loop.statements):
        return None
    within = around[around.index(statement) : around.index(listed)]
    known = where.tensors | loop.rows.keys()
    selected = iterations.selected(dataclasses.replace(where, tensors=known), loop, scans=True)
    chosen = branches.nested(dataclasses.replace(where, tensors=known | {loop.number}), loop.statements)
    found = _used(where, listed, statement, within, has_last=bool(loop.last))
    if loop.last and {loop.number, *loop.rows} & where.locals:
        # NOTE: the variables of a comprehension are its own.
        return None
    if selected is None or chosen is None or found is None or blocks.changes_others(where, loop.statements):
        return None
    if any(syntax.covers(branch.region, item.region) for branch in chosen for item in selected):
        return None
    selected += iterations.transposed(where, loop)
    if loop.blocks is not None:
        selected += loop.blocks.in_whole_blocks(loop.statements)
    result = _text(where, listed.elt, [*selected, *chosen])
    lines = [*(f"{name} = {row.read(scans=True)}" for name, row in loop.rows.items()), f"{found.item} = {result}"]
    region = where.region(statement)
    code = collecting_loops.scan(where, loop, [found], {}, [], lines, region.offset)
    if code is None:
        return None
    indent = "\n" + " " * region.offset
    if loop.last:
        sets = [f"{loop.number} = {loop.last}", *(f"{name} = {end}" for name, end in loop.ends.items())]
        ends = [] if loop.blocks is None else list(loop.blocks.in_last_block(loop.statements))
        code += "".join(f"{indent}{line}" for line in [*sets, f"{found.last} = {_text(where, listed.elt, [*chosen, *ends])}"])
    code = "".join(f"{line}{indent}" for line in loop.before) + code
    if _name(statement, listed) is None:
        region, code = Region(region.line, region.column, region.line, region.column), code + indent
    return [Rewrite(region, code), *found.uses, *loop.parts]


def _text(where: Scope, value: ast.expr, changes: Sequence[Rewrite]) -> str:
    text = blocks.spliced(syntax.source(where.file), where.region(value), changes)
    return f"({text})" if "\n" in text else text


def _name(statement: ast.stmt, listed: ast.ListComp | ast.GeneratorExp) -> str | None:
    """The name that a statement gives to the list; None if it does something else with it."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is listed:
            return name
    return None


def _used(
    where: Scope, listed: ast.ListComp | ast.GeneratorExp, statement: ast.stmt, within: Sequence[ast.AST], *, has_last: bool
) -> Collected | None:
    """The list, with the calls that make one tensor of it; None if it is used in another way.

    Args:
        where: The function around it.
        listed: The list.
        statement: The statement that it is a part of.
        within: The nodes from the statement to the list.
        has_last: Whether the list has an item more than the scan makes.
    """
    last = where.unused("last_result") if has_last else ""
    item, region = where.unused("result"), where.region(statement)
    own_line = not line_text(where.file, region.line)[: region.offset].strip()
    if not own_line or any(isinstance(node, _MAYBE) for node in within):
        return None
    if (name := _name(statement, listed)) is not None:
        uses = collecting_loops.uses_after(where, statement, name, others=1, last=last)
        return None if uses is None else Collected(name, item, statement, listed.elt, tuple(uses), last)
    call = next((node for node in reversed(within) if isinstance(node, ast.Call) and syntax.last_name(node.func) not in _LISTS), None)
    if call is None or not tensors_of_lists.makes_tensor(call, where) or scope.listed(call.args[0]) is not listed:
        return None
    name = where.unused("results")
    use = tensors_of_lists.with_last(where, name, last, call) if last else tensors_of_lists.as_tensor(name, call)
    return None if use is None else Collected(name, item, statement, listed.elt, (Rewrite(where.region(call), use),), last)
