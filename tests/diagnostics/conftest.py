"""Fixtures for tests of sinks and readers."""

from __future__ import annotations

import json
import pathlib

import pytest
from logs import SOURCE
from sarif_checks import check_log
from sarif_logs import Read

from onnxplain.diagnostics import sarif


@pytest.fixture
def read(tmp_path: pathlib.Path) -> Read:
    """A log as checked SARIF, relative to tmp_path."""
    return lambda log: check_log(json.loads(sarif.to_json(log, tmp_path)))


@pytest.fixture
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The current folder, an empty one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def source(here: pathlib.Path) -> str:
    """The path of a source file in the current folder."""
    path = here / "flip.py"
    path.write_text(SOURCE, encoding="utf-8")
    return str(path)
