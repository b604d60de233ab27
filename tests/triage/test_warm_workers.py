"""A worker goes on with the next model of a library, unless the last one failed or left traces in the process."""

from __future__ import annotations

import itertools
import json
import pathlib
import subprocess
import sys

import pytest
from fleets import events, results, triage, verdicts

from onnxplain.triage import cores

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="triages fork processes")

LIBRARY = """\
import os
import pathlib
import random
import signal
import subprocess
import threading
import time

import numpy
import torch

NAMES = ["a", "b", "c_chdir", "d", "e_dtype", "f", "g_fails", "h", "i_crashes", "j", "k_child", "l", "m_thread", "n", "o_ends"]


class Net(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.default_cfg = {"input_size": (4,)}
        self.layer = torch.nn.Linear(4, 4)
        self.name = name

    def forward(self, x):
        if self.name.endswith("crashes"):
            os.abort()
        return -x if self.name.endswith("fails") and x.sum() > 0 else self.layer(x)


def create_model(name, pretrained):
    net = Net(name)
    with pathlib.Path("made.txt").open("a") as file:
        numbers = net.layer.weight.sum().item() + random.random() + numpy.random.random()
        print(name, os.getpid(), numbers, torch.get_num_threads(), file=file)
    if name.endswith("chdir"):
        os.chdir("/")
    elif name.endswith("dtype"):
        torch.set_default_dtype(torch.float64)
        return net.double()
    elif name.endswith("child"):
        subprocess.Popen(["sleep", "1000"])
    elif name.endswith("thread"):
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    elif name.endswith("ends"):
        os.kill(os.getpid(), signal.SIGTERM)  # here
    return net


def model_entrypoint(name):
    return create_model


def list_models():
    return NAMES
"""


@pytest.fixture(autouse=True)
def library(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library in place of timm."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "libraries").mkdir()
    (tmp_path / "libraries" / "timm.py").write_text(LIBRARY, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path / "libraries")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "libraries"))


def test_models_of_libraries_take_the_settings_around_the_current_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "[tool.onnxplain]\nopset = 18\n[[tool.onnxplain.profiles]]\npaths = ['*']\nopset = 19\n"
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    below = tmp_path / "work"
    # A folder with the name of the library is not that library.
    (below / "timm").mkdir(parents=True)
    (below / "timm" / "pyproject.toml").write_text("[tool.onnxplain]\nopset = 17\n", encoding="utf-8")
    monkeypatch.chdir(below)
    result = triage("timm:a")
    assert result.exit_code == 0, result.output
    told = [text for text in events(below / "triage" / "logs" / "timm_a.sarif") if "pyproject.toml" in text]
    assert len(told) == 1
    assert "opset is 18" in told[0]


def test_a_worker_that_a_model_has_damaged_is_replaced(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = triage("timm:*", "--jobs", "1", "--control-flow", "report", "--no-try-fixes")
    assert result.exit_code == 1, result.output
    outcomes = {name.removeprefix("timm:"): outcome for name, outcome in verdicts(tmp_path / "triage")}
    bad = {"g_fails": "failed", "i_crashes": "crashed", "o_ends": "crashed"}
    assert outcomes == {name: bad.get(name, "exported") for name in outcomes}
    assert len(outcomes) == 15
    made = [line.split() for line in (tmp_path / "made.txt").read_text(encoding="utf-8").splitlines()]
    workers = {name: worker for name, worker, *_ in made}
    names = sorted(outcomes)
    replaced = [after for before, after in itertools.pairwise(names) if workers[before] != workers[after]]
    assert replaced == ["d", "f", "h", "j", "l", "n"]
    # Each model has the same random numbers, whichever came before.
    assert len({numbers for name, _, numbers, _ in made if name in names}) == 1
    # The only worker at a time has all cores.
    assert {threads for name, _, _, threads in made if name in names} == {str(cores())}
    # The log and the facts of each are its own.
    for name in names:
        log = json.loads((tmp_path / "triage" / "logs" / f"timm_{name}.sarif").read_text(encoding="utf-8"))
        assert log["runs"][0]["properties"]["onnxplain/subject"] == f"timm:{name}"
    # What ends a model while it is built shows its line, also in a worker that has exported another.
    (place,) = results(tmp_path / "triage" / "logs" / "timm_o_ends.sarif")[0]["locations"]
    line = next(number for number, text in enumerate(LIBRARY.splitlines(), start=1) if text.endswith("# here"))
    assert place["physicalLocation"]["region"]["startLine"] == line


WARM = """\
import contextlib, sys

from onnxplain.triage import local

local.prepare((), warm=True)
import onnxplain, torch

before = {*sys.modules}
for model in (lambda x: x * 2, lambda x: x if x.sum() > 0 else -x, lambda x: torch.linalg.eigvals(x)):
    with contextlib.suppress(onnxplain.ExportFailed):
        onnxplain.export(model, (torch.ones(3, 3),), sarif="log.sarif", control_flow="report")
print(*sorted({*sys.modules} - before))
"""


def test_workers_of_many_models_import_nothing_of_ours_anew(tmp_path: pathlib.Path) -> None:
    (tmp_path / "warm_host.py").write_text(WARM, encoding="utf-8")
    done = subprocess.run([sys.executable, "warm_host.py"], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if name.partition(".")[0] in ("onnxplain", "sarif_om", "onnxscript", "onnx_ir")] == []
