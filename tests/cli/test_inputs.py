"""Example inputs and dims from the command line."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import onnx
import pytest
import torch
from click.testing import CliRunner, Result

from onnxplain.cli import main

NETS = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(2, 4)

    def forward(self, ids, scale, mask=None):
        found = self.table(ids) * scale
        return found if mask is None else found * mask.unsqueeze(-1)


def add(x, y):
    return x + y


def build():
    return Net(), (torch.zeros(7, 7, dtype=torch.int64), torch.ones(4)), {}, {"ids": {0: "own"}, "scale": None}


class Sized(torch.nn.Module):
    def __init__(self, size):
        super().__init__()

    def forward(self, x):
        return x


net = Net()
program = torch.export.export(torch.nn.ReLU(), (torch.ones(3),))
"""


@pytest.fixture(autouse=True)
def nets(folder: pathlib.Path) -> None:
    """`nets.py` in the current folder."""
    (folder / "nets.py").write_text(NETS, encoding="utf-8")


def run(*args: str) -> Result:
    """The result of `onnxplain export ARGS`."""
    return CliRunner().invoke(main, ["export", *args])


def inputs(path: str) -> dict[str, list[str | int]]:
    """The shapes of the inputs of a model."""
    return {each.name: [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim] for each in onnx.load(path).graph.input}


@pytest.mark.parametrize("target", ["nets.py:Net", "nets.py:net", "nets:net", "nets.py:build"])
def test_a_module_needs_no_function_around_it(target: str) -> None:
    result = run(target, "--input", "scale=f32[4]", "--input", "ids = i64[batch, length=6]", "--verify", "-o", "out.onnx")
    assert result.exit_code == 0, result.output
    assert inputs("out.onnx") == {"ids": ["batch", "length"], "scale": [4]}


def test_a_function_of_tensors_is_a_model() -> None:
    names = ["--input-names", "a,b", "--output-names", "sum"]
    assert run("nets.py:add", "--input", "x=f64[rows,3]", "--input", "y=f64[]", *names, "--verify").exit_code == 0
    assert inputs("add.onnx") == {"a": ["rows", 3], "b": []}
    assert [each.name for each in onnx.load("add.onnx").graph.output] == ["sum"]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("f16", torch.float16),
        ("bf16", torch.bfloat16),
        ("f32", torch.float32),
        ("f64", torch.float64),
        ("i8", torch.int8),
        ("i16", torch.int16),
        ("i32", torch.int32),
        ("i64", torch.int64),
        ("u8", torch.uint8),
        ("bool", torch.bool),
    ],
)
def test_dtypes(dtype: str, expected: torch.dtype, calls: list[Any]) -> None:
    assert run("nets.py:add", "--input", f"x={dtype}[5,2]", "--input", f"y={dtype}[5,2]").exit_code == 0
    (_, (x, y)), kwargs = calls[0]
    assert (x.dtype, x.shape, y.dtype) == (expected, (5, 2), expected)
    assert not torch.equal(x, y)
    assert kwargs["dynamic_shapes"] is None


def test_examples_have_sizes_that_no_other_dim_has(calls: list[Any]) -> None:
    for _ in range(2):
        assert run("nets.py:add", "--input", "x=f32[batch,3,height,width=2]", "--input", "y=f32[batch,5,height,1]").exit_code == 0
    (_, (x, y)), kwargs = calls[0]
    assert x.shape == (4, 3, 6, 2)
    assert y.shape == (4, 5, 6, 1)
    assert kwargs["dynamic_shapes"] == {"x": {0: "batch", 2: "height", 3: "width"}, "y": {0: "batch", 2: "height"}}
    assert torch.equal(x, calls[1][0][1][0])
    # torch.export fixes 0 and 1.
    assert run("nets.py:add", "--input", "x=f32[batch,height]", "--input", "y=f32[height]").exit_code == 0
    assert calls[2][0][1][0].shape == (2, 3)


@pytest.mark.parametrize(
    ("dynamic", "expected"),
    [
        (["--dynamic", "batch"], {"x": {0: "batch"}, "y": {}}),
        (["--dynamic", "batch,height"], {"x": {0: "batch", 1: "height"}, "y": {0: "height"}}),
        (["--dynamic", "batch", "--dynamic", "height"], {"x": {0: "batch", 1: "height"}, "y": {0: "height"}}),
        (["--dynamic", "all"], True),
        (["--dynamic", "none"], None),
    ],
)
def test_which_of_the_named_dims_are_dynamic(dynamic: list[str], expected: object, calls: list[Any]) -> None:
    assert run("nets.py:add", "--input", "x=f32[batch,height]", "--input", "y=f32[height]", *dynamic).exit_code == 0
    assert calls[0][1]["dynamic_shapes"] == expected


