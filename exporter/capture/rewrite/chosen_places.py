"""Rewrites a Python loop over the places where a mask is true, such as the experts that a router chooses, as one over all places."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence

from onnxplain.diagnostics import Region
from onnxplain.source import syntax

from . import blocks, predicated, scope, shortcuts
from .blocks import Rewrite
from .scope import Scope


def rewritten(where: Scope, statement: ast.For) -> list[Rewrite] | None:
    """The loop as one over all places, in which an iteration at a place that the mask leaves out changes nothing.

    None if the source does not tell which variables an iteration changes. The iterations that are left out run as well, with tensors that
    may be empty.
    """
    place, found = statement.target, _mask(where, statement)
    if not isinstance(place, ast.Name) or statement.orelse or found is None or where.tensors is None:
        return None
    mask, before = found
    region = where.region(statement)
    heads = list(itertools.takewhile(lambda each: _is_head(each, place.id), statement.body))
    rest = statement.body[len(heads) :]
    chosen = where.unused("is_chosen")
    ends = {each: shortcuts.taken(where, each.test, ends=True) for each in rest if isinstance(each, ast.If) and _ends(each)}
    steps = [each for each in rest if each not in ends]
    if blocks.read_after(where, region, place.id) or mask in scope.stored(statement.body) or None in ends.values():
        return None
    changed = predicated.changed(where, region, steps)
    if changed is None or place.id in changed or blocks.changes_others(where, statement.body):
        return None
    number = place.id if any(isinstance(each, ast.Assign) for each in heads) else f"{place.id}[0]"
    # NOTE: a place is a list of numbers then, and not a tensor: the operators of the two differ, but not what an index means.
    nodes = [node for each in statement.body for node in ast.walk(each)]
    operands = [each for node in nodes if isinstance(node, ast.BinOp) for each in (node.left, node.right)]
    exact = not any(isinstance(each, ast.Name) and each.id == place.id for each in operands) and predicated.takes_empty(
        where, steps, place.id
    )
    header = f"{chosen}, {place.id} in zip({mask}.flatten() != 0, {where.torch}.ones_like({mask}).nonzero().tolist())"
    start, end = where.region(place), where.region(statement.iter)
    within = [
        *(Rewrite(where.region(each), f"{chosen} = {chosen} & ({condition})") for each, condition in ends.items()),
        *(Rewrite(where.region(each), number) for each in _conversions(steps, place.id)),
    ]
    if _has_more_places(where):
        within = [_tried(where, statement.body, within)]
    return [
        *before,
        Rewrite(Region(start.line, start.column, end.last_line, end.end_column), header, exact),
        *within,
        *predicated.around(where, statement.body, chosen, {name: where.unused(f"{name}_before") for name in changed}),
    ]


def _has_more_places(where: Scope) -> bool:
    """Whether a mask may have places that no input chooses, as in `one_hot(chosen, self.num_experts + 1)`."""
    calls = [node for node in ast.walk(where.function) if isinstance(node, ast.Call) and syntax.last_name(node.func) == "one_hot"]
    numbers = [each for call in calls for each in (*call.args[1:], *(keyword.value for keyword in call.keywords))]
    return any(isinstance(number, ast.BinOp) and isinstance(number.op, ast.Add) for number in numbers)


def _tried(where: Scope, statements: Sequence[ast.stmt], within: Sequence[Rewrite]) -> Rewrite:
    """The iteration, with `within` applied, which ends where there is no such expert: the model refuses inputs that choose it."""
    first, last = where.region(statements[0]), where.region(statements[-1])
    indent = " " * first.offset
    body = blocks.body(where, statements, first.offset + 4, within)
    code = f"try:\n{indent}    {body}\n{indent}except IndexError:\n{indent}    pass"
    return Rewrite(Region(first.line, first.column, last.last_line, last.end_column), code)


def _ends(branch: ast.If) -> bool:
    return len(branch.body) == 1 and isinstance(branch.body[0], ast.Continue) and not branch.orelse


def _conversions(statements: Sequence[ast.stmt], place: str) -> list[ast.Call]:
    """The calls that make a Python number of a place, which is one already or a list of one."""
    calls = [node for each in statements for node in ast.walk(each) if isinstance(node, ast.Call)]
    return [call for call in calls if ast.unparse(call) == f"{place}.item()"]


def _at(line: int, column: int | None) -> Region:
    return Region(line, column, line, column)


def _mask(where: Scope, statement: ast.For) -> tuple[str, list[Rewrite]] | None:
    """The name of the mask whose places the loop takes, and what gives it that name."""
    region = where.region(statement)
    match statement.iter:
        case ast.Name(id=rows):
            uses = [node for node in ast.walk(where.function) if isinstance(node, ast.Name) and node.id == rows]
            made = [node for node in ast.walk(where.function) if isinstance(node, ast.Assign) and rows in scope.stored(node.targets)]
            # NOTE: where it is made, and the loop.
            if len(made) != 1 or len(uses) != 2 or made[0].lineno > region.line or (mask := _of_nonzero(where, made[0].value)) is None:
                return None
            return rows, [Rewrite(where.region(made[0].value), where.text(mask))]
        case called if (mask := _of_nonzero(where, called)) is not None:
            name = where.unused("mask")
            indent = " " * region.offset
            return name, [Rewrite(_at(region.line, region.column), f"{name} = {where.text(mask)}\n{indent}")]
    return None


def _of_nonzero(where: Scope, value: ast.expr) -> ast.expr | None:
    """The mask of a call of `nonzero`."""
    match value:
        case ast.Call(func=ast.Attribute(attr="nonzero"), keywords=[_, *_]) if ast.unparse(value.keywords[0]) != "as_tuple=False":
            return None
        case ast.Call(func=ast.Attribute(value=ast.Name(id=where.torch), attr="nonzero"), args=[mask]):
            return mask
        case ast.Call(func=ast.Attribute(value=mask, attr="nonzero"), args=[]):
            return mask
    return None


def _is_head(statement: ast.stmt, place: str) -> bool:
    """Whether a statement at the start of an iteration only changes the loop's variable, or may leave the iteration."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name() | ast.Subscript()):
            return name == place
        case ast.If(body=[ast.Continue()], orelse=[]):
            return True
    return False
