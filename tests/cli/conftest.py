"""Fixtures for tests of the command line."""

from __future__ import annotations

import functools
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from cli_models import MODELS

import onnxplain
import onnxplain.api


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """The current folder, with `models.py` in it. Restores what the command line changes in the process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = {*sys.modules}
    (tmp_path / "models.py").write_text(MODELS, encoding="utf-8")
    yield tmp_path
    for name in {*sys.modules} - before:
        if any(str(tmp_path) in str(getattr(sys.modules[name], place, "")) for place in ("__file__", "__path__")):
            del sys.modules[name]


@functools.cache
def _program() -> onnxplain.ONNXProgram:
    return onnxplain.api.export(torch.nn.ReLU(), (torch.ones(3),))


@pytest.fixture
def calls(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Replaces `onnxplain.export` with a function that only records its calls."""
    recorded: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def export(*args: Any, **kwargs: Any) -> onnxplain.ONNXProgram:
        recorded.append((args, kwargs))
        return _program()

    monkeypatch.setitem(vars(onnxplain), "export", export)
    return recorded
