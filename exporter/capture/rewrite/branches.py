"""Rewrites a Python branch on data as a torch.cond."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence

from onnxplain.diagnostics import Region, line_text
from onnxplain.source import syntax

from . import blocks, scope
from .blocks import Rewrite
from .scope import Scope


@dataclasses.dataclass(frozen=True)
class _Arm:
    """One of the two ways of a branch.

    Attributes:
        statements: Its statements.
        result: The expression of its result; None if the statements return the result.
        value: The result, if there are no statements.
        copied: The tensors of which the statements set items. torch.cond refuses to change what it is given.
    """

    statements: Sequence[ast.stmt]
    result: str | None
    value: ast.expr | None = None
    copied: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class _Branch:
    """An `if`, or a conditional expression, with all code that depends on it."""

    region: Region
    head: str
    arms: tuple[_Arm, _Arm]
    exact: bool = True
    is_elif: bool = False
    names: tuple[str, ...] = ()
    after: str = ""


def rewritten(where: Scope, test: ast.expr, predicate: str | None) -> Rewrite | None:
    """The branch on `test` with `predicate` instead; None if the source does not tell how."""
    branch = None if predicate is None else _branch(where, test)
    if branch is None or predicate is None:
        return None
    floats = [_is_float(arm.value) for arm in branch.arms]
    if any(floats):
        # NOTE: a branch of torch.cond returns no float.
        chosen = [predicate, *(where.text(arm.value) for arm in branch.arms if arm.value is not None)]
        either = all(floats) and not branch.is_elif
        return Rewrite(branch.region, blocks.call(branch.head, f"{where.torch}.where", chosen, branch.region.offset)) if either else None
    within_else = branch.is_elif and not branch.head.startswith("return")
    indent = branch.region.offset + (4 if within_else else 0)
    operands = _operands(where, branch)
    if operands is None:
        return None
    before, functions = "", []
    for name, arm in zip(("when_true", "when_false"), branch.arms, strict=True):
        if not arm.statements:
            functions.append(f"lambda {', '.join(operands)}: {arm.result}" if operands else f"lambda: {arm.result}")
            continue
        inner = nested(where, arm.statements)
        if inner is None:
            return None
        lines = [f"{each} = {each}.clone()" for each in arm.copied]
        lines += [blocks.body(where, arm.statements, indent + 4, inner), *([] if arm.result is None else [f"return {arm.result}"])]
        functions.append(where.unused(name))
        before += blocks.function(functions[-1], operands, lines, indent)
    code = before + blocks.call(branch.head, f"{where.torch}.cond", [predicate, *functions, blocks.tuple_of(operands)], indent)
    code += "\n" + " " * indent + branch.after if branch.after else ""
    if within_else:
        code = "else:\n" + " " * indent + code
    return Rewrite(branch.region, code, branch.exact)


def by_element(where: Scope, test: ast.expr, predicate: str) -> str | None:
    """The same branch with torch.where, if both ways are single expressions."""
    branch = _branch(where, test)
    values = [arm.value for arm in branch.arms if arm.value is not None] if branch is not None else []
    if branch is None or len(values) < 2 or any(isinstance(value, ast.Tuple) for value in values):
        return None
    return blocks.call(branch.head, f"{where.torch}.where", [predicate, *map(where.text, values)], branch.region.offset)


def is_elif(file: str, statement: ast.stmt) -> bool:
    """Whether `statement` is the `elif` of another one."""
    region = syntax.region(file, statement)
    return line_text(file, region.line)[region.offset :].startswith("elif")


def _branch(where: Scope, test: ast.expr) -> _Branch | None:
    for node in ast.walk(where.function):
        if isinstance(node, ast.IfExp) and node.test is test:
            ways = (node.body, node.orelse)
            arms = [_Arm((), where.text(way) if _is_float(way) else scope.fresh(where.file, way), way) for way in ways]
            return None if None in (arms[0].result, arms[1].result) else _Branch(where.region(node), "", (arms[0], arms[1]))
        for statements in scope.bodies(node):
            for number, statement in enumerate(statements):
                if isinstance(statement, ast.If) and statement.test is test:
                    following = statements[number + 1 :]
                    return _returning(where, statement, following) or _assigning(where, statement) or _appending(where, statement)
    return None


def _returning(where: Scope, branch: ast.If, following: Sequence[ast.stmt]) -> _Branch | None:
    """An `if` of which both ways return, in it or after it."""
    elif_ = is_elif(where.file, branch)
    if elif_ and (above := _chain(where, branch)) is not None:
        first, following = above
        if not _all_return(first, branch):
            return None
    if not any(map(scope.has_return, (branch.body, branch.orelse))):
        return None
    true, false = [[*body] if scope.returns(body) else [*body, *following] for body in (branch.body, branch.orelse)]
    if not (scope.returns(true) and scope.returns(false) and scope.is_plain(true) and scope.is_plain(false)):
        return None
    whole = where.region(branch)
    reached = not (scope.returns(branch.body) and scope.returns(branch.orelse))
    end = where.region(following[-1]) if reached else whole
    region = Region(whole.line, whole.column, end.last_line, end.end_column)
    arms = [_returned(where, statements) for statements in (true, false)]
    if arms[0] is None or arms[1] is None:
        return None
    return _Branch(region, "return ", (arms[0], arms[1]), not blocks.changes_others(where, (*true, *false)), elif_)


def _returned(where: Scope, statements: Sequence[ast.stmt]) -> _Arm | None:
    for root in statements:
        for node in ast.walk(root):
            if isinstance(node, ast.Return) and (node.value is None or scope.fresh(where.file, node.value) is None):
                return None
    match statements:
        case [ast.Return(value=ast.expr() as value)] if nested(where, statements) == []:
            return _Arm((), scope.fresh(where.file, value), value)
    return _Arm(statements, None)


def _assigning(where: Scope, branch: ast.If) -> _Branch | None:
    """An `if` of which both ways only set variables and items of tensors."""
    both = (*branch.body, *branch.orelse)
    items = scope.written(both)
    if not scope.is_plain(both, items=True) or scope.has_return(both) or not items.keys() <= (where.tensors or frozenset()):
        return None
    region = where.region(branch)
    names = [name for name in dict.fromkeys((*scope.stored(both), *items)) if blocks.read_after(where, region, name)]
    before = None if where.tensors is None else where.tensors | where.numbers
    if not names or not all(before is None or name in before or _in_both(branch, name) for name in names):
        return None
    arms = [_assigned(where, statements, names) for statements in (branch.body, branch.orelse)]
    if arms[0] is None or arms[1] is None:
        return None
    exact = not blocks.changes_others(where, both) and not blocks.is_changed_later(where, region, names)
    head = f"{', '.join(names)} = "
    return _Branch(region, head, (arms[0], arms[1]), exact, is_elif(where.file, branch), tuple(names))


def _appending(where: Scope, branch: ast.If) -> _Branch | None:
    """An `if` of which both ways end with a tensor that they append to the same list."""
    arms: list[_Arm] = []
    lists: set[str] = set()
    for statements in (branch.body, branch.orelse):
        match statements:
            case [*first, ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value], keywords=[]))]:
                lists.add(name)
                arms.append(_Arm(first, scope.fresh(where.file, value), value))
    rest = [each for arm in arms for each in arm.statements]
    region = where.region(branch)
    outlive = any(blocks.read_after(where, region, name) for name in scope.stored(rest))
    if len(arms) != 2 or len(lists) != 1 or not scope.is_plain(rest) or scope.has_return(rest) or outlive:
        return None
    if any(arm.result is None or nested(where, [ast.Expr(arm.value)] if arm.value is not None else []) != [] for arm in arms):
        return None
    (name,) = lists
    item = where.unused(f"{name}_item")
    exact = not rest or not blocks.changes_others(where, rest)
    return _Branch(region, f"{item} = ", (arms[0], arms[1]), exact, is_elif(where.file, branch), after=f"{name}.append({item})")


def _assigned(where: Scope, statements: Sequence[ast.stmt], names: Sequence[str]) -> _Arm | None:
    match statements:
        case [] if len(names) == 1:
            result = blocks.result(where, (), names[0])
            return None if result is None else _Arm((), result, ast.Name(id=names[0], ctx=ast.Load()))
        case [ast.Assign(targets=[ast.Name(id=name)], value=value)] if names == [name] and nested(where, statements) == []:
            number = isinstance(value, ast.Constant) and type(value.value) is int
            result = where.text(value) if number or _is_float(value) else scope.fresh(where.file, value)
            return None if result is None else _Arm((), result, value)
        case [ast.AugAssign(target=ast.Name(id=name)) as statement] if names == [name]:
            return _Arm((), blocks.written_out(where, statement))
    results = [blocks.result(where, statements, name) for name in names]
    if None in results:
        return None
    copied = tuple(name for name in scope.written(statements) if scope.read_first(statements, name))
    return _Arm(statements, blocks.tuple_of([str(each) for each in results]) if len(names) > 1 else results[0], copied=copied)


def _is_float(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is float


def _in_both(branch: ast.If, name: str) -> bool:
    return scope.sets(branch.body, name) and scope.sets(branch.orelse, name)


def _operands(where: Scope, branch: _Branch) -> list[str] | None:
    """The function's tensors that the ways read; None if they read and set a variable that is not a tensor."""
    parts: list[ast.expr | ast.stmt] = []
    needed: set[str] = set()
    for arm in branch.arms:
        inside: list[ast.expr | ast.stmt] = [*arm.statements, *([] if arm.value is None else [arm.value])]
        if not inside and arm.result is not None:
            inside = [ast.parse(arm.result, mode="eval").body]
        parts += inside
        if arm.statements:
            kept = [ast.Expr(ast.Name(id=name, ctx=ast.Load())) for name in branch.names]
            steps = [*arm.statements, *kept]
            needed |= {name for name in (*scope.stored(arm.statements), *branch.names) if scope.read_first(steps, name)}
    own = scope.bound_inside(parts)
    read = [name for name in scope.loaded(parts) if name in where.locals and name not in own]
    read += [name for name in branch.names if name in needed and name not in read]
    set_inside = {name for arm in branch.arms for name in scope.stored(arm.statements)}
    tensors = [name for name in read if (name not in set_inside or name in needed) and (where.tensors is None or name in where.tensors)]
    numbers = [name for name in read if name in needed and name in set_inside and name not in tensors]
    return None if numbers else tensors


