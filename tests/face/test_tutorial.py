"""The loop of a well-known tutorial, as its readers paste it, leads to a right model in two steps."""

from __future__ import annotations

import linecache
import pathlib
from collections.abc import Callable
from types import ModuleType

import onnxruntime
import pytest
import torch
from click.testing import CliRunner

import onnxplain
from onnxplain.cli import main
from onnxplain.diagnostics import read_log

Load = Callable[..., ModuleType]

SCRIPT = """\
import torch
import torch.nn as nn
import onnxplain
class MyModel(nn.Module):
    def __init__(self, input_size):
        super(MyModel, self).__init__()
        self.linear = nn.Linear(input_size, 10)
    def forward(self, x):
        y = self.linear(x)
        for i in range(x.shape[0]):  # Dynamic loop based on input size
            y[i] += torch.sin(y[i])
        return y
model = MyModel(16)
dummy_input = torch.randn(4, 16)
onnxplain.export(model, dummy_input, "my_model.onnx", sarif="log.sarif", opset_version=12, dynamic_axes={'input_0': 0})
"""


def test_the_tutorials_loop_exports_in_two_steps(load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script, log = tmp_path / "tutorial.py", tmp_path / "log.sarif"
    with pytest.raises(onnxplain.ExportFailed):
        load(SCRIPT, "tutorial")
    findings = read_log(log).findings
    assert [(each.rule.id, each.location.line) for each in findings if each.location is not None] == [("OXP1004", 15)] * 2
    assert [[edit.replacement for fix in each.fixes for edit in fix.edits] for each in findings] == [['"x"'], ["[0]"]]
    assert CliRunner().invoke(main, ["fix", "log.sarif"]).exit_code == 0
    fixed = script.read_text(encoding="utf-8")
    assert fixed == SCRIPT.replace("{'input_0': 0}", '{"x": [0]}')
    linecache.clearcache()
    model = load(fixed, "tutorial").model
    assert script.read_text(encoding="utf-8") == fixed
    notes = {each.rule.id: each.location.line for each in read_log(log).findings if each.location is not None}
    assert notes == {"OXP1024": 15, "OXP1037": 10}
    session = onnxruntime.InferenceSession(tmp_path / "my_model.onnx")
    for rows in (0, 1, 3, 4, 7):
        x = torch.randn(rows, 16)
        (y,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(y), model(x).detach())
