"""`onnxplain fix`: the fixes of a log on the disk, byte for byte."""

from __future__ import annotations

import contextlib
import linecache
import pathlib
import shutil
import sys
import textwrap
import types
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from marks import IS_3_11, needs_columns

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
            print(end="")
            return x + 1
        return x - 1
"""


HEAD = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x, n=torch.tensor(0)):
"""
X = torch.arange(12.0).reshape(4, 3)

LOOPS = {
    "range-item": """
        total = torch.zeros(3)
        for i in range(n.item()):
            total = total + x[i] * i
        return total
    """,
    "range-int": """
        for _ in range(int(n)):
            x = x * 0.5
            # A comment.
            y = x + 1
        return x - 1
    """,
    "range-of-max": """
        h = torch.zeros_like(x)
        for i in range(1, int(n.max()), 2):
            h += x * i
        return h
    """,
    "range-of-local": """
        k = n.item()
        a, b = x, x * 0
        for _ in range(k):
            a, b = b, a + b
        return a, b
    """,
    "while": """
        y, steps = x * 1, 0
        while y.sum() < n:
            y = y + 1
            steps += 1
        return y, steps
    """,
    "while-with-branch": """
        y = x - 10
        while y.sum() < n and y.max() < 3:
            if y.sum() > -5:
                y += 0.5
            else:
                y = y + 1
        return y
    """,
}
BRANCHES = {
    "several": """
        y = x * 2
        if n > 2:
            z = x + 1
            y = y * z
        else:
            z = x - 1
        return y, z
    """,
    "in-place": """
        y = x * 2
        if n > 2:
            y += 1
        return y
    """,
    "elif": """
        if n > 4:
            return x + 1
        elif n > 2:
            return x * 2
        else:
            y = x - 1
            return y
    """,
    "elif-assign": """
        y = x * 1
        if x.shape[0] == 100:
            y = x * 7
        elif n > 2:
            y = x * 2
        else:
            z = x * 3
            y = z - 1
        return y
    """,
    "nested": """
        y = x
        if n > 2:
            y = x + 1
            if n > 4:
                y = y * 3
        return y * 2
    """,
    "early": """
        if n > 4:
            return x
        y = x + 1
        y *= 2
        if n > 2:
            return y
        return y - 1
    """,
    "and": """
        if n > 2 and not n > 4:
            return x + 1
        return x - 1
    """,
    "not-or": """
        if self.training or n == 3 or n == 5:
            x = x * 2
        return x + 0
    """,
    "inside": """
        return x + 2 * (x * 3 if n > 2 else x) - 1
    """,
    "equal": """
        if torch.equal(x[0] * 0 + n, torch.full((3,), 3)):
            return x + 1
        return x - 1
    """,
    "any": """
        if any(part.max() < n for part in x.unbind(1)):
            return x + 1
        return x - 1
    """,
    "number": """
        k = n.item()
        y = x * 1
        if k > 2:
            y = x + k
        return y
    """,
    "integers": """
        k = 2
        if n > 2:
            k = 5
        return x * k
    """,
    "fallen-through": """
        if n > 2:
            x = x + 1
        else:
            return x
        y = x * 2
        return y
    """,
}


