"""Small logs for tests of the SARIF writer, and access to the parts of a SARIF log."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import logs

from onnxplain.diagnostics import DiagnosticContext, DiagnosticOptions, Location, Log, Region

MODEL = """\
import torch


class Flip(torch.nn.Module):
    def forward(self, x):
        if x.sum() < 0:
            return -x
        return x
"""

Read = Callable[[Log], dict[str, Any]]
"""The type of the fixture `read`."""


def make_context(*places: Location, **options: Any) -> DiagnosticContext:
    """A context with these options."""
    return logs.context(DiagnosticOptions(**options), *places)


def source(folder: pathlib.Path, text: str = MODEL, name: str = "model.py") -> str:
    """The path of a new file with `text`."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def at(file: str, blamed: str, **more: str) -> Location:
    """The first place of `blamed` in `file`."""
    for number, line in enumerate(pathlib.Path(file).read_text(encoding="utf-8").splitlines(), 1):
        if blamed in line:
            column = line.index(blamed) + 1
            return Location(file, Region(number, column, number, column + len(blamed)), **more)
    raise AssertionError(f"{blamed!r} is not in {file}")


def results(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The results of a SARIF log."""
    found: list[dict[str, Any]] = content["runs"][0]["results"]
    return found


def physical(result: Mapping[str, Any]) -> dict[str, Any]:
    """The physical location of a result."""
    found: dict[str, Any] = result["locations"][0]["physicalLocation"]
    return found
