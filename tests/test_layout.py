"""The layout: which room may import which, the packages in the wheel, and calls that the library never makes."""

from __future__ import annotations

import ast
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parent.parent
FOLDERS = {"exporter": "onnxplain", "diagnostics": "onnxplain.diagnostics", "rules": "onnxplain.rules", "schemas": "onnxplain.schemas"}
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))

HEAVY = ("torch", "onnx", "onnx_ir", "onnxscript", "onnxruntime", "numpy")
MAY_IMPORT = {
    "diagnostics": ("onnxplain.diagnostics",),
    "rules": ("onnxplain.rules", "onnxplain.diagnostics"),
    "schemas": ("onnxplain.schemas",),
    "exporter": ("onnxplain",),
}


def imports(path: pathlib.Path) -> Iterator[str]:
    """Absolute names of all modules that a source file imports, wherever in the file."""
    folder = path.relative_to(ROOT).parts[0]
    package = [FOLDERS[folder], *path.relative_to(ROOT / folder).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = ".".join(package).split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: pathlib.Path) -> None:
    folder = path.relative_to(ROOT).parts[0]
    for name in imports(path):
        if within(name, ("onnxplain",)):
            assert within(name, MAY_IMPORT[folder]), f"{folder} must not import {name}"
        if folder != "exporter":
            assert not within(name, HEAVY), f"{folder} must not import {name}"
        if within(name, ("sarif_om",)):
            assert path.is_relative_to(ROOT / "diagnostics" / "sarif")
        assert not within(name, ("torch.onnx", "jschema_to_python")), f"{name} is not for us"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_library_neither_prints_nor_warns(path: pathlib.Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in ("print", "warnings.warn", "torch.onnx.export"), f"line {node.lineno} calls {called}"


def test_packages_are_listed() -> None:
    """An unlisted subpackage silently vanishes from the wheel."""
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    found = {
        ".".join([FOLDERS[folder], *init.parent.relative_to(ROOT / folder).parts])
        for folder in FOLDERS
        for init in (ROOT / folder).rglob("__init__.py")
    }
    assert sorted(listed) == sorted(found)


def test_face_imports_no_heavy_library() -> None:
    script = f"import onnxplain, onnxplain.rules, onnxplain.cli, sys; print([name for name in {HEAVY} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_suppressions_have_reasons(path: pathlib.Path) -> None:
    """Each `noqa`, `type: ignore` and broad `except` says why; ruff and mypy check only that they are needed."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if suppression := re.search(r"# (?:noqa: [A-Z0-9, ]+|type: ignore\[[\w, -]+\])(.*)", line):
            assert suppression[1].strip(" #"), f"line {number} has no reason"
        if re.search(r"except (Base)?Exception\b.*:$", line):
            assert lines[number].lstrip().startswith("# NOTE: "), f"line {number} has no reason"
        if re.search(r"suppress\((Base)?Exception\b", line):
            assert lines[number - 2].lstrip().startswith("# NOTE: "), f"line {number} has no reason"


INTERNAL = {"ops", "torch_internals", "source"}
"""Rooms that are entered by their files: each file is about one subject."""
SINKS = {f"onnxplain.diagnostics.{name}" for name in ("html", "job_summary", "markdown", "sarif")}
"""Modules that other rooms import whole, as the docstring of `diagnostics` says."""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_rooms_are_entered_through_their_entrance(path: pathlib.Path) -> None:
    """From outside, only what a room's `__init__.py` offers is imported."""
    own = path.relative_to(ROOT).parts[:2]
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "onnxplain" or len(parts) < 3 or name in SINKS or parts[1] in {*INTERNAL, *own}:
            continue
        room = ROOT / parts[1] if parts[1] in FOLDERS else ROOT / "exporter" / parts[1]
        offered = f'"{parts[2]}"' in (room / "__init__.py").read_text(encoding="utf-8") if room.is_dir() else True
        assert offered or not (room / f"{parts[2]}.py").exists(), f"{name} is inside of {parts[1]}"
