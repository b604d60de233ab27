"""Fills a cache anew in an export, which an earlier run has filled for its size: `if self.mask.shape[0] != n: self.mask = ...`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from onnxplain.diagnostics import line_text
from onnxplain.source import syntax

from .blocks import Rewrite
from .scope import Scope


def rewritten(where: Scope, test: ast.expr) -> list[Rewrite] | None:
    """`test` with the answer that fills the cache in an export; None if it is no test of an `if` that decides about a cache.

    A dict, as in `if n not in self.masks: self.masks[n] = ...`, has no entry for what an export fills, as a symbolic size is no key.
    """
    branch = next((node for node in ast.walk(where.function) if isinstance(node, ast.If) and node.test is test), None)
    asked = set(_attributes(where, [test]))
    if branch is None or not asked:
        return None
    text, exports = where.text(test), f"{where.torch}.compiler.is_exporting()"
    if isinstance(test, ast.IfExp | ast.Lambda | ast.NamedExpr):
        text = f"({text})"
    fills = Rewrite(where.region(test), f"{exports} or {text}")
    if asked & set(_filled(where, branch.body)):
        return [fills]
    if (entries := _of_dict(where, branch, exports)) is not None:
        return [fills, *entries]
    match branch.body:
        case [ast.Return(value=ast.expr() as value)] if asked & set(_attributes(where, [value])):
            others: Iterable[ast.stmt] = where.function.body
        case _:
            others = branch.orelse
    if not asked & set(_filled(where, others)):
        return None
    return [Rewrite(where.region(test), f"not {exports} and {f'({text})' if isinstance(test, ast.BoolOp) else text}")]


def _of_dict(where: Scope, branch: ast.If, exports: str) -> list[Rewrite] | None:
    """The uses of an entry that `branch` adds to a dict of the module, without the dict in an export; None if it adds none."""
    match branch.test, branch.body:
        case (
            ast.Compare(left=key, ops=[ast.NotIn()], comparators=[ast.Attribute(value=ast.Name(id=owner)) as entries]),
            [*_, ast.Assign(targets=[ast.Subscript() as target], value=value) as added],
        ) if owner == _owner(where) and ast.unparse(target) == f"{ast.unparse(entries)}[{ast.unparse(key)}]":
            pass
        case _:
            return None
    around = [node for node in ast.walk(where.function) if ast.unparse(node) == ast.unparse(target) and node is not target]
    uses = [node for node in ast.walk(where.function) if isinstance(node, ast.Attribute) and ast.unparse(node) == ast.unparse(entries)]
    read = [node for node in around if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)]
    # NOTE: the test and the assignment use the dict as well.
    if len(uses) != len(read) + 2 or branch.orelse or not _is_alone(where, added):
        return None
    entry, text = where.unused("entry"), where.text(target)
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


def _is_alone(where: Scope, statement: ast.stmt) -> bool:
    """Whether nothing stands before a statement on its line."""
    region = where.region(statement)
    return not line_text(where.file, region.line)[: region.offset].strip()
