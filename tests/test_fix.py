"""`onnxplain fix`: the fixes of a log on the disk, byte for byte."""

from __future__ import annotations

import linecache
import pathlib
import shutil
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

import onnxplain
from onnxplain.cli import main

BRANCH = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        name = "😀字"; y = x * 2 if x.sum() > 0 else x - 1
        return y
"""

CHECK = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        n = x.sum().int().item()
        if n < 2:
            return x + 1
        return x - 1
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["fix", *arguments])


def log_of(path: pathlib.Path, load_name: str = "model") -> pathlib.Path:
    log = path.with_suffix(".sarif")
    model = load(path)
    with pytest.raises(onnxplain.ExportFailed):
        onnxplain.export(model, (torch.ones(3),), sarif=log)
    return log


def scope_of(path: pathlib.Path) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": path.stem}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
    return scope


def load(path: pathlib.Path) -> torch.nn.Module:
    model = scope_of(path)["Net"]()
    assert isinstance(model, torch.nn.Module)
    return model


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("begins", ["", "# A page\x0c of text\u2028 in old style\n"], ids=["plain", "form-feed"])
def test_a_safe_fix_is_applied_and_exports(newline: str, begins: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net_é.py"
    source = (begins + BRANCH).replace("\n", newline).encode()
    path.write_bytes(source)
    before = load(path)
    log = log_of(path)
    told = run(str(log), "--diff")
    assert (told.exit_code, path.read_bytes()) == (0, source)
    assert "torch.cond" in told.stdout
    assert run(str(log)).exit_code == 0
    text = path.read_bytes().decode()
    assert text.count("\n") == text.count(newline)
    shutil.copy(path, tmp_path / "again.py")
    fixed = load(tmp_path / "again.py")
    program = onnxplain.export(fixed, (torch.ones(3),), verify=True)
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(program(x)[0], before(x))


def test_guesses_need_a_word(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(CHECK, encoding="utf-8")
    log = log_of(path)
    assert run(str(log)).exit_code == 0
    assert path.read_text(encoding="utf-8") == CHECK
    assert run(str(log), "--unsafe").exit_code == 0
    assert "torch._check(" in path.read_text(encoding="utf-8")
    onnxplain.export(load(path), (torch.ones(3),), verify=True)


@pytest.mark.parametrize(
    ("source", "change"),
    [(BRANCH, ("x * 2", "x * 3")), (CHECK, ("n < 2", "n < 3")), (CHECK, ("import torch", "import torch  # here\n")), (CHECK, (CHECK, ""))],
    ids=["replaced", "inserted before", "moved", "emptied"],
)
def test_a_changed_source_is_left_alone(source: str, change: tuple[str, str], tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(source, encoding="utf-8")
    log = log_of(path)
    changed = source.replace(*change)
    path.write_text(changed, encoding="utf-8")
    assert run(str(log), "--unsafe").exit_code == 1
    assert path.read_text(encoding="utf-8") == changed
    path.unlink()
    assert run(str(log), "--unsafe").exit_code == 1


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "ruff"}}}]}', '{"version": "2.0.0", "runs": []}']
)
def test_what_is_no_log_is_refused(text: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.sarif"
    path.write_text(text, encoding="utf-8")
    assert run(str(path)).exit_code == 2


TWO_DIMS = """\
import torch

import onnxplain


class Net(torch.nn.Module):
    def forward(self, x):
        total = torch.zeros(())
        for row in range(x.shape[0]):
            for column in range(x.shape[1]):
                total = total + x[row, column]
        return total


def go(log):
    dynamic_shapes = {"x": {0: "rows", 1: torch.export.Dim("columns"), 2: None}}
    return onnxplain.export(Net(), (torch.ones(3, 4, 1),), dynamic_shapes=dynamic_shapes, sarif=log)
"""


def test_one_edit_for_two_findings_is_applied_once(tmp_path: pathlib.Path) -> None:
    path, log = tmp_path / "model.py", tmp_path / "model.sarif"
    path.write_text(TWO_DIMS, encoding="utf-8")
    with pytest.raises(onnxplain.ExportFailed) as failed:
        scope_of(path)["go"](log)
    assert [finding.rule.id for finding in failed.value.log.findings] == ["OXP1003", "OXP1003"]
    result = run(str(log), "--unsafe")
    assert result.exit_code == 0, result.output
    changed = path.read_text(encoding="utf-8").splitlines()
    assert [line for line in changed if line not in TWO_DIMS.splitlines()] == ['    dynamic_shapes = {"x": {}}']
    linecache.checkcache(str(path))
    scope_of(path)["go"](log)
