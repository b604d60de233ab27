"""Fixtures for tests of sinks and readers."""

from __future__ import annotations

import json
import pathlib

import pytest
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
