"""A model that its class makes, instead of the helper `make`: the script then needs no helper."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator

from .cuts import Cut, Parsed


def constructed(parsed: Parsed) -> Iterator[list[Cut]]:
    """The cut that puts `model = Net()` and `model.layer = ...` in the place of `model = make(Net, {"layer": ...})`.

    It is there only if nothing else needs the helper.
    """
    for node in ast.walk(parsed.tree):
        match node:
            case ast.Assign(targets=[ast.Name(id="model")], value=ast.Call(func=ast.Name(id="make")) as made):
                start, end = parsed.span(node)
                margin = " " * node.col_offset
                text = f"\n{margin}".join(_statements(parsed, "model", made))
                others = sum(isinstance(each, ast.Name) and each.id == "make" for each in ast.walk(parsed.tree))
                if "make(" not in text and others == sum(_is_made(each) for each in ast.walk(made)):
                    yield [Cut(start, end, text)]


def _is_made(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "make"


def _statements(parsed: Parsed, target: str, node: ast.expr) -> Iterator[str]:
    """Statements that assign the like of an expression to `target`."""
    match node:
        case ast.Call(func=ast.Name(id="make"), args=[cls, ast.Dict(keys=keys, values=values)]) if all(map(_name, keys)):
            yield f"{target} = {parsed.code(cls)}()"
            for key, value in zip(keys, values, strict=True):
                yield from _statements(parsed, f"{target}.{_name(key)}", value)
        case _:
            yield f"{target} = {parsed.code(node)}"


def _name(key: ast.expr | None) -> str:
    """The key of a dictionary if it may be the name of an attribute, else an empty text."""
    match key:
        case ast.Constant(value=str(name)) if name.isidentifier() and not keyword.iskeyword(name):
            return name
    return ""
