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
        assert syntax.refuses(location) is False
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


@pytest.mark.parametrize(
    ("source", "refuses"),
    [
        ("assert a > b", True),
        ("if a > b:\n    raise ValueError", True),
        ("if a > b:\n    print(a)\n    raise ValueError", True),
        ("if c:\n    pass\nelif a > b:\n    raise ValueError", True),
        ("if a > b:\n    raise ValueError\nelse:\n    print(a)", False),
        ("if a > b:\n    print(a)", False),
        ("while a > b:\n    raise ValueError", False),
        ("assert c if a > b else d", False),
        ("print(a > b)", False),
    ],
)
def test_what_refuses(tmp_path: pathlib.Path, source: str, refuses: bool) -> None:
    assert syntax.refuses(at_text(tmp_path, source, "a > b")) is refuses


@pytest.mark.parametrize(
    ("source", "is_plain"),
    [
        ("assert a > b", True),
        ("assert c and a > b, 'text'", True),
        ("assert a > b > c", False),
        ("assert not a > b", False),
        ("assert a > b or c", False),
        ("assert a > b, f'{c}'", False),
        ("if a > b:\n    raise ValueError", False),
    ],
)
def test_what_is_a_plain_assert(tmp_path: pathlib.Path, source: str, is_plain: bool) -> None:
    assert syntax.is_plain_assert(at_text(tmp_path, source, "a > b")) is is_plain


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


def at_text(tmp_path: pathlib.Path, source: str, text: str) -> Location:
    """The place of `text` in a file that holds `source`; both on one line of it."""
    path = tmp_path / "small.py"
    path.write_text(source, encoding="utf-8")
    start = source.index(text)
    line, column = source.count("\n", 0, start) + 1, start - source.rfind("\n", 0, start)
    return Location(str(path), Region(line, column, line, column + len(text)))


# NOTE: each with the text of a place, and whether the function says yes there.
TRUTHS = {
    "int": ("n = int(len(x) > 2)", "len(x) > 2", True),
    "float": ("n = float(a == b)", "a == b", True),
    "bool of a chain": ("n = bool(a and b)", "a and b", True),
    "of a module": ("n = builtins.int(a > b)", "a > b", True),
    "the call itself": ("n = int(a > b)", "int(a > b)", True),
    "within the comparison": ("n = int(len(x) > 2)", "len(x)", True),
    "second argument": ("n = int(x, a > b)", "a > b", True),
    "no comparison": ("n = int(a + b)", "a + b", False),
    "without arguments": ("n = int()", "int()", False),
    "another function": ("n = abs(a > b)", "a > b", False),
    "beside the call": ("n = int(a > b) + (c > d)", "c > d", False),
    "more than the call": ("n = int(a > b) + 1", "int(a > b) + 1", False),
    "no call": ("n = a > b", "a > b", False),
}


@pytest.mark.parametrize(("source", "text", "counts"), TRUTHS.values(), ids=TRUTHS)
def test_where_a_comparison_becomes_a_number(tmp_path: pathlib.Path, source: str, text: str, counts: bool) -> None:
    location = at_text(tmp_path, source, text)
    assert syntax.counts_truth(location) is counts
    assert syntax.counts_truth(Location(location.file)) is False


TRY = """
before()
try:
    first(
        x
    )
    last(
        x
    )
except KINDS:
    handler()
else:
    other()
after()
"""


@pytest.mark.parametrize(
    ("kinds", "catches"),
    [
        ("", True),
        (" RuntimeError", True),
        (" IndexError", True),
        (" Exception as error", True),
        (" builtins.BaseException", True),
        (" (KeyError, RuntimeError)", True),
        (" KeyError", False),
        (" (KeyError, ValueError)", False),
        (" (KeyError,)", False),
        (" KeyError:\n    pass\nexcept RuntimeError", True),
        (" KeyError:\n    pass\nexcept ValueError", False),
    ],
)
def test_where_refusals_are_caught(tmp_path: pathlib.Path, kinds: str, catches: bool) -> None:
    path = tmp_path / "tried.py"
    path.write_text(TRY.replace(" KINDS", kinds), encoding="utf-8")
    lines = path.read_text(encoding="utf-8").count("\n") + 1
    caught = [line for line in range(1, lines + 1) if syntax.catches_refusals(Location(str(path), Region(line)))]
    # The body, from its first line to the last line of its last statement.
    assert caught == ([4, 5, 6, 7, 8, 9] if catches else [])


