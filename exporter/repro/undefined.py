"""Names that a script reads and nothing in it binds."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_KNOWN = frozenset((*vars(builtins), "__file__", "__name__", "__class__"))


def undefined(tree: ast.Module) -> set[tuple[str, str]]:
    """The function that reads each such name, and the name. Where in a function it is bound does not count."""
    return {*_undefined(tree, "", _KNOWN)}


def _undefined(scope: ast.AST, function: str, outside: frozenset[str]) -> Iterator[tuple[str, str]]:
    inner: list[ast.AST] = []
    nodes = [*_within(scope, inner)]
    known = outside.union(name for node in nodes for name in _bound(node))
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in known:
            yield function, node.id
    # NOTE: a function in a class does not see the names of the class. To let it costs a run at most.
    for each in inner:
        yield from _undefined(each, f"{function}.{getattr(each, 'name', '')}", known)


def _within(scope: ast.AST, inner: list[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a scope. Those of functions in it are left out, and `inner` gets the functions."""
    waiting = [*ast.iter_child_nodes(scope)]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, _FUNCTIONS):
            inner.append(node)
            # NOTE: decorators and defaults belong to the scope around.
            waiting += [*getattr(node, "decorator_list", []), *node.args.defaults, *filter(None, node.args.kw_defaults)]
        else:
            waiting += ast.iter_child_nodes(node)


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.Import() | ast.ImportFrom():
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
