"""Runs statements whether or not they are chosen, and keeps what they change only if they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from onnxplain.diagnostics import Region
from onnxplain.source import syntax

from . import blocks, scope
from .blocks import Rewrite
from .scope import Scope

_PARTIAL = frozenset({"out", "inplace"})
"""Keywords by which a function changes what it is given."""
_OF_SOME = frozenset({"amax", "amin", "aminmax", "argmax", "argmin", "kthvalue", "max", "median", "min", "mode", "quantile", "topk"})
"""Functions that refuse tensors without elements."""
_PLACES = frozenset({"nonzero", "where", "argwhere"})
"""Functions that return the places where a mask is true."""
_PUTTING = frozenset({"index_put", "index_put_"})
_PUTTING_ALONG = frozenset({"index_copy", "index_copy_", "index_add", "index_add_"})
"""Methods that put values at places, without and with a dim."""


def changed(where: Scope, region: Region, statements: Sequence[ast.stmt]) -> list[str] | None:
    """The variables by which statements tell later code something; None if there may be other ways, or if one may hold no tensor before.

    Args:
        where: The function around them.
        region: The branch that they belong to, or the loop whose iteration they end.
        statements: The statements.
    """
    names = list(_written(statements))
    if None in names or not _is_plain(statements) or blocks.changes_others(where, statements):
        return None
    outer = [
        name
        for name in dict.fromkeys((*scope.stored(statements), *filter(None, names)))
        if name in names or scope.read_first(statements, name) or blocks.read_after(where, region, name)
    ]
    return outer if outer and set(outer) <= (where.tensors or frozenset()) else None


def takes_empty(where: Scope, statements: Sequence[ast.stmt], numbers: str = "") -> bool:
    """Whether no statement is known to raise an error for tensors without elements.

    Args:
        where: The function around them.
        statements: The statements.
        numbers: The name of a list of numbers.
    """
    nodes = [node for each in statements for node in ast.walk(each)]
    called = (syntax.last_name(node.func) for node in nodes if isinstance(node, ast.Call))
    items = [node for node in nodes if isinstance(node, ast.Subscript) and _is_item(node.slice)]
    single = any(not (isinstance(node.value, ast.Name) and node.value.id == numbers) and not _is_shape(node.value) for node in items)
    if single or any(name in _OF_SOME for name in called) or any(isinstance(node, ast.Assert) for node in nodes):
        return False
    return all(_is_tied(where, index, value) for node in nodes for index, value in _put(node))


def _is_item(index: ast.expr) -> bool:
    """Whether an index is that of a single element of the first dim."""
    match index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index:
        case ast.Constant(value=int()) | ast.UnaryOp(op=ast.USub()):
            return True
    return False


def _put(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What puts values at places of a tensor: the index and the values."""
    match node:
        case ast.Assign(targets=[ast.Subscript(slice=index)], value=value):
            yield index, value
        case ast.Call(func=ast.Attribute(attr=name), args=[index, value, *_]) if name in _PUTTING:
            yield index, value
        case ast.Call(func=ast.Attribute(attr=name), args=[_, index, value, *_]) if name in _PUTTING_ALONG:
            yield index, value


def _is_tied(where: Scope, index: ast.expr, value: ast.expr) -> bool:
    """Whether values have as many elements as the index selects, be it none: they are made with it, or of no other tensor."""
    made = [each for each in ast.walk(where.function) if isinstance(each, ast.Assign | ast.AugAssign | ast.AnnAssign)]
    sources = {
        name: [each.value for each in made if name in scope.stored([each]) and each.value is not None] for name in scope.stored(made)
    }
    selecting = {*scope.loaded([index])}
    selecting |= {*scope.loaded(each for name in selecting for each in sources.get(name, ()) if _finds_places(each))}
    waiting, reached = _of_data(value), set[str]()
    while waiting:
        if (name := waiting.pop()) not in reached:
            reached.add(name)
            waiting += [inner for each in sources.get(name, ()) for inner in _of_data(each)]
    constant = where.locals.isdisjoint(reached - {"self"})
    return constant or not selecting.isdisjoint(reached - {"self"})


def _finds_places(node: ast.expr) -> bool:
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    return any(syntax.last_name(call.func) in _PLACES for call in calls)


def _of_data(node: ast.expr) -> list[str]:
    """The names that are read in `node`, without those of which it only takes the dtype or the device."""
    plain = {id(each.value) for each in ast.walk(node) if isinstance(each, ast.Attribute) and each.attr in ("dtype", "device")}
    return [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and id(each) not in plain]


def _is_shape(node: ast.expr) -> bool:
    """Whether `node` is the shape of a tensor, which has an item for each dim."""
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def around(where: Scope, statements: Sequence[ast.stmt], chosen: str, kept: dict[str, str]) -> list[Rewrite]:
    """The code before and after statements that keeps what they change only if `chosen` holds.

    Args:
        where: The function around them.
        statements: The statements, which begin a line.
        chosen: The name of a tensor of dtype bool.
        kept: The variables that they change, with names for what these hold before.
    """
    set_anew = scope.stored(statements)
    first, last = where.region(statements[0]), where.region(statements[-1])
    indent = "\n" + " " * first.offset
    before = "".join(f"{old} = {name}.clone(){indent}" for name, old in kept.items())
    # NOTE: torch.where would broadcast and convert a result of another shape or dtype.
    alike = [f"assert ({name}.shape, {name}.dtype) == ({old}.shape, {old}.dtype)" for name, old in kept.items() if name in set_anew]
    after = "".join(
        indent + line for line in (*alike, *(f"{name} = {where.torch}.where({chosen}, {name}, {old})" for name, old in kept.items()))
    )
    return [
        Rewrite(Region(first.line, first.column, first.line, first.column), before),
        Rewrite(Region(last.last_line, last.end_column, last.last_line, last.end_column), after),
    ]


def _is_plain(statements: Sequence[ast.stmt]) -> bool:
    """Whether all statements set local variables or change tensors in place."""
    calls = [node for each in statements for node in ast.walk(each) if isinstance(node, ast.Call)]
    silent = not any(argument.arg in _PARTIAL or argument.arg is None for call in calls for argument in call.keywords)
    plain = [each for each in statements if not (isinstance(each, ast.Expr) and _in_place(each.value))]
    return silent and scope.is_plain(plain, items=True) and not scope.has_return(plain)


def _written(statements: Sequence[ast.stmt]) -> Iterator[str | None]:
    """The names of tensors that change in place; None for other tensors, and for parts of them."""
    for node in (each for statement in statements for each in ast.walk(statement)):
        match node:
            case ast.Call(func=ast.Attribute(value=owner)) if _in_place(node):
                yield owner.id if isinstance(owner, ast.Name) else None
            case ast.Subscript(value=owner, ctx=ast.Store()):
                yield owner.id if isinstance(owner, ast.Name) else None


def _in_place(node: ast.AST) -> bool:
    """Whether `node` is a call of a method that changes its tensor, such as `index_add_`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and blocks.is_in_place(node.func.attr)
