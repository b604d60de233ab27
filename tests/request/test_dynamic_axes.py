"""Entries of `dynamic_axes` that do not fit the inputs are findings at the argument, with edits that make them fit."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from click.testing import CliRunner
from marks import needs_columns
from torch.export import Dim

import onnxplain
from onnxplain.cli import main
from onnxplain.request import as_shapes, misfit

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]

SOURCE = """
import onnxplain
import torch


class Net(torch.nn.Module):
    def forward(self, x, mask):
        return x * mask


def go():
    args = (torch.ones(4, 6), torch.ones(4, 6))
    return onnxplain.export(Net(), args, OPTIONS)  # HERE
"""


def options(axes: str, names: str = 'sarif="log.sarif"') -> str:
    return f"opset_version=18, {names}, dynamic_axes={axes}"


NAMED = 'input_names=["a", "b"], sarif="log.sarif"'


@needs_columns
@pytest.mark.parametrize(
    ("given", "count", "after"),
    [
        # The form of the axes.
        (options('{"x": 0, "mask": [0]}'), 1, options('{"x": [0], "mask": [0]}')),
        (options('{"x": {0}, "mask": {"0": "rows"}}'), 2, options('{"x": [0], "mask": {0: "rows"}}')),
        (options('{"x": [1, "0"], "mask": {-1, 0}}'), 2, options('{"x": [1, 0], "mask": [-1, 0]}')),
        # The name: the only input that is left, the nearest, or that of the parameter.
        (options('{"x": [0], "input_1": [0]}'), 1, options('{"x": [0], "mask": [0]}')),
        (options('{"mask_": [0], "X_": 0}'), 3, options('{"mask": [0], "x": [0]}')),
        (options('{"x": [0], "b": [0]}', NAMED), 1, options('{"a": [0], "b": [0]}', NAMED)),
        # The name of an output that has none, first, in the middle and last; or no name at all.
        (options('{"output": 0, "x": [0], "mask": [0]}'), 1, options('{"x": [0], "mask": [0]}')),
        (options('{"x": [0], "output": [0], "mask": [0]}'), 1, options('{"x": [0], "mask": [0]}')),
        (options('{"x": [0], "mask": [0], "y": {0: "n"}}'), 1, options('{"x": [0], "mask": [0]}')),
    ],
)
def test_the_safe_edits_make_the_axes_fit(
    given: str, count: int, after: str, load: Load, marked: Marked, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = load(SOURCE.replace("OPTIONS", given))
    with pytest.raises(onnxplain.ExportFailed) as failed:
        module.go()
    findings = failed.value.findings
    assert [finding.rule.id for finding in findings] == ["OXP1004"] * count
    assert {finding.location.line for finding in findings} == set(marked("HERE"))
    assert all(finding.location.file == str(tmp_path / "model.py") for finding in findings)
    done = CliRunner().invoke(main, ["fix", "log.sarif"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "model.py").read_text() == SOURCE.replace("OPTIONS", after)
    program = load(SOURCE.replace("OPTIONS", after)).go()
    assert next(value.shape[0].value for value in program.model.graph.inputs) not in (4, None)


@needs_columns
def test_what_is_no_name_is_a_guess_and_what_is_no_axis_has_no_edit(load: Load) -> None:
    module = load(SOURCE.replace("OPTIONS", options('{"first": "rows", "other": 0.5}', "f=None")))
    with pytest.raises(onnxplain.ExportFailed) as failed:
        module.go()
    texts = [[(fix.confidence.value, edit.replacement) for fix in each.fixes for edit in fix.edits] for each in failed.value.findings]
    assert texts == [[("guess", '"x"')], [("safe", '"mask"')], [("guess", '{0: "rows"}')], []]


@pytest.mark.parametrize("axes", ["True", "[True]", "{True: 'rows'}"])
def test_a_bool_is_no_axis(axes: str, load: Load) -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        load(SOURCE.replace("OPTIONS", options(f'{{"x": {axes}, "mask": [0]}}', "f=None"))).go()
    (finding,) = failed.value.findings
    assert finding.rule.id == "OXP1004"
    assert not any(fix.edits or fix.snippet for fix in finding.fixes)


def test_axes_in_a_variable_of_another_form_come_as_code(load: Load) -> None:
    source = SOURCE.replace("OPTIONS", "dynamic_axes=axes").replace("    args", "    axes = dict(input_0=0, mask=[0])\n    args")
    with pytest.raises(onnxplain.ExportFailed) as failed:
        load(source).go()
    assert {fix.snippet for finding in failed.value.findings for fix in finding.fixes} == {'dynamic_axes = {"x": [0], "mask": [0]}'}


def test_axes_of_inputs_that_do_not_fit_are_checked_alone() -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    one = (torch.ones(2),)
    assert as_shapes(model, one, {}, [], {"z": {0: "n"}}) is None
    assert misfit(model, one, {}, [], [], {"z": {0: "n"}}) is None
    found = misfit(model, one, {}, [], [], {"z": 3})
    assert found is not None
    assert found.fitting() == {"z": [3]}


def test_entries_that_do_not_fit_leave_their_inputs_static() -> None:
    class Two(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x + y

    args = (torch.ones(2), torch.ones(2))
    assert as_shapes(Two(), args, {}, [], {"x": 0, "y": [0]}) == {"x": None, "y": {0: Dim.DYNAMIC}}  # type: ignore[dict-item]