def nested(where: Scope, statements: Sequence[ast.stmt]) -> list[Rewrite] | None:
    """The rewritten branches on tensors within `statements`; None if the source does not tell how to rewrite one of them."""
    found: list[Rewrite] = []
    inside = dataclasses.replace(where, tensors=None if where.tensors is None else where.tensors | tensors_after(where, statements))
    for node in _down(statements):
        if isinstance(node, ast.If | ast.IfExp) and inside.asks_tensor(node.test):
            if any(syntax.covers(each.region, where.region(node)) for each in found):
                continue
            made = rewritten(inside, node.test, inside.predicate(node.test))
            if made is None:
                return None
            found.append(made)
    return found


def tensors_after(where: Scope, statements: Sequence[ast.stmt]) -> frozenset[str]:
    """The names of the variables that certainly hold tensors in `statements`."""
    names = where.tensors or frozenset()
    for node in _down(statements):
        if isinstance(node, ast.Assign) and dataclasses.replace(where, tensors=names).is_tensor(node.value):
            names |= set(scope.stored([node]))
    return names


def _down(statements: Sequence[ast.stmt]) -> list[ast.AST]:
    return [node for statement in statements for node in ast.walk(statement)]


def _chain(where: Scope, branch: ast.If) -> tuple[ast.If, Sequence[ast.stmt]] | None:
    """The `if` that an `elif` belongs to, and the statements after the chain."""
    for node in ast.walk(where.function):
        for statements in scope.bodies(node):
            for number, first in enumerate(statements):
                if isinstance(first, ast.If) and not is_elif(where.file, first) and branch in ast.walk(first):
                    each: ast.If | None = first
                    while each is not None and each is not branch:
                        each = each.orelse[0] if len(each.orelse) == 1 and isinstance(each.orelse[0], ast.If) else None
                    if each is branch:
                        return first, statements[number + 1 :]
    return None


def _all_return(first: ast.If, branch: ast.If) -> bool:
    """Whether all ways of a chain before `branch` return."""
    each = first
    while each is not branch:
        if not scope.returns(each.body):
            return False
        following = each.orelse[0]
        assert isinstance(following, ast.If)
        each = following
    return True
