"""Scripts lose what their failure does not need, and nothing else: the rule, its arguments and the statement stay."""

from __future__ import annotations

import contextlib
import io
import itertools
import pathlib
import re
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

import onnxplain
from onnxplain.diagnostics import Diagnostic, Level
from onnxplain.process import Budget
from onnxplain.repro import minimise, trial_host, trials
from onnxplain.repro.constructed import constructed
from onnxplain.repro.cuts import Block, Brackets, Cut, Cuts, Parsed
from onnxplain.repro.removable import Part, Removable, cuts_of
from onnxplain.repro.trial_host import Answer, Failure
from onnxplain.repro.undefined import undefined
from onnxplain.rules import DataDependentBranch

Load = Callable[..., types.ModuleType]

SEVERAL = """
import torch
from torch import nn


def normalized(x):
    return x / x.norm()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.linear(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.name = "correct-horse-battery"
        self.blocks = nn.ModuleList(Block() for _ in range(6))
        self.head = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))

    def forward(self, x, scale):
        for block in self.blocks:
            x = block(x)
        x = normalized(x) * len(self.name)
        label = int(x.sum().item())  # blamed
        table = x.detach().numpy().tolist()
        x = self.head(x) + scale
        return torch.linalg.eigvals(x @ x.T) if label > 3 and table else x
"""