def test_only_the_body_that_holds_a_place_catches(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "tried.py"
    path.write_text("try:\n    a()\nexcept KeyError:\n    try:\n        b()\n    except IndexError:\n        c()\nd()\n", encoding="utf-8")
    assert [line for line in range(1, 9) if syntax.catches_refusals(Location(str(path), Region(line)))] == [5]
    assert syntax.catches_refusals(Location(str(path))) is False
    assert syntax.catches_refusals(Location("nowhere.py", Region(2))) is False
    path = tmp_path / "finally.py"
    path.write_text("try:\n    a()\nfinally:\n    b()\n", encoding="utf-8")
    assert syntax.catches_refusals(Location(str(path), Region(2))) is False


@pytest.mark.parametrize(
    ("source", "unpacked"),
    [
        ("a, b = x.chunk(2)", True),
        ("[a, b] = x.chunk(2)", True),
        ("both = a, b = x.chunk(2)", True),
        ("(a,) = x.chunk(2)", True),
        ("parts = x.chunk(2)", False),
        ("a, *b = x.chunk(2)", False),
        ("*a, b = x.chunk(2)", False),
        ("() = x.chunk(2)", False),
        ("a, b = x.chunk(2), 3", False),
        ("a = b = x.chunk(2)", False),
        ("use(x.chunk(2))", False),
        ("for a, b in x.chunk(2): pass", False),
        ("a[0], b.c = x.chunk(2)", True),
    ],
)
def test_where_a_result_is_unpacked(tmp_path: pathlib.Path, source: str, unpacked: bool) -> None:
    location = at_text(tmp_path, source, "x.chunk(2)")
    assert syntax.unpacks(location) is unpacked
    assert location.region is not None
    assert syntax.unpacks(Location(location.file, Region(location.region.line))) is unpacked


def test_nothing_is_unpacked_nowhere() -> None:
    assert syntax.unpacks(None) is False
    assert syntax.unpacks(Location("nowhere.py")) is False
    assert syntax.unpacks(Location("nowhere.py", Region(1))) is False


def test_places_outside_python_have_no_answer(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text("def (:\n    x\n", encoding="utf-8")
    location = Location(str(path), Region(1, 1, 1, 4))
    assert syntax.test_at(location) is None
    assert syntax.without_body(location) is location
    assert syntax.counts_truth(location) is False
    assert syntax.catches_refusals(location) is False
    assert syntax.unpacks(location) is False
    assert syntax.name_of_torch(str(path)) is None
    assert syntax.innermost(str(path), Region(1), ast.stmt) is None


@pytest.mark.parametrize("header", ["if a > 1:", "while a > 1:"])
def test_the_innermost_test_counts(tmp_path: pathlib.Path, header: str) -> None:
    source = f"{header}\n    y = 1 if (b if c else d) else 2\n"
    for text, test in (("a > 1", "a > 1"), ("b if c else d", "c"), ("c", "c"), ("1 if (b if c else d) else 2", "b if c else d")):
        found = syntax.test_at(at_text(tmp_path, source, text))
        assert (found and ast.unparse(found)) == test


@pytest.mark.parametrize(
    ("text", "has_four"), [("x.view(4, 2)", True), ("x.view(5, 2)", False), ("x.view(4.0, True)", False), ("x", False)]
)
def test_numbers_in_an_expression(tmp_path: pathlib.Path, text: str, has_four: bool) -> None:
    assert syntax.has_number(at_text(tmp_path, f"y = {text} + 4\n", text), 4) is has_four


@pytest.mark.parametrize(
    ("source", "text", "is_made"),
    [
        ("int(x.sum())", "int(x.sum())", True),
        ("float(x.sum() + 1)", "x.sum()", True),
        ("bool(x.sum())", "x.sum()", False),
        ("numbers.int(x.sum())", "x.sum()", False),
        ("x.sum() + int(y)", "x.sum()", False),
    ],
)
def test_numbers_that_python_makes(tmp_path: pathlib.Path, source: str, text: str, is_made: bool) -> None:
    assert syntax.makes_number(at_text(tmp_path, f"y = {source}\n", text)) is is_made
    assert syntax.makes_number(Location(str(tmp_path / "code.py"))) is False
