"""Fills a cache anew in an export, which an earlier run has filled for its size: `if self.mask.shape[0] != n: self.mask = ...`."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Iterable, Iterator

from onnxplain.diagnostics import Location, Region, line_text
from onnxplain.source import syntax

from . import scope
from .blocks import Rewrite
from .scope import Scope


def rewritten(where: Scope, test: ast.expr) -> list[Rewrite] | None:
    """`test` with the answer that fills the cache in an export; None if it is no test of an `if` that decides about a cache.

    A dict, as in `if n not in self.masks: self.masks[n] = ...`, has no entry for what an export fills, as a symbolic size is no key.
    """
    branch = next((node for node in ast.walk(where.function) if isinstance(node, ast.If) and node.test is test), None)
    if branch is None:
        return None
    text, exports = where.text(test), _exports(where)
    if isinstance(test, ast.IfExp | ast.Lambda | ast.NamedExpr):
        text = f"({text})"
    anew = Rewrite(where.region(test), f"{exports} or {text}")
    if (entries := _of_dict(where, branch)) is not None:
        return [anew, *entries]
    way = _filling_way(where, branch)
    if not way:
        return None
    if way == branch.body:
        return [anew]
    return [Rewrite(where.region(test), f"not {exports} and {f'({text})' if isinstance(test, ast.BoolOp) else text}")]


def _filling_way(where: Scope, branch: ast.If) -> list[ast.stmt]:
    """The statements that fill a cache for which `branch` asks whether it fits; empty if there are none."""
    others = scope.loaded([branch.test]).keys() - {_owner(where), where.torch, *vars(builtins)}
    # NOTE: a test of the module's own attributes alone, such as `if self.first: self.first = False`, is about a state.
    asked = set(_attributes(where, [branch.test])) if others else set()
    if asked & set(_filled(where, branch.body)):
        return branch.body
    match branch.body:
        case [ast.Return(value=ast.expr() as value)] if asked & set(_attributes(where, [value])):
            way = [each for each in where.function.body if each is not branch]
        case _:
            way = branch.orelse
    return way if asked & set(_filled(where, way)) else []


def looked_up(where: Scope, place: Region) -> list[Rewrite] | None:
    """The lookup at `place` in a dict, `mask = self.masks.get(n)`, and the addition to it where it has no mask, without it in an export."""
    for statements in (each for node in ast.walk(where.function) for each in scope.bodies(node)):
        for lookup, branch in itertools.pairwise(statements):
            match lookup, branch:
                case (
                    ast.Assign(
                        targets=[ast.Name(id=name)],
                        value=ast.Call(func=ast.Attribute(value=entries, attr="get"), args=[key], keywords=[]) as value,
                    ),
                    ast.If(
                        test=ast.Compare(left=ast.Name(id=asked), ops=[ast.Is()], comparators=[ast.Constant(value=None)]),
                        body=[*_, ast.Assign(targets=[ast.Subscript() as target], value=ast.Name(id=added)) as addition],
                        orelse=[],
                    ),
                ) if name == asked == added and ast.unparse(target) == f"{ast.unparse(entries)}[{ast.unparse(key)}]":
                    if not syntax.covers(where.region(value), place) or not _is_alone(where, addition):
                        return None
                    indent = "\n" + " " * (where.region(addition).offset + 4)
                    return [
                        Rewrite(where.region(value), f"None if {_exports(where)} else {where.text(value)}"),
                        Rewrite(where.region(addition), f"if not {_exports(where)}:{indent}{where.text(addition)}"),
                    ]
    return None


def fills(place: Location) -> bool:
    """Whether the line at `place` fills a cache, in the branch that decides whether it fits or in a method that the branch calls."""
    around = None if place.region is None else syntax.innermost(place.file, place.region, ast.ClassDef)
    if around is None or place.region is None:
        return False
    methods = [node for node in around.body if isinstance(node, ast.FunctionDef)]
    for function in methods:
        where = Scope(place.file, function, syntax.name_of_torch(place.file) or "torch", None, frozenset())
        for branch in (node for node in ast.walk(function) if isinstance(node, ast.If)):
            way = _filling_way(where, branch)
            called = {name for each in way for node in ast.walk(each) if (name := _called(where, node)) is not None}
            filling = [*way, *(each for method in methods if method.name in called for each in method.body)]
            if any(syntax.covers(where.region(each), place.region) for each in filling):
                return True
    return False


def _exports(where: Scope) -> str:
    return f"{where.torch}.compiler.is_exporting()"


def _of_dict(where: Scope, branch: ast.If) -> list[Rewrite] | None:
    """The uses of an entry that `branch` adds to a dict, without the dict in an export; None if it adds none."""
    match branch.test, branch.body:
        case (
            ast.Compare(left=key, ops=[ast.NotIn()], comparators=[ast.Attribute() | ast.Name() as entries]),
            [*_, ast.Assign(targets=[ast.Subscript() as target], value=value) as added],
        ) if ast.unparse(target) == f"{ast.unparse(entries)}[{ast.unparse(key)}]":
            pass
        case _:
            return None
    whole = list(ast.walk(where.function))
    read = [node for node in whole if isinstance(node, ast.Subscript) and ast.unparse(node) == ast.unparse(target) and node is not target]
    uses = [node for node in whole if isinstance(node, type(entries)) and ast.unparse(node) == ast.unparse(entries)]
    # NOTE: the test and the addition use the dict as well.
    if (
        len(uses) != len(read) + 2
        or branch.orelse
        or not all(isinstance(node.ctx, ast.Load) for node in read)
        or not _is_alone(where, added)
    ):
        return None
    entry, text, exports = where.unused("entry"), where.text(target), _exports(where)
    indent = "\n" + " " * where.region(added).offset
    kept = f"{entry} = {where.text(value)}{indent}if not {exports}:{indent}    {text} = {entry}"
    return [
        Rewrite(where.region(added), kept),
        *(Rewrite(where.region(node), f"({entry} if {exports} else {text})") for node in read),
    ]


def _attributes(where: Scope, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The attributes of the module that are read, as `self.mask` and `hasattr(self, "mask")`."""
    for node in (node for each in nodes for node in ast.walk(each)):
        match node:
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == _owner(where):
                yield name
            case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[ast.Name(id=owner), ast.Constant(value=str() as name), *_]) if (
                owner == _owner(where)
            ):
                yield name


