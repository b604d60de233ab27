from __future__ import annotations

import ast
import pathlib
import re
import subprocess
import sys

import pytest

from mutants import mutations, rooms

SOURCE = '''
from typing import TYPE_CHECKING
Size = int | None
if TYPE_CHECKING:
    LIMIT = 3
@cached(maxsize=1)
def first(values: list[int | None], most: int = 8) -> int | None:
    """The first."""
    assert most > 0
    for value, _ in zip(values, values, strict=True):
        if value is None or isinstance(value, int | float):
            continue
        report(f"{value + 1} of {most}", at="é")
        if value == most:
            return False
        return value + most * 2
'''


def test_mutants_of_a_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "first.py"
    path.write_text(SOURCE, encoding="utf-8")
    found = mutations.mutants_of(path)
    assert [(mutant.line, mutant.text) for mutant in found] == [
        (7, "9"),
        (11, "(value is not None)"),
        (11, "(value is None and isinstance(value, int | float))"),
        (12, "break"),
        (13, "pass"),
        (14, "(value != most)"),
        (15, "True"),
        (16, "return None"),
        (16, "(value - most * 2)"),
        (16, "(most // 2)"),
        (16, "3"),
    ]
    for mutant in found:
        changed = ast.parse(mutant.source())
        assert ast.dump(changed) != ast.dump(ast.parse(SOURCE))
        assert sorted({line[0] for line in mutant.diff()}) == ["+", "-"]


STATEMENTS = """
def second(
    most=1,
):
    if (
        most > 2
    ):
        return (
            most
            + 3
        )
"""


def test_statement_of_a_mutant(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "second.py"
    path.write_text(STATEMENTS, encoding="utf-8")
    lines = {mutant.text: mutant.statement() for mutant in mutations.mutants_of(path)}
    assert lines == {
        "2": range(2, 5),
        "(most >= 2)": range(5, 8),
        "3": range(5, 8),
        "return None": range(8, 12),
        "(most - 3)": range(8, 12),
        "4": range(8, 12),
    }


def test_what_runs_on_import(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "third.py"
    path.write_text("LIMIT = 1\nclass Place:\n    line = 2\n    def text(self, most=3):\n        return 4\n", encoding="utf-8")
    assert [mutant.text for mutant in mutations.mutants_of(path) if mutant.runs_on_import()] == ["2", "3"]


@pytest.mark.slow
def test_a_test_catches_a_mutant() -> None:
    command = [sys.executable, "-m", "mutants", "--room", "schemas", "--count", "1", "--caught", "--executing"]
    shown = subprocess.run(command, cwd=rooms.TESTS, capture_output=True, text=True, check=True).stdout
    assert re.search(r"^schemas/__init__\.py:\d+ .*tests/test_schemas\.py::", shown, re.MULTILINE)
    assert "schemas: 1 of 1" in shown


def test_rooms_have_sources_and_tests() -> None:
    found = rooms.rooms()
    assert {"recording", "diagnostics", "registry", "face"} <= found.keys()
    for room in found.values():
        assert room.sources
        assert all(tests.exists() for tests in room.tests)
    assert rooms.installed(rooms.ROOT / "diagnostics" / "gate" / "formats.py") == pathlib.Path("onnxplain/diagnostics/gate/formats.py")


@pytest.mark.parametrize("file", sorted({each.file for each in rooms.equivalents()}))
def test_equivalents_exist(file: str) -> None:
    """An entry whose line has changed is of no use any more."""
    mutants = list(mutations.mutants_of(rooms.ROOT / file))
    for equivalent in rooms.equivalents():
        assert equivalent.why
        assert equivalent.file != file or any(map(equivalent.matches, mutants)), equivalent.mutant
