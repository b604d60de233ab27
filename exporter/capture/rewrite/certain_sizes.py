"""Takes the way for all sizes where a branch has another way for certain ones, as in `if height != self.height: table = resized(...)`."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from onnxplain.diagnostics import Location
from onnxplain.source import syntax

from .blocks import Rewrite
from .scope import Scope

_HARMLESS = frozenset({"dim", "int", "len", "list", "numel", "size", "tuple"})
"""What may be called within such a test: it changes nothing."""


def rewritten(where: Scope, place: Location) -> Rewrite | None:
    """The comparison at `place`, which is true or false for certain sizes only, with the answer for all others in an export.

    None if there is no such comparison, or if it does more than to decide a branch. Whether the way for all other sizes computes the same
    for the certain ones is not in the source: it must be tried with each of them.
    """
    if place.region is None or place.region.column is None or syntax.refuses(place):
        return None
    nodes = syntax.around(place.file, place.region)
    test = syntax.test_at(place)
    compared = next((node for node in reversed(nodes) if isinstance(node, ast.Compare)), test)
    owners = {node: owner for owner in ast.walk(where.function) for node in ast.iter_child_nodes(owner)}
    if test is None or not isinstance(compared, ast.Compare) or not isinstance(owners.get(test), ast.If | ast.IfExp):
        return None
    if len(compared.ops) > 1 or not isinstance(compared.ops[0], ast.Eq | ast.NotEq):
        return None
    is_equal = isinstance(compared.ops[0], ast.Eq)
    together: type[ast.boolop] = ast.And if is_equal else ast.Or
    around: list[ast.AST] = [compared]
    while around[-1] is not test and (owner := owners.get(around[-1])) is not None:
        around.append(owner)
    # NOTE: of `h != 4 and w != 4`, one size alone may decide.
    mixed = any(isinstance(each, ast.BoolOp) and not isinstance(each.op, together) and _compares(each, compared) for each in around)
    if mixed or around[-1] is not test or not all(map(_is_harmless, ast.walk(test))) or _sets_attributes(owners[test]):
        return None
    exports = f"{where.torch}.compiler.is_exporting()"
    text = f"not {exports} and {where.text(compared)}" if is_equal else f"{exports} or {where.text(compared)}"
    return Rewrite(where.region(compared), text if compared is test else f"({text})")


def _compares(operator: ast.BoolOp, compared: ast.Compare) -> bool:
    """Whether another operand than the one with `compared` compares something that may be a size."""
    others = (operand for operand in operator.values if compared not in ast.walk(operand))
    nodes = itertools.chain.from_iterable(map(ast.walk, others))
    return any(isinstance(node, ast.Compare) and not isinstance(node.ops[0], ast.Is | ast.IsNot) for node in nodes)


def _is_harmless(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return syntax.last_name(node.func) in _HARMLESS
    return not isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)


def _sets_attributes(owner: ast.AST) -> bool:
    """Whether a way of a branch keeps what it computes for later runs."""
    steps: Iterator[ast.AST] = itertools.chain.from_iterable(map(ast.walk, ast.iter_child_nodes(owner)))
    return any(isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store) for node in steps)