def _filled(where: Scope, statements: Iterable[ast.stmt], *, inner: bool = True) -> Iterator[str]:
    """The attributes of the module that statements set, themselves or in the methods that they call."""
    for node in (node for each in statements for node in ast.walk(each)):
        match node:
            case (
                ast.Attribute(value=ast.Name(id=owner), attr=name, ctx=ast.Store())
                | ast.Subscript(value=ast.Attribute(value=ast.Name(id=owner), attr=name), slice=ast.Constant(), ctx=ast.Store())
            ) if owner == _owner(where):
                yield name
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr="register_buffer"), args=[ast.Constant(value=str() as name), *_]
            ) if owner == _owner(where):
                yield name
            case _ if inner and (called := _called(where, node)) is not None:
                yield from _filled(where, _method(where, called), inner=False)


def _called(where: Scope, node: ast.AST) -> str | None:
    """The method of the module that `node` calls."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) if owner == _owner(where):
            return name
    return None


def _method(where: Scope, name: str) -> list[ast.stmt]:
    around = syntax.innermost(where.file, where.region(where.function.body[0]), ast.ClassDef)
    methods = () if around is None else (each for each in around.body if isinstance(each, ast.FunctionDef) and each.name == name)
    return next((each.body for each in methods), [])


def _owner(where: Scope) -> str:
    arguments = where.function.args
    return next((each.arg for each in (*arguments.posonlyargs, *arguments.args)), "")


def _is_alone(where: Scope, statement: ast.stmt) -> bool:
    """Whether nothing stands before a statement on its line."""
    region = where.region(statement)
    return not line_text(where.file, region.line)[: region.offset].strip()
