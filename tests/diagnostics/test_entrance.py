"""The entrance of `onnxplain.diagnostics`: the names that other rooms may import, and the time that the import takes."""

from __future__ import annotations

import ast
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import onnxplain.diagnostics

ROOT = pathlib.Path(__file__).parents[2]
SINKS = {"console", "html", "job_summary", "markdown", "sarif"}
OTHERS = sorted(
    path
    for folder in ("exporter", "rules", "schemas", "vscode-samples", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if path.is_file()
)


def imported(path: pathlib.Path) -> Iterator[str]:
    """The first name below `onnxplain.diagnostics` in each import of a source file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("onnxplain.diagnostics"):
            below = (node.module or "").split(".")[2:]
            yield from below[:1] or (alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[2] for alias in node.names if alias.name.startswith("onnxplain.diagnostics."))


def test_others_use_the_entrance_and_the_sinks() -> None:
    offered = {*onnxplain.diagnostics.__all__, *SINKS, "*"}
    reaching = {path.relative_to(ROOT).as_posix(): {*imported(path)} - offered for path in OTHERS}
    assert {path: names for path, names in reaching.items() if names} == {}


def test_every_name_is_there() -> None:
    assert all(hasattr(onnxplain.diagnostics, name) for name in onnxplain.diagnostics.__all__)
    assert not hasattr(onnxplain.diagnostics, "nonsense")


def test_a_name_of_a_module_that_is_not_loaded_is_there_at_first_use() -> None:
    script = "import onnxplain.diagnostics as here; print([name for name in here.__all__ if getattr(here, name) is None])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_the_entrance_loads_no_library_of_a_sink_and_no_reader() -> None:
    heavy = ("rich", "jinja2", "sarif_om", "torch", "xml", "urllib.request", "importlib.metadata")
    script = f"import onnxplain.diagnostics, sys; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip() == "[]"