@pytest.mark.parametrize(("dynamic", "expected"), [("all", True), ("none", None)])
def test_dims_of_the_targets_own_inputs(dynamic: str, expected: object, calls: list[Any]) -> None:
    assert run("nets.py:build", "--dynamic", dynamic).exit_code == 0
    assert calls[0][1]["dynamic_shapes"] is expected


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--input", "x"], "NAME=DTYPE[SIZE"),
        (["--input", "x=f32"], "NAME=DTYPE[SIZE"),
        (["--input", "x=f32[1,]"], "NAME=DTYPE[SIZE"),
        (["--input", "x=f32[-1]"], "NAME=DTYPE[SIZE"),
        (["--input", "x=f32[batch=]"], "NAME=DTYPE[SIZE"),
        (["--input", "x=f32[3=4]"], "NAME=DTYPE[SIZE"),
        (["--input", "3=f32[4]"], "NAME=DTYPE[SIZE"),
        (["--input", "x=fp32[4]"], "'f32'"),
        (["--input", "x=f32[a=3,a=4]"], "'a'"),
        (["--input", "x=f32[3]", "--input", "x=f32[3]"], "'x'"),
        (["--input", "x=f32[3]"], "'y'"),
        (["--input", "x=f32[3]", "--input", "yy=f32[3]"], "'y'"),
        (["--input", "x=f32[batch]", "--input", "y=f32[]", "--dynamic", "bacth"], "'batch'"),
        (["--input", "x=f32[3]", "--input", "y=f32[]", "--dynamic", "batch"], "'batch'"),
    ],
)
def test_inputs_that_are_wrong(given: list[str], told: str, calls: list[Any]) -> None:
    result = run("nets.py:add", *given)
    assert (result.exit_code, told in result.stderr) == (2, True), result.output
    assert "Traceback" not in result.output
    assert not calls


def test_the_nearest_parameter_is_offered(calls: list[Any]) -> None:
    for given, near in (("yy", True), ("quite_different", False)):
        result = run("nets.py:add", "--input", "x=f32[3]", "--input", f"{given}=f32[3]")
        assert (result.exit_code, result.stderr.count("'y'")) == (2, 1 + near), result.output


@pytest.mark.parametrize(
    ("target", "given", "told"),
    [
        ("nets.py:net", [], "--input"),
        ("nets.py:Sized", ["--input", "x=f32[3]"], "'size'"),
        ("nets.py:program", ["--input", "input=f32[3]"], "ExportedProgram"),
        ("nets.py:build", ["--dynamic", "own"], "--input"),
        ("models.py:number", ["--input", "x=f32[3]"], "int"),
        ("models.py:returns_numbers", ["--input", "x=f32[3]"], "(int, int)"),
    ],
)
def test_targets_that_take_no_such_inputs(target: str, given: list[str], told: str, calls: list[Any]) -> None:
    result = run(target, *given)
    assert (result.exit_code, told in result.stderr) == (2, True), result.output
    assert not calls


def test_no_fix_edits_the_inputs_that_the_command_line_replaces(folder: pathlib.Path) -> None:
    """The dim of `scale` is fixed by that of `ids`, and `build` has dims of its own."""
    code = NETS.replace("return found if", "found = found[:, : len(scale)]\n        return found if")
    (folder / "nets.py").write_text(code, encoding="utf-8")
    result = run("nets.py:build", "--input", "ids=i64[batch,length]", "--input", "scale=f32[size=4]")
    assert result.exit_code == 1
    runs = json.loads((folder / ".sarif" / "Net.sarif").read_text(encoding="utf-8"))["runs"]
    (finding,) = runs[0]["results"]
    assert finding["ruleId"] == "OXP1003"
    assert finding["locations"][0]["physicalLocation"]["region"]["startLine"] == 10
    edited = [
        replacement["deletedRegion"]["startLine"]
        for fix in finding.get("fixes", ())
        for change in fix["artifactChanges"]
        for replacement in change["replacements"]
    ]
    assert code.splitlines().index("def build():") + 2 not in edited
