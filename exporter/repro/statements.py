"""What the syntax tree of a statement says: the names that it binds and reads, its lines, the modules that it imports."""

from __future__ import annotations
import __future__

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from onnxplain.torch_internals import code_objects

ANNOTATIONS = __future__.annotations.compiler_flag
DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
IMPORTS = ast.Import | ast.ImportFrom


def names_read(nodes: list[ast.stmt], flags: int) -> set[str]:
    """The global names that statements read, as the interpreter would look them up."""
    code = compile(ast.Module(body=nodes, type_ignores=[]), "<names>", "exec", flags=flags, dont_inherit=True)
    return code_objects.loaded_names(code)


def names_bound(node: ast.stmt) -> Iterator[str]:
    """The global names that a top-level statement binds."""
    if isinstance(node, DEFINITIONS):
        yield node.name
    elif isinstance(node, IMPORTS):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    else:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr):
            inner: Iterable[ast.AST] = ast.walk(node)
        else:
            inner = [each for child in ast.iter_child_nodes(node) for each in ast.walk(child)]
        for each in inner:
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                yield each.id
            elif isinstance(each, ast.stmt) and isinstance(each, DEFINITIONS | IMPORTS):
                yield from names_bound(each)


def is_main(node: ast.stmt) -> bool:
    """Whether a statement runs only if the file is the program."""
    return isinstance(node, ast.If) and any(isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(node.test))


def is_future(node: ast.stmt) -> bool:
    """Whether a statement turns annotations into texts."""
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and any(each.name == "annotations" for each in node.names)


def first_line(node: ast.stmt) -> int:
    """The line of a definition's first decorator, or of the statement itself."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def lines_inside_strings(text: str) -> set[int]:
    """The lines of `text` that begin inside a string: their indentation belongs to the string."""
    found: set[int] = set()
    for each in ast.walk(ast.parse(text)):
        is_text = isinstance(each, ast.Constant) and isinstance(each.value, str | bytes)
        if (is_text or isinstance(each, ast.JoinedStr)) and isinstance(each, ast.expr):
            found.update(range(each.lineno + 1, (each.end_lineno or each.lineno) + 1))
    return found


def dotted_name(node: ast.expr) -> list[str]:
    """The parts of `a.b.c`; nothing for other expressions."""
    if isinstance(node, ast.Name):
        return [node.id]
    inner = dotted_name(node.value) if isinstance(node, ast.Attribute) else []
    return [*inner, node.attr] if inner and isinstance(node, ast.Attribute) else []


def root_name(node: ast.expr) -> str:
    """The name that an expression of attributes, items and calls begins with."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def imported_modules(node: ast.Import | ast.ImportFrom, namespace: Mapping[str, Any]) -> list[str]:
    """The names of the modules that a statement imports, or imports from."""
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else [module_imported_from(node, namespace)]


def module_imported_from(node: ast.ImportFrom, namespace: Mapping[str, Any]) -> str:
    """The full name of the module that a statement imports from."""
    if not node.level:
        return node.module or ""
    package = str(namespace.get("__package__") or "").split(".")
    return ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
