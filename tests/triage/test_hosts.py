"""The process that runs the workers of a triage."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import signal
import sys
import time
from collections.abc import Generator, Mapping
from typing import Any, NoReturn

import pytest

from onnxplain.triage import Limits, Model, Options, Workers, local, run_here
from onnxplain.triage.jobs import Files, Job


def load(_source: str, attribute: str, _arguments: Mapping[str, Any]) -> NoReturn:
    """Fails, or stops the host for a while."""
    if attribute == "stops":
        host = os.getppid()
        os.kill(host, signal.SIGSTOP)
        pathlib.Path("stopped.txt").touch()
        time.sleep(20)
        pathlib.Path("late.txt").touch()
        os.kill(host, signal.SIGCONT)
    raise LookupError


@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux do workers end with their host")
def test_a_host_that_does_not_end_is_killed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local, "_PATIENCE", 0.1)
    models = [Model(name, name, "", "nets.py", name, {}, False, Options()) for name in ("fails", "stops")]
    files = [[tmp_path / f"{model.file}.{end}" for end in ("sarif", "txt", "json", "repro.py")] for model in models]
    others = {*multiprocessing.active_children()}
    running = run_here(
        [Job(model, Files(*paths)) for model, paths in zip(models, files, strict=True)], Limits(100.0, None), Workers(1, load, "")
    )
    assert next(running).name == "fails"
    while not (tmp_path / "stopped.txt").exists():
        time.sleep(0.01)
    assert isinstance(running, Generator)
    running.close()
    assert not (tmp_path / "late.txt").exists()
    assert {*multiprocessing.active_children()} <= others
