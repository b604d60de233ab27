"""Uses a mask in an export for which a branch takes None if it leaves nothing out, as in `if not padding.any(): padding = None`."""

from __future__ import annotations

import ast

from onnxplain.source import syntax

from .blocks import Rewrite
from .scope import Scope, made_once

_OF_ALL = frozenset({"all", "allclose", "any", "count_nonzero", "equal", "max", "min", "sum"})
"""Functions that ask all elements of a mask."""


def rewritten(where: Scope, test: ast.expr) -> tuple[Rewrite, str] | None:
    """`test` with the answer for a mask that leaves something out, in an export, and what is true if it leaves nothing out.

    None if the branch on `test` does more than to take None, or if it does not ask all elements of a tensor.
    """
    owner = next((node for node in ast.walk(where.function) if getattr(node, "test", None) is test), None)
    none_if = _none_if(owner)
    if none_if is None or not where.asks_tensor(test) or not _asks_all(where, test):
        return None
    text, exports = where.text(test), f"{where.torch}.compiler.is_exporting()"
    if isinstance(test, ast.BoolOp | ast.IfExp):
        text = f"({text})"
    code = f"not {exports} and {text}" if none_if else f"{exports} or {text}"
    return Rewrite(where.region(test), code), text if none_if else f"not {text}"


def _none_if(owner: ast.AST | None) -> bool | None:
    """Which answer makes a branch take None, and do nothing else; None if none does."""
    match owner:
        case ast.If(body=[ast.Assign(targets=[ast.Name()], value=ast.Constant(value=None))], orelse=[]):
            return True
        case ast.If(body=[ast.Return(value=ast.Constant(value=None))]) | ast.IfExp(body=ast.Constant(value=None)):
            return True
        case ast.If(orelse=[ast.Assign(targets=[ast.Name()], value=ast.Constant(value=None))]) | ast.IfExp(orelse=ast.Constant(value=None)):
            return False
    return None


def _asks_all(where: Scope, test: ast.expr) -> bool:
    nodes = list(ast.walk(test))
    if any(isinstance(node, ast.NamedExpr | ast.Await) for node in nodes):
        return False
    values = [value for node in nodes if isinstance(node, ast.Name) and (value := made_once(where, node.id)) is not None]
    calls = [node for value in (test, *values) for node in ast.walk(value) if isinstance(node, ast.Call)]
    return any(syntax.last_name(call.func) in _OF_ALL for call in calls)
