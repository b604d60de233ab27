"""Statements that register something with a library: custom operators, containers, parametrizations."""

from __future__ import annotations

import ast
import types
from collections.abc import Set

import torch

from onnxplain.source import syntax

from .live_objects import is_users, resolved
from .source_files import File
from .statements import dotted_name, root_name


def registers(file: File, node: ast.stmt, operators: Set[str]) -> bool:
    """Whether a statement registers something for the code that the script takes from `file`.

    Args:
        file: The file with the statement.
        node: The statement.
        operators: The namespaces of the operators that the script calls.
    """
    if isinstance(node, ast.FunctionDef):
        return any(_is_registration(file, each, operators) for each in node.decorator_list)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call) and _is_registration(file, node.value, operators)
    if not isinstance(node, ast.Assign):
        return False
    if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
        return all(file.defines(root_name(target)) for target in node.targets)
    if not isinstance(node.value, ast.Call) or not _is_registration(file, node.value, operators):
        return False
    function = resolved(file.namespace, dotted_name(node.value.func))
    return not (isinstance(function, types.FunctionType) and is_users(function))


def _is_registration(file: File, node: ast.expr, operators: Set[str]) -> bool:
    """Whether a call or a decorator registers something."""
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(function, ast.Call):
        # NOTE: torch.library.register_fake("a::b")(function)
        return _is_registration(file, function, operators)
    target = resolved(file.namespace, dotted_name(function))
    given = [*node.args, *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else []
    spaces = {each.value.partition("::")[0] for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    # NOTE: that is the module which torch's functions for operators name, also where torch defines them elsewhere (torch 2.11 to 2.15).
    if getattr(target, "__module__", None) == torch.library.__name__ and spaces:
        return bool(spaces & operators)
    if isinstance(function, ast.Attribute) and file.defines(root := root_name(function)):
        return not isinstance(file.namespace.get(root), type | types.ModuleType | torch.nn.Module)
    names = {inner.id for each in given for inner in ast.walk(each) if isinstance(inner, ast.Name)}
    return "register" in syntax.last_name(function) and any(map(file.defines, names))