@pytest.mark.parametrize("body", [*LOOPS.values(), *BRANCHES.values()], ids=[*LOOPS, *BRANCHES])
@pytest.mark.falls_back
def test_control_flow_keeps_its_results(body: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n", encoding="utf-8")
    before = load(path)
    log = tmp_path / "net.sarif"
    for _ in range(3):
        # NOTE: an edit shows the next line that depends on data.
        with contextlib.suppress(onnxplain.ExportFailed):
            program = onnxplain.export(load(path), (X, torch.tensor(3)), sarif=log, verify=True, control_flow="report")
            break
        # NOTE: the fix of a branch contains those of the branches in it.
        assert run(str(log), "--unsafe").exit_code in (0, 1)
        linecache.clearcache()
    assert "torch." in path.read_text(encoding="utf-8").replace(HEAD, "")
    for n in (0, 1, 3, 4, 5) if "x[i]" not in body else (0, 1, 4):
        expected = before(X.clone(), torch.tensor(n))
        for each in (program(X, torch.tensor(n)), load(path)(X.clone(), torch.tensor(n))):
            leaves = [each] if isinstance(each, torch.Tensor) else [*each]
            wanted = [expected] if isinstance(expected, torch.Tensor) else [*expected]
            torch.testing.assert_close([*map(torch.as_tensor, leaves)], [*map(torch.as_tensor, wanted)])


@pytest.mark.parametrize(
    ("body", "safe"),
    [
        ("return x.view(4, 3).sum(1)", True),
        ("return x.reshape((4, 1, 3)) + 1", True),
        ("return x + torch.ones(4, 1)", False),
        ("return torch.zeros(4, 3) + x", False),
        ("return torch.stack([row.softmax(0) * 2 for row in x])", True),
        ("return torch.stack([torch.relu(row) for row in x])", True),
    ],
)
def test_a_literal_size_is_taken_from_the_input(body: str, safe: bool, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(HEAD.replace(", n=torch.tensor(0)", "") + f"        {body}\n", encoding="utf-8")
    log = tmp_path / "net.sarif"
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(load(path), (X,), dynamic_shapes=({0: "batch"},), sarif=log, control_flow="report")
    (finding,) = failed.value.log.findings
    assert finding.rule.id == "OXP1003"
    assert (finding.fixes[0].confidence.value == "safe") is safe
    assert run(str(log), *([] if safe else ["--unsafe"])).exit_code == 0
    linecache.clearcache()
    program = onnxplain.export(load(path), (X,), dynamic_shapes=({0: "batch"},), verify=True)
    for rows in (1, 2, 7):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(program(x)[0], load(path)(x))


OTHERS = {
    "branches of two dtypes": (
        "hot = lambda x: -x\n        cold = lambda x: x > 0\n        return torch.cond(n > 0, hot, cold, (x,))",
        "OXP1029",
        "hot = lambda x: -x\n        cold = lambda x: (x > 0).to(torch.float32)\n        return torch.cond(n > 0, hot, cold, (x,))",
    ),
    "int": ("k = int(n)\n        return x * k", "OXP1002", "k = n.long().item()\n        return x * k"),
    "any": (
        "flag = any(part.max() > 9 for part in x)\n        return x * flag",
        "OXP1001",
        "flag = torch.stack([part.max() > 9 for part in x]).any()\n        return x * flag",
    ),
    "allclose": (
        "if torch.allclose(x, x * n):\n            return x + 1\n        return x",
        "OXP1001",
        "return torch.cond(torch.isclose(x, x * n).all(), lambda x: x + 1, lambda x: x.clone(), (x,))",
    ),
    "assert": (
        "assert torch.equal(x, x)\n        return x",
        "OXP1001",
        "assert torch.compiler.is_exporting() or torch.equal(x, x)\n        return x",
    ),
}


@pytest.mark.parametrize(("body", "rule", "fixed"), OTHERS.values(), ids=OTHERS)
def test_the_edit_of_an_expression(body: str, rule: str, fixed: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(f"{HEAD}        {body}\n", encoding="utf-8")
    log = tmp_path / "net.sarif"
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(load(path), (X, torch.tensor(3)), sarif=log, strategies=("non-strict", "draft"), control_flow="report")
    assert [finding.rule.id for finding in failed.value.log.findings] == [rule]
    if not any(fix.edits for finding in failed.value.log.findings for fix in finding.fixes) and not IS_3_11:
        pytest.skip("Python knows no columns before 3.11")
    run(str(log), "--unsafe")
    assert path.read_text(encoding="utf-8") == f"{HEAD}        {fixed}\n"
    linecache.clearcache()
    onnxplain.export(load(path), (X, torch.tensor(3)), verify=True)


def test_an_edit_that_cannot_be_captured_is_only_shown(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(f"{HEAD}        y = x\n        while y.sum() < n:\n            y = y[1:] * 1\n        return y\n", encoding="utf-8")
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(load(path), (X, torch.tensor(3)))
    (finding,) = failed.value.log.findings
    assert [bool(fix.edits) for fix in finding.fixes] == [False]
    assert "torch.while_loop" in finding.fixes[0].snippet


def run(*arguments: str) -> Result:
    """Runs the command where the log is, as its user would."""
    folder = pathlib.Path(arguments[0]).parent
    return CliRunner().invoke(main, ["fix", "--root", str(folder), *arguments])


def log_of(path: pathlib.Path, load_name: str = "model") -> pathlib.Path:
    log = path.with_suffix(".sarif")
    model = load(path)
    with pytest.raises(onnxplain.ExportFailed):
        onnxplain.export(model, (torch.ones(3),), sarif=log, control_flow="report")
    return log


def scope_of(path: pathlib.Path) -> dict[str, Any]:
    # NOTE: TorchDynamo imports the module of the functions that it inlines.
    module = sys.modules[path.stem] = types.ModuleType(path.stem)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
    return vars(module)


def load(path: pathlib.Path) -> torch.nn.Module:
    model = scope_of(path)["Net"]()
    assert isinstance(model, torch.nn.Module)
    return model.eval()


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


@needs_columns
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
