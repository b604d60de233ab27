"""`onnxplain memory`: where the memory of a model's activations goes."""

from __future__ import annotations

import pathlib
import sys

import onnx_ir as ir
import pytest
import torch
from click.testing import CliRunner, Result

import onnxplain
from onnxplain.cli import main

MODEL = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return (x[:, None] - x).exp().relu()

def build():
    return Net(), (torch.ones(512, 64),), None, {"x": {0: "rows"}}
"""


@pytest.fixture
def net(folder: pathlib.Path) -> pathlib.Path:
    (folder / "net.py").write_text(MODEL, encoding="utf-8")
    return folder


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["memory", *args])


def test_a_target_is_estimated_at_the_sizes_of_the_example(net: pathlib.Path) -> None:
    result = run("net.py:build", "--plot", "plot.svg")
    assert result.exit_code == 0, result.output
    for text in ("128 MiB", "net.py:6", "rows=512", "rows**2"):
        assert text in result.stdout
    picture = (net / "plot.svg").read_text(encoding="utf-8")
    assert picture.startswith("<?xml")
    assert "[rows, rows, 64]" in picture
    assert "#cf222e" in picture, "the peak is marked"
    assert "<dc:date>" not in picture
    assert not list(net.glob("*.onnx"))


def test_a_file_needs_sizes_for_its_dims(net: pathlib.Path) -> None:
    export = CliRunner().invoke(main, ["export", "net.py:build", "-o", "net.onnx", "--report"])
    assert export.exit_code == 0, export.output
    assert "128 MiB" in (net / "net.md").read_text(encoding="utf-8")
    assert "128 MiB" in CliRunner().invoke(main, ["report", ".sarif/Net.sarif"]).stdout
    assert "2.00 MiB" in run("net.onnx", "--size", "rows=64").stdout
    for wrong in (
        [],
        ["--size", "lines=4"],
        ["--size", "rows"],
        ["--size", "=64"],
        ["--size", "rows=-1"],
        ["--size", "rows=64", "--input", "x=f32[4,4]"],
    ):
        assert run("net.onnx", *wrong).exit_code == 2
    (net / "text.onnx").write_text("no model")
    assert run("text.onnx").exit_code == 2


@pytest.mark.parametrize("command", ["memory", "profile"])
def test_names_of_modules_begin_no_lines(folder: pathlib.Path, command: str) -> None:
    model = torch.nn.Sequential()
    model.add_module("first\nsecond\x1b", torch.nn.Linear(4, 4))
    onnxplain.export(model, (torch.ones(3, 4),), folder / "net.onnx")
    shown = CliRunner().invoke(main, [command, "net.onnx"]).stdout
    assert "first" in shown
    assert "\x1b" not in shown
    assert not [line for line in shown.splitlines() if line.startswith("second")]


# NOTE: the last ones would take forever if somebody computed them.
NAMES = ["a b", "CeilToInt(n/2)", "int(n)", "x)", "n%0", "(" * 2000, "n" * 2000, "9**9**9**9", "2**(9**9)**(9**9)"]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name[:20])
@pytest.mark.parametrize("command", ["memory", "profile"])
def test_a_dim_may_have_any_name(folder: pathlib.Path, command: str, name: str) -> None:
    program = onnxplain.export(lambda x: x.exp().cos(), (torch.ones(3, 4),), dynamic_shapes=({0: "rows"},))
    for value in (*program.model.graph.inputs, *(each for node in program.model.graph for each in node.outputs)):
        value.shape = ir.Shape([name, 4])
    program.save(folder / "net.onnx")
    without = CliRunner().invoke(main, [command, "net.onnx"])
    size = ["--size", f"{'n' if name == 'int(n)' else name}=3"]
    result = CliRunner().invoke(main, [command, "net.onnx", *([] if name == "n%0" else size)])
    assert (without.exit_code, result.exit_code) == (2, 2 if name == "n%0" else 0), result.output


def test_a_plot_needs_matplotlib_and_a_known_format(net: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("net.py:build", "--plot", "plot.nonsense").exit_code == 2
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("net.py:build", "--plot", "plot.png")
    assert result.exit_code == 2
    assert "onnxplain[plot]" in result.output


def test_a_program_tells_its_memory_and_refuses_unknown_dims() -> None:
    import torch

    program = onnxplain.export(lambda x: x.exp().cos(), (torch.ones(4, 1024),), dynamic_shapes={"x": {0: "rows"}})
    assert program.memory().peak == 2 * 4 * 1024 * 4
    assert program.memory(rows=8).peak == 2 * 8 * 1024 * 4
    for wrong in ({"lines": 3}, {"rows": -1}, {"rows": True}):
        with pytest.raises(onnxplain.InvalidArgument):
            program.memory(**wrong)
