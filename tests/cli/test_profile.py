"""`onnxplain profile`: where the time and the memory of a run go."""

from __future__ import annotations

import csv
import io
import pathlib

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result

import onnxplain
from onnxplain.cli import main


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["profile", "net.onnx", *args])


@pytest.fixture
def net(folder: pathlib.Path) -> None:
    shapes = {"x": {0: "rows"}, "mask": None}
    program = onnxplain.export(lambda x, mask: x.cos() * mask, (torch.ones(4, 8), torch.ones(8, dtype=torch.bool)), dynamic_shapes=shapes)
    program.save("net.onnx")


@pytest.mark.usefixtures("net")
def test_inputs_are_made_or_read() -> None:
    made = run("--size", "rows=5", "--runs", "2")
    assert made.exit_code == 0, made.output
    assert "Cos" in made.stdout
    np.savez("inputs.npz", x=np.ones((6, 8), np.float32), mask=np.ones(8, bool))
    rows = csv.DictReader(io.StringIO(run("--inputs", "inputs.npz", "--format", "csv").stdout))
    assert {row["name"]: row["self_bytes"] for row in rows if row["by"] == "operator"}["Cos"] == str(6 * 8 * 4)


def test_made_floats_are_no_whole_numbers_and_made_integers_are_small(folder: pathlib.Path) -> None:
    """Other inputs lie beyond the table, which ONNX Runtime refuses."""
    table = torch.ones(2)
    args = torch.ones(50), torch.ones(50, dtype=torch.int64)
    onnxplain.export(lambda x, places: table[places] + table[(x == x.round()).all().long().reshape(1) * 2], args, folder / "net.onnx")
    made = run("--runs", "1")
    assert made.exit_code == 0, made.output


@pytest.mark.usefixtures("net")
def test_wrong_inputs_are_refused() -> None:
    np.savez("other.npz", x=np.ones((6, 8), np.float32))
    np.savez("shape.npz", x=np.ones((6, 9), np.float32), mask=np.ones(8, bool))
    pathlib.Path("text.npz").write_text("no arrays")
    for wrong in (
        [],
        ["--size", "columns=3"],
        ["--inputs", "other.npz"],
        ["--inputs", "text.npz"],
        ["--inputs", "missing.npz"],
        ["--inputs", "other.npz", "--size", "rows=3"],
    ):
        assert run(*wrong).exit_code == 2, wrong
    assert run("--inputs", "shape.npz").exit_code == 1