def test_a_script_loses_what_its_failure_does_not_need(load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A slow machine needs more time for the same.
    monkeypatch.setattr(minimise, "SECONDS", 6 * minimise.SECONDS)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    args = (torch.randn(3, 4), torch.tensor(2.0))
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(load(SEVERAL).Net().eval(), args, repro=folder / "repro.py", control_flow="report")
    first = next(finding for finding in failed.value.log.findings if finding.fails)
    assert first.location is not None
    script = (folder / "repro.py").read_text(encoding="utf-8")
    assert first.location.snippet in script
    for gone in ("eigvals", "head", "GELU", "scale", "blocks", "correct-horse", "def make"):
        assert gone not in script
    ran = subprocess.run([sys.executable, "repro.py"], cwd=folder, capture_output=True, text=True, check=False)
    found = re.search(r"ExportFailed: error\[(\w+)\].*?--> repro\.py:(\d+)", ran.stderr, re.DOTALL)
    assert found is not None, ran.stderr
    assert found[1] == first.rule.id
    assert script.splitlines()[int(found[2]) - 1].strip() == first.location.snippet


LOOP = """\
import onnxplain
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        count = 3
        while count:
            count -= 1
        return x if x.sum() > 0 else -x


torch.manual_seed(0)
model = Net()
args = (torch.ones(3),)
onnxplain.export(model, args, control_flow="report")
"""


BRANCH = Diagnostic(DataDependentBranch(condition="x.sum() > 0"), Level.ERROR, "capture")


def test_an_endless_loop_ends_with_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `count -= 1`, the loop never ends."""
    monkeypatch.setattr(minimise, "SECONDS", 4.0)
    budget = Budget(seconds=4.0)
    short = minimise.minimised(LOOP, BRANCH, budget)
    assert short.is_proven
    assert "x if x.sum() > 0 else -x" in short.text
    # NOTE: the last run, and the one that is stopped, may take a few seconds more.
    assert -4.0 < budget.seconds < 4.0


def test_a_spent_budget_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimise, "RUNS", 2)
    short = minimise.minimised(LOOP, BRANCH, Budget())
    assert (short.text, short.runs, short.is_proven) == (LOOP, 2, True)
    assert "budget" in short.remark


def test_a_busy_machine_spends_the_budget_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock jumps behind the first run, which itself takes little time of the processor."""
    clock = itertools.chain([0.0, 0.0], itertools.repeat(1e6))
    monkeypatch.setattr(minimise, "time", types.SimpleNamespace(monotonic=clock.__next__))
    short = minimise.minimised(LOOP, BRANCH, Budget())
    assert (short.text, short.runs, short.is_proven) == (LOOP, 1, True)
    assert "budget" in short.remark


def test_the_time_of_all_runs_together_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still, so that only the processor's time counts: 20 seconds, of which each run takes 8."""
    given: list[float] = []

    class Runs:
        def run(self, script: str, seconds: float, *, try_fixes: bool) -> Answer:
            given.append(seconds)
            return Answer(Failure(BRANCH.rule.id, [], "library.py", 1, 0), 8.0)

    monkeypatch.setattr(minimise, "trials", lambda: contextlib.nullcontext(Runs()))
    monkeypatch.setattr(minimise, "time", types.SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr(minimise, "SECONDS", 20.0)
    budget = Budget(seconds=20.0)
    short = minimise.minimised(LOOP, BRANCH, budget)
    assert given == [10.0, 12.0, 4.0]
    assert (short.runs, budget.seconds, "budget" in short.remark) == (3, -4.0, True)


def test_a_script_may_run_longer_on_a_busy_machine(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process may begin late as well, and need a moment to stop the script."""
    waited: list[float] = []

    def nothing(ready: Any, writable: Any, broken: Any, seconds: float) -> tuple[list[Any], ...]:
        waited.append(seconds)
        return [], [], []

    monkeypatch.setattr(trials, "select", types.SimpleNamespace(select=nothing))
    for name, value in (("_START", 100.0), ("_GRACE", 5.0)):
        monkeypatch.setattr(trials, name, value)
    process: Any = types.SimpleNamespace(stdin=io.StringIO(), stdout=io.StringIO())
    with pytest.raises(trials.Unable):
        trials.Trials(process, tmp_path).run("", 2.0, try_fixes=False)
    assert waited == [100.0 + 2.0 * trial_host.BUSY + 5.0]


SCRIPT = '''\
import math
import torch


def unused():
    return math.pi


class Net(torch.nn.Module):
    """A net with ü."""

    def forward(self, x, y):
        # an old remark
        z = self.first(x) + y
        if x.shape[0] > 2:
            z = z * 2
        elif y is None:
            z = 0
        else:
            z = -z
        return z.reshape(4, 8)


torch.manual_seed(0)
model = make(Net, {'first': torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()), 'second': torch.nn.Linear(2, 2)})
args = (torch.ones(2, 3), torch.ones(2, 3))
onnxplain.export(model, args, dynamic_shapes=({0: 'batch'}, None), opset_version=18)
'''


def left(cuts: list[Cut], text: str = SCRIPT) -> str:
    """What cuts leave, which is Python."""
    return Parsed(Cuts(cuts).applied(text)).text


def removable(text: str = SCRIPT, blamed: str = "return z.reshape") -> Removable:
    return Removable(Parsed(text), text.index(blamed))


def test_each_statement_can_go_alone_and_with_all_others() -> None:
    found = removable()
    for depth in range(found.depths):
        for part in found.statements(depth):
            assert "return z.reshape(4, 8)" in left(cuts_of([part]))
        assert "return z.reshape(4, 8)" in left(cuts_of(found.statements(depth)))
    inner = left(cuts_of(found.statements(2)))
    assert "remark" not in inner
    assert "if x.shape" not in inner


def test_what_the_script_itself_needs_stays() -> None:
    found = removable()
    text = left(cuts_of([*found.statements(0), *found.statements(1), *found.statements(2)]))
    assert all(each in text for each in ("import torch", "torch.manual_seed(0)", "model = ", "args = ", "onnxplain.export(", "class Net"))
    assert "import math" not in text


def test_names_that_are_not_mentioned_go_together() -> None:
    text = left(cuts_of(removable().unmentioned()))
    assert "unused" not in text
    assert "'second'" not in text
    assert "'first'" in text


def test_modules_keywords_and_inputs_can_go() -> None:
    found = removable()
    items = [left(cuts_of([part])) for part in found.items()]
    assert any("torch.nn.Sequential(torch.nn.Linear(3, 3))" in text for text in items)
    assert any("opset_version" not in text for text in items)
    inputs = [left(cuts) for cuts in found.inputs()]
    assert "def forward(self, x):" in inputs[1]
    assert "args = (torch.ones(2, 3),)" in inputs[1]
    assert "dynamic_shapes=({0: 'batch'},)" in inputs[1]
    assert undefined(Parsed(inputs[1]).tree) - undefined(Parsed(SCRIPT).tree) == {(".forward", "y")}
    by_name = SCRIPT.replace("({0: 'batch'}, None)", "{'x': {0: 'batch'}, 'y': None}")
    assert "dynamic_shapes={'x': {0: 'batch'}}" in left(list(removable(by_name).inputs())[1], by_name)


def test_calls_give_way_to_their_arguments_and_branches_to_their_bodies() -> None:
    found = removable()
    hoisted = {left(cuts) for cuts in found.hoisted()}
    assert any("z = x + y\n" in text for text in hoisted)
    assert any("z = self.first(x)\n" in text for text in hoisted)
    assert all("return z.reshape(4, 8)" in text and "torch.manual_seed(0)" in text for text in hoisted)
    assert any("\n        z = z * 2\n        return" in left(cuts) for cuts in found.unwrapped())


def test_a_class_makes_the_model_instead_of_the_helper() -> None:
    (cuts,) = constructed(Parsed(SCRIPT))
    assert "model = Net()\nmodel.first = torch.nn.Sequential(" in left(cuts)


def test_the_place_of_a_line_is_known_before_and_after_cuts() -> None:
    made = Cuts([Cut(2, 4), Cut(3, 6), Cut(8, 9, "pass")])
    assert made.applied("0123456789") == "0167pass9"
    assert [made.before(offset) for offset in range(9)] == [0, 1, 6, 7, 8, 8, 8, 8, 9]
    assert [made.after(offset) for offset in (0, 1, 6, 7, 9)] == [0, 1, 2, 3, 8]


def test_the_last_of_a_block_or_of_brackets_leaves_python() -> None:
    block = Block(((0, 4, True), (4, 8, True)), "  ")
    assert Cuts(cuts_of([Part(block, 0), Part(block, 1)])).applied("  a\n  b\n") == "  pass\n"
    text = "(a, b)"
    brackets = Brackets(1, 5, ((1, 2), (4, 5)), is_tuple=True)
    assert [Cuts(brackets.without(gone)).applied(text) for gone in ([0], [1], [0, 1])] == ["(b,)", "(a,)", "()"]
