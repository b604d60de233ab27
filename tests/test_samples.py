"""The samples that users see first do what the README says."""

from __future__ import annotations

import importlib.util
import pathlib
import shutil
from types import ModuleType

import pytest
import torch
from click.testing import CliRunner

import onnxplain
from onnxplain.cli import main
from onnxplain.diagnostics import Confidence

SAMPLES = pathlib.Path(__file__).parent.parent / "vscode-samples"


def load(path: pathlib.Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_healthy_sample_exports_without_a_finding() -> None:
    model, args, kwargs, shapes = load(SAMPLES / "healthy.py", "healthy").build()
    program = onnxplain.export(model, args, kwargs=kwargs, dynamic_shapes=shapes, verify=True)
    assert program.diagnostics.findings == ()


def test_the_fix_of_the_data_dependent_sample_exports(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "data_dependent.py"
    shutil.copy(SAMPLES / path.name, path)
    model, args = load(path, "before").build()
    log = tmp_path / "log.sarif"
    with pytest.raises(onnxplain.ExportFailed) as caught:
        onnxplain.export(model, args, sarif=log)
    (finding,) = caught.value.findings
    assert finding.rule.id == "OXP1001"
    assert finding.fixes[0].confidence is Confidence.SAFE
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    assert finding.location is not None
    assert lines[(finding.location.line or 0) - 1].strip() == "if x.abs().max() > 1:"
    assert CliRunner().invoke(main, ["fix", str(log)]).exit_code == 0
    fixed, args = load(path, "after").build()
    program = onnxplain.export(fixed, args, verify=True)
    assert program.diagnostics.findings == ()
    for x in (torch.full((2, 8), 0.5), torch.full((2, 8), 3.0)):
        torch.testing.assert_close(program(x)[0], model(x))
