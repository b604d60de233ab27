"""`onnxplain.testing`: an assertion for the tests of a model."""

from __future__ import annotations

import inspect
import pathlib
import re
import subprocess
import sys

import pytest
import torch
from marks import needs_columns

import onnxplain
from onnxplain.testing import assert_exports

RECIPE = pathlib.Path(__file__).resolve().parents[2] / "vscode-samples/recipes/test_exports.py"


class Halves(torch.nn.Module):
    """A branch on data, a dim that is fixed to 4, and a layer in training mode."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() < 0:
            return -x
        return self.dropout(x).reshape(4, 3)


class Approximate(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if torch.compiler.is_exporting() else x * 1.1


def test_what_exports_is_returned() -> None:
    program = assert_exports(torch.nn.Linear(3, 2).eval(), torch.ones(5, 3), dynamic_shapes={"input": {0: "batch"}})
    assert isinstance(program, onnxplain.ONNXProgram)
    assert program(torch.ones(7, 3))[0].shape == (7, 2)


def test_it_fails_with_every_finding(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "log.sarif"
    with pytest.raises(AssertionError) as caught:
        assert_exports(Halves(), (torch.ones(4, 3),), dynamic_shapes={"x": {0: "batch"}}, sarif=log)
    text = str(caught.value)
    assert "error[OXP1001]" in text
    assert "error[OXP1003]" in text
    branch = inspect.getsourcelines(Halves.forward)[1] + 1
    assert f"{pathlib.Path(__file__).name}:{branch}:" in text
    assert log.exists()
    assert caught.value.__context__ is None, "the exception behind it would be shown at length"


def test_results_are_compared_unless_told_otherwise() -> None:
    with pytest.raises(AssertionError, match=r"error\[OXP6002\]"):
        assert_exports(Approximate(), torch.ones(3))
    assert_exports(Approximate(), torch.ones(3), verify=False)


def test_what_could_not_be_compared_fails() -> None:
    """ONNX Runtime has no kernel for it."""
    model, x = torch.nn.Fold((4, 5), (2, 2)), torch.ones(1, 8, 12, dtype=torch.float64)
    with pytest.raises(AssertionError, match=r"warning\[OXP6004\]"):
        assert_exports(model, x)
    for options in ({"verify": False}, {"diagnostic_options": onnxplain.DiagnosticOptions(ignore=("OXP6004",))}):
        assert isinstance(assert_exports(model, x, **options), onnxplain.ONNXProgram)


def test_warnings_fail_only_on_request() -> None:
    model = torch.nn.Sequential(torch.nn.Dropout(0.5))
    named = {"random_outputs": ("dropout",)}
    assert assert_exports(model, torch.ones(3), **named).diagnostics.count(onnxplain.Level.WARNING) == 2
    for others in ({}, {"random_outputs": ("another",)}):
        with pytest.raises(AssertionError, match=r"warning\[OXP6006\]"):
            assert_exports(model, torch.ones(3), **others)
    strict = onnxplain.DiagnosticOptions(warnings_as_errors=True)
    with pytest.raises(AssertionError, match=r"error\[OXP1007\]"):
        assert_exports(model, torch.ones(3), diagnostic_options=strict, **named)
    lenient = onnxplain.DiagnosticOptions(warnings_as_errors=True, ignore=("OXP1007", "OXP6006"))
    assert_exports(model, torch.ones(3), diagnostic_options=lenient)


def test_bad_arguments_are_no_failed_assertion() -> None:
    with pytest.raises(onnxplain.InvalidArgument):
        assert_exports(torch.nn.ReLU(), "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        assert_exports(torch.nn.ReLU(), torch.ones(3), dynamc_shapes=None)


@needs_columns
@pytest.mark.slow
def test_pytest_shows_the_findings_and_the_line_of_the_test(tmp_path: pathlib.Path) -> None:
    """The recipe, run as a user does: the output has no frame of onnxplain and no log records of torch."""
    samples = RECIPE.parent.parent
    (tmp_path / "models").mkdir()
    for name in ("healthy", "frozen_batch"):
        (tmp_path / f"models/{name}.py").write_text((samples / f"{name}.py").read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / RECIPE.name).write_text(RECIPE.read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "--color=no", RECIPE.name]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert shown.returncode == 1, shown.stdout + shown.stderr
    assert "1 failed, 1 passed" in shown.stdout
    assert "FAILED test_exports.py::test_exports[frozen_batch]" in shown.stdout
    assert "E       error[OXP1003]" in shown.stdout
    assert "frozen_batch.py:20:16" in shown.stdout
    assert re.search(r"^> +assert_exports\(", shown.stdout, re.MULTILINE)
    for noise in ("testing.py:", "torch.__trace", "Captured"):
        assert noise not in shown.stdout
