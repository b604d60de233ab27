"""Rewrites a Python branch that spares work where nothing is selected, such as `if not mask.any(): continue`, as code without a branch."""

from __future__ import annotations

import ast

from onnxplain.diagnostics import Region
from onnxplain.source import syntax

from . import branches, predicated, scope
from .blocks import Rewrite
from .scope import Scope

_WORDS = {ast.Eq: "==", ast.NotEq: "!=", ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<="}
_MIRRORED = str.maketrans("<>", "><")
_NON_EMPTY = {("==", 0): "!= 0", ("<=", 0): "> 0", ("<", 1): ">= 1"}
"""How a count compares with a limit where there is nothing, with the opposite."""
_COUNTS = {"numel": 0, "nelement": 0, "size": 1}
"""Methods that return a number of elements, with how many arguments they take then."""
_SUMS = frozenset({"sum", "count_nonzero"})
"""Functions that count where a mask is true."""
_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "isin", "isnan", "isinf", "isfinite"})
_MASKS = _COMPARISONS | {"any", "bool", "logical_and", "logical_or", "logical_not", "logical_xor", "one_hot"}
"""Functions that return masks."""


def rewritten(where: Scope, branch: ast.If, loop: ast.For | ast.While | None) -> list[Rewrite] | None:
    """The branch as its statements, or as the rest of the iteration, whose results are kept where something is selected.

    None if the source does not tell that the branch spares work only, or which variables it changes.

    Args:
        where: The function around it.
        branch: An `if` without `else`.
        loop: The loop around it, if the branch ends an iteration.
    """
    if branch.orelse or branches.is_elif(where.file, branch):
        return None
    ends = loop is not None and len(branch.body) == 1 and isinstance(branch.body[0], ast.Continue)
    if ends and loop is not None:
        if not isinstance(loop, ast.For) or branch not in loop.body:
            return None
        statements, around = loop.body[loop.body.index(branch) + 1 :], where.region(loop)
    else:
        statements, around = branch.body, where.region(branch)
    condition = taken(where, branch.test, ends=ends)
    if condition is None or not statements or any(isinstance(each, ast.Pass) for each in statements):
        return None
    own_lines = where.region(statements[0]).line > where.region(branch.test).last_line
    changed = predicated.changed(where, around, statements)
    if changed is None or not own_lines or not predicated.takes_empty(where, statements):
        return None
    chosen, kept = where.unused("is_taken"), {name: where.unused(f"{name}_kept") for name in changed}
    whole, test = where.region(branch), where.region(branch.test)
    kept_only = predicated.around(where, statements, chosen, kept)
    if ends:
        return [Rewrite(whole, f"{chosen} = {condition}"), *kept_only]
    start = Region(whole.line, whole.column, whole.line, whole.column)
    return [Rewrite(start, f"{chosen} = {condition}\n" + " " * whole.offset), Rewrite(test, "True"), *kept_only]


def taken(where: Scope, test: ast.expr, *, ends: bool) -> str | None:
    """Whether a selection has elements, as a tensor of dtype bool; None if `test` asks something else.

    Args:
        where: The function around it.
        test: The test of a branch.
        ends: Whether the branch is taken where the selection is empty. Otherwise it is taken where it has elements.
    """
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return taken(where, operand, ends=not ends)
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _WORDS:
            word, count, limit = _WORDS[type(operator)], left, right
            if isinstance(left, ast.Constant):
                word, count, limit = word.translate(_MIRRORED), right, left
            number = limit.value if isinstance(limit, ast.Constant) and isinstance(limit.value, int) else -1
            text, asked = _count(where, count), (word, number)
        case _:
            if not ends and (found := _any(where, test)) is not None:
                return found
            text, asked = _count(where, test), ("!=", 0)
    if text is None:
        return None
    if ends:
        return f"{text} {_NON_EMPTY[asked]}" if asked in _NON_EMPTY else None
    return f"{text} {asked[0]} {asked[1]}" if f"{asked[0]} {asked[1]}" in _NON_EMPTY.values() else None


def _any(where: Scope, test: ast.expr) -> str | None:
    """Whether any element of a mask is true, as a tensor; None if `test` asks something else."""
    match test:
        case (
            ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[])
            | ast.Call(func=ast.Name(id="bool"), args=[inner], keywords=[])
        ):
            return _any(where, inner)
        case ast.Call(func=ast.Attribute(value=mask, attr="any"), args=[], keywords=[]) if where.is_tensor(mask):
            return where.text(test)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=where.torch), attr="any"), args=[_], keywords=[]):
            return where.text(test)
        case ast.Name(id=name) if (value := scope.made_once(where, name)) is not None and not isinstance(value, ast.Name):
            return name if where.is_tensor(test) and _any(where, value) is not None else None
    return None


def _count(where: Scope, node: ast.expr) -> str | None:
    """A number of elements, as a tensor; None if `node` is something else."""
    match node:
        case ast.Call(func=ast.Name(id="int"), args=[inner], keywords=[]) | ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[]):
            return _count(where, inner)
        case ast.Call(func=ast.Attribute(value=mask, attr=name), args=[], keywords=[]) if name in _SUMS and _is_mask(where, mask):
            return where.text(node)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=where.torch), attr=name), args=[mask], keywords=[]) if name in _SUMS:
            return where.text(node) if _is_mask(where, mask) else None
        case ast.Name(id=name) if (value := scope.made_once(where, name)) is not None and not isinstance(value, ast.Name):
            return None if _count(where, value) is None else name if where.is_tensor(node) else f"{where.torch}.scalar_tensor({name})"
        case ast.Subscript(value=ast.Name(id=name)) if _is_list_of_data(scope.made_once(where, name)):
            return f"{where.torch}.scalar_tensor({where.text(node)})"
    return f"{where.torch}.scalar_tensor({where.text(node)})" if _is_size(node) else None


def _is_list_of_data(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and syntax.last_name(node.func) == "tolist"


def _is_mask(where: Scope, node: ast.expr) -> bool:
    """Whether the elements of a tensor tell what is selected."""
    match node:
        case ast.Compare():
            return where.is_tensor(node)
        case ast.UnaryOp(op=ast.Invert(), operand=inner) | ast.Subscript(value=inner):
            return _is_mask(where, inner)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.BitXor(), right=right):
            return _is_mask(where, left) and _is_mask(where, right)
        case ast.Call(func=ast.Attribute(value=inner, attr="permute" | "transpose" | "view" | "reshape" | "flatten" | "squeeze")):
            return _is_mask(where, inner)
        case ast.Call(func=called):
            return syntax.last_name(called) in _MASKS
        case ast.Name(id=name) if (value := scope.made_once(where, name)) is not None and not isinstance(value, ast.Name):
            return _is_mask(where, value)
    return False


def _is_size(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[_], keywords=[]):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant(value=int())):
            return True
        case ast.Call(func=ast.Attribute(attr=name), args=args, keywords=[]):
            return _COUNTS.get(name) == len(args)
    return False
