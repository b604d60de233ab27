"""The syntax tree of a file at a place."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Callable
from types import ModuleType

import pytest

from onnxplain.diagnostics import Location, Region
from onnxplain.source import syntax

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]

CODE = """
def first(x, é):
    total = é + sum(each for each in x if each > 1)
    for part in split(x):
        total += part
    while total > 2:
        total -= 1
    if x and total:
        assert total, "some"
        total = 1 if x else (
            2
        )
    return [a for a in x if a if a > 3], {b for b in x}


class Second:
    def third(self):
        return 3
"""


@pytest.fixture
def file(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "code.py"
    path.write_text(CODE, encoding="utf-8")
    return str(path)


def place(text: str) -> Region:
    """Where `text` first stands in the code."""
    start = CODE.index(text)
    end = start + len(text)

    def position(at: int) -> tuple[int, int]:
        return CODE.count("\n", 0, at) + 1, at - CODE.rfind("\n", 0, at)

    return Region(*position(start), *position(end))


def shown(file: str, region: Region) -> str:
    """The code in `region`."""
    lines = list(region.texts(file))
    lines[-1] = lines[-1][: (region.end_column or 1) - 1]
    lines[0] = lines[0][(region.column or 1) - 1 :]
    return "\n".join(lines)


def test_a_file_that_is_missing_or_no_python_has_no_tree(tmp_path: pathlib.Path, file: str) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def (:\n", encoding="utf-8")
    assert syntax.tree(str(wrong)) is None
    assert syntax.tree("nowhere.py") is None
    assert syntax.around("nowhere.py", Region(1)) == []
    assert (syntax.source("nowhere.py"), syntax.source(file)) == ("", CODE)
    found = syntax.tree(file)
    assert found is not None
    assert [type(node) for node in found.body] == [ast.FunctionDef, ast.ClassDef]


@pytest.mark.parametrize(
    ("text", "function"),
    [("each > 1", "first"), ("def first(x, é):", "first"), ("return 3", "third"), ("class Second:\n    def", None)],
)
def test_the_function_around_a_place(file: str, text: str, function: str | None) -> None:
    found = syntax.innermost(file, place(text), ast.FunctionDef)
    assert (found and found.name) == function


@pytest.mark.parametrize("text", ["é + sum(each for each in x if each > 1)", "each > 1", "1 if x else (\n            2\n        )", "part"])
def test_an_expression_covers_its_text(file: str, text: str) -> None:
    found = syntax.innermost(file, place(text), ast.expr)
    assert found is not None
    assert shown(file, syntax.region(file, found)) == text
    assert syntax.text(file, found) == text.replace("(\n            2\n        )", "2")


def test_a_place_is_covered_up_to_its_ends(file: str) -> None:
    whole = place("x and total")
    found = syntax.innermost(file, whole, ast.BoolOp)
    assert found is not None
    assert whole.column is not None
    assert whole.end_column is not None
    wider = [
        Region(whole.line, whole.column - 1, whole.line, whole.end_column),
        Region(whole.line, whole.column, whole.line, whole.end_column + 1),
    ]
    assert [syntax.innermost(file, each, ast.BoolOp) for each in wider] == [None, None]


def test_around_a_line(file: str) -> None:
    line = place("while total > 2").line
    assert [type(node) for node in syntax.around(file, Region(line)) if isinstance(node, ast.stmt)] == [ast.FunctionDef, ast.While]
    last = place("        )\n").line
    assert any(isinstance(node, ast.IfExp) for node in syntax.around(file, Region(last)))
    assert not any(isinstance(node, ast.IfExp) for node in syntax.around(file, Region(last + 1)))


@pytest.mark.parametrize(
    ("statement", "header"),
    [
        ("for part in split(x):\n        total += part", "split(x)"),
        ("while total > 2:\n        total -= 1", "total > 2"),
        ("total += part", "total += part"),
        ("for part in split(x)", "for part in split(x)"),
    ],
)
def test_a_statement_without_its_body(file: str, statement: str, header: str) -> None:
    reduced = syntax.without_body(Location(file, place(statement), "first"))
    assert reduced.region is not None
    assert (shown(file, reduced.region), reduced.function) == (header, "first")


def test_places_without_lines_or_files_stay(file: str) -> None:
    for location in (Location(file), Location("nowhere.py", Region(1))):
        assert syntax.without_body(location) == location
        assert syntax.test_at(location) is None
    assert syntax.expression_at(Location(file)) == ""
    assert syntax.expression_at(Location("nowhere.py", Region(1, 1, 1, 2))) == ""


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("x and total", "x and total"),
        ("x", None),
        ("total > 2", "total > 2"),
        ('assert total, "some"', "total"),
        ("1 if x else (\n            2\n        )", "x"),
        ("a > 3", "a > 3"),
        ("[a for a in x if a if a > 3]", "a > 3"),
        ("each > 1", "each > 1"),
        ("{b for b in x}", None),
        ("total += part", None),
        ("total -= 1", None),
    ],
)
def test_the_test_that_decides_a_branch(file: str, text: str, test: str | None) -> None:
    found = syntax.test_at(Location(file, place(text)))
    assert (found and ast.unparse(found)) == test


def test_the_expression_at_a_place(file: str) -> None:
    def at(region: Region) -> str:
        return syntax.expression_at(Location(file, region))

    assert at(place("sum(each")) == "sum(each for each in x if each > 1)"
    assert at(place("return 3")) == "return 3"
    lines = ["for part in", "while total", "if x and", "total += part", "return 3", "class Second"]
    assert [at(Region(place(text).line)) for text in lines] == ["split(x)", "total > 2", "x and total", "part", "3", "class Second:"]


@pytest.mark.parametrize(("name", "indent"), [("first", ""), ("third", "    ")])
def test_code_behind_a_definition(file: str, name: str, indent: str) -> None:
    module = syntax.tree(file)
    assert module is not None
    node = next(each for each in ast.walk(module) if isinstance(each, ast.FunctionDef) and each.name == name)
    (edit,) = syntax.behind(file, node, "def new():\n    pass")
    assert edit.replacement == f"\n\n\n{indent}def new():\n{indent}    pass"
    end = place("{b for b in x}" if name == "first" else "return 3")
    assert (edit.file, edit.region) == (file, Region(end.line, end.end_column, end.line, end.end_column))


@pytest.mark.parametrize(("text", "name"), [("torch.nn.relu", "relu"), ("relu", "relu"), ("table[0]", ""), ("make()", "")])
def test_the_last_name_of_a_function(text: str, name: str) -> None:
    assert syntax.last_name(ast.parse(text, mode="eval").body) == name


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import torch", "torch"),
        ("import os, torch as th", "th"),
        ("import torch.nn", "torch"),
        ("import torch.nn as nn", None),
        ("import torch.nn as nn\nimport torch as t", "t"),
        ("from torch import nn", None),
        ("import torchvision", None),
    ],
)
def test_the_name_of_torch(tmp_path: pathlib.Path, source: str, name: str | None) -> None:
    path = tmp_path / "imports.py"
    path.write_text(source, encoding="utf-8")
    assert syntax.name_of_torch(str(path)) == name


def test_a_file_that_is_missing_imports_nothing() -> None:
    assert syntax.name_of_torch("nowhere.py") is None
