"""The samples that users see first do what the README says."""

from __future__ import annotations

import importlib.util
import pathlib
import shutil
from types import ModuleType

import pytest
import torch

import onnxplain
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
    with pytest.raises(onnxplain.ExportFailed) as caught:
        onnxplain.export(model, args)
    (finding,) = caught.value.findings
    assert finding.rule.id == "OXP1001"
    assert finding.fixes[0].confidence is Confidence.SAFE
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    assert finding.location is not None
    assert lines[(finding.location.line or 0) - 1].strip() == "if x.abs().max() > 1:"
    (edit,) = finding.fixes[0].edits
    region = edit.region
    first, last = lines[region.line - 1], lines[region.last_line - 1]
    head = first[: (region.column or 1) - 1]
    tail = last[region.end_column - 1 :] if region.end_column else "\n"
    lines[region.line - 1 : region.last_line] = [head + edit.replacement + tail]
    path.write_text("".join(lines), encoding="utf-8")
    fixed, args = load(path, "after").build()
    program = onnxplain.export(fixed, args, verify=True)
    assert program.diagnostics.findings == ()
    for x in (torch.full((2, 8), 0.5), torch.full((2, 8), 3.0)):
        torch.testing.assert_close(program(x)[0], model(x))
