"""Rewrites a Python loop that collects results in lists as a scan."""

from __future__ import annotations

import ast
import dataclasses
import re
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
        total: The number to which the iterations add the tensors; empty if they append them to a list.
        then: The statement that follows the loop; empty if none has to.
    """

    name: str
    item: str
    statement: ast.stmt
    value: ast.expr
    uses: tuple[Rewrite, ...]
    last: str = ""
    total: str = ""
    then: str = ""

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
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="insert"), args=[ast.Constant(value=0), value], keywords=[])
            ):
                uses = None if has_last else _uses(where, loop, name, "")
                if uses is None or name in (each.name for each in found):
                    return None
                flipped = f"{name} = {name}.flip(0)"
                found.append(Collected(name, where.unused(f"{name}_item"), statement, value, tuple(uses), then=flipped))
            case ast.Assign() | ast.AugAssign() if (added := _added(where, loop, statements, statement)) is not None:
                total, value = added
                name, last = where.unused(f"{total}_terms"), where.unused(f"{total}_last") if has_last else ""
                then = f"{total} = {total} + {name}.sum(0)" + (f" + {last}" if last else "")
                found.append(Collected(name, where.unused(f"{total}_term"), statement, value, (), last, total, then))
            case ast.Assign() | ast.If() if (joined := _joined(where, loop, statements, statement)) is not None:
                total, value, call, starts = joined
                name, last = where.unused(f"{total}_parts"), where.unused(f"{total}_last") if has_last else ""
                whole = tensors_of_lists.with_last(where, name, last, call) if last else tensors_of_lists.as_tensor(name, call)
                if whole is None:
                    return None
                dims = [*call.args[1:], *(each.value for each in call.keywords)]
                dim = where.text(dims[0]) if dims else "0"
                then = f"{total} = {where.torch}.cat([{total}, {whole}], {dim})" if starts else f"{total} = {whole}"
                found.append(Collected(name, where.unused(f"{total}_part"), statement, value, (), last, total, then))
    return found


def _joined(
    where: Scope, loop: ast.For | ast.While, statements: Sequence[ast.stmt], statement: ast.stmt
) -> tuple[str, ast.expr, ast.Call, bool] | None:
    """The tensor to which each iteration joins another one, as in `y = torch.cat([y, part])`, with the other one and the call.

    The last result is whether there is a tensor before the loop; otherwise there is None. None if the statement does something else.
    """
    test: ast.expr | None
    first: ast.expr | None
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.IfExp(test=test, body=first, orelse=ast.Call() as call)):
            pass
        case ast.If(
            test=test,
            body=[ast.Assign(targets=[ast.Name(id=name)], value=first)],
            orelse=[ast.Assign(targets=[ast.Name(id=other)], value=ast.Call() as call)],
        ) if other == name:
            pass
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
            test, first = None, None
        case _:
            return None
    if test is not None and ast.unparse(test) != f"{name} is None":
        return None
    match call.args[:1]:
        case [ast.List(elts=[ast.Name(id=one), value]) | ast.Tuple(elts=[ast.Name(id=one), value])] if one == name:
            pass
        case _:
            return None
    known = sum(isinstance(node, ast.Name) and node.id == name for each in statements for node in ast.walk(each))
    own = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement))
    starts = name in (where.tensors or ())
    same = first is None or ast.unparse(first) == ast.unparse(value)
    start = _before(where, loop, name)
    nothing = isinstance(start, ast.Constant) and start.value is None
    if not (tensors_of_lists.joins(call, where) and same and known == own and name not in scope.loaded([value]) and starts != nothing):
        return None
    return (name, value, call, starts) if starts == (first is None) else None


def _added(
    where: Scope, loop: ast.For | ast.While, statements: Sequence[ast.stmt], statement: ast.Assign | ast.AugAssign
) -> tuple[str, ast.expr] | None:
    """The number before the loop to which each iteration adds a tensor, with the tensor; None if the statement does something else.

    The first sum makes a tensor of the number, which no loop of torch can do.
    """
    match statement:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
            pass
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(left=ast.Name(id=one), op=ast.Add(), right=value)) if one == name:
            pass
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(left=value, op=ast.Add(), right=ast.Name(id=one))) if one == name:
            pass
        case _:
            return None
    known = sum(isinstance(node, ast.Name) and node.id == name for each in statements for node in ast.walk(each))
    own = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement))
    computed = any(isinstance(node, ast.Call) for node in ast.walk(value)) or where.is_tensor(value)
    match _before(where, loop, name):
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            alone = known == own and name not in scope.loaded([value]) and name not in (where.tensors or ())
            return (name, value) if alone and computed else None
    return None


def _before(where: Scope, loop: ast.For | ast.While, name: str) -> ast.expr | None:
    """The value that the last statement before the loop which sets `name` gives to it; None if that is not known."""
    found: list[tuple[int, ast.expr | None]] = [(0, None)]
    for node in ast.walk(where.function):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                found.append((node.lineno, value))
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
                pairs = zip(targets, values, strict=True)
                found += [(node.lineno, value) for each, value in pairs if isinstance(each, ast.Name) and each.id == name]
            case ast.stmt() if name in scope.stored([node]) and not isinstance(
                node, ast.FunctionDef | ast.If | ast.For | ast.While | ast.With
            ):
                found.append((node.lineno, None))
    return max((each for each in found if each[0] < loop.lineno), key=lambda each: each[0])[1]


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
    rewrites: list[Rewrite] = []
    after = [node for node in nodes if id(node) not in inside and node.lineno > statement.lineno]
    for node in after:
        if tensors_of_lists.makes_tensor(node, where) and (flipped := _flipped(scope.listed(node.args[0]), name)) is not None:
            items = f"{name}.flip(0)" if flipped else name
            text = tensors_of_lists.with_last(where, name, last, node) if last else tensors_of_lists.as_tensor(items, node)
            if text is None or (last and flipped):
                return None
            rewrites.append(Rewrite(where.region(node), text))
        elif isinstance(node, ast.Subscript) and ast.unparse(node) == f"{name}[-1]":
            rewrites.append(Rewrite(where.region(node), last or f"{name}[-1]"))
        elif ast.unparse(node) == f"{name}.reverse()" and not last:
            rewrites.append(Rewrite(where.region(node), f"{name} = {name}.flip(0)"))
    known = sum(isinstance(node, ast.Name) and node.id == name for node in nodes)
    return rewrites if rewrites and known == others + len(rewrites) + (renamed is not None) else None


def _flipped(items: ast.expr, name: str) -> bool | None:
    """Whether `items` are those of the list `name` in the opposite order; None if they are something else."""
    if isinstance(items, ast.Name) and items.id == name:
        return False
    return True if ast.unparse(items) in (f"{name}[::-1]", f"reversed({name})") else None


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
    numbers = f"{where.torch}.arange({loop.numbers}{_device(loop, carried, inside)})"
    return code + blocks.call(head, f"{where.torch}._higher_order_ops.scan", [body, initial, numbers], indent)


def _device(loop: Loop, carried: Mapping[str, str], lines: Sequence[str]) -> str:
    """The argument that makes the loop's numbers on the device of the tensors that an iteration indexes with them."""
    own = scope.stored(loop.statements) - carried.keys()
    owners = re.findall(rf"([A-Za-z_][\w.]*)\.index_(?:select|copy)\([^()]*\(?\b{loop.number}\b", "\n".join(lines))
    return next((blocks.on_device_of(owner) for owner in owners if owner.split(".")[0] not in own), "")
