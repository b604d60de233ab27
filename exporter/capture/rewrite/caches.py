"""Fills a cache anew in an export, which an earlier run has filled for its size: `if self.mask.shape[0] != n: self.mask = ...`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from onnxplain.source import syntax

from .blocks import Rewrite
from .scope import Scope


def rewritten(where: Scope, test: ast.expr) -> Rewrite | None:
    """`test` with the answer that fills the cache in an export; None if it is no test of an `if` that decides about a cache."""
    branch = next((node for node in ast.walk(where.function) if isinstance(node, ast.If) and node.test is test), None)
    asked = set(_attributes(where, [test]))
    if branch is None or not asked:
        return None
    text, exports = where.text(test), f"{where.torch}.compiler.is_exporting()"
    if isinstance(test, ast.IfExp | ast.Lambda | ast.NamedExpr):
        text = f"({text})"
    if asked & set(_filled(where, branch.body)):
        return Rewrite(where.region(test), f"{exports} or {text}")
    match branch.body:
        case [ast.Return(value=ast.expr() as value)] if asked & set(_attributes(where, [value])):
            others: Iterable[ast.stmt] = where.function.body
        case _:
            others = branch.orelse
    if not asked & set(_filled(where, others)):
        return None
    return Rewrite(where.region(test), f"not {exports} and {f'({text})' if isinstance(test, ast.BoolOp) else text}")


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
            case ast.Attribute(value=ast.Name(id=owner), attr=name, ctx=ast.Store()) if owner == _owner(where):
                yield name
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=owner), attr="register_buffer"), args=[ast.Constant(value=str() as name), *_]
            ) if owner == _owner(where):
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=name)) if inner and owner == _owner(where):
                yield from _filled(where, _method(where, name), inner=False)


def _method(where: Scope, name: str) -> list[ast.stmt]:
    around = syntax.innermost(where.file, where.region(where.function.body[0]), ast.ClassDef)
    methods = () if around is None else (each for each in around.body if isinstance(each, ast.FunctionDef) and each.name == name)
    return next((each.body for each in methods), [])


def _owner(where: Scope) -> str:
    arguments = where.function.args
    return next((each.arg for each in (*arguments.posonlyargs, *arguments.args)), "")
