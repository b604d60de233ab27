"""Loops over sizes and branches on data that an export rewrites in a copy of the model."""

from __future__ import annotations

import pathlib
import sys
import textwrap
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from benchmarks.coverage.architectures import trials
from benchmarks.coverage.comparison import Outcome
from marks import IS_3_11, needs_runtime
from packaging.version import Version
from torch.export import Dim

import onnxplain
from onnxplain.diagnostics import Confidence

Load = Callable[..., types.ModuleType]
Marked = Callable[..., list[int]]

NET = """
    import torch


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)
            self.cell = torch.nn.GRUCell(3, 3)
            self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(3)])
            self.dropout = torch.nn.Dropout()

        def counted(self):
            self.count = getattr(self, "count", 0) + 1
            return self.count

        def forward(self, x):
            {}
"""

FORWARDS = {
    "items-changed-in-place": """
        y = self.linear(x)
        for i in range(x.shape[0]):  # HERE
            y[i] += torch.sin(y[i])
        return y
    """,
    "rows-at-once": """
        y = self.linear(x)
        z = x * 2
        for i in range(len(x)):  # HERE
            y[i] += torch.sin(y[i]) * 2
            z[i] = torch.clamp(-z[i], min=0.5) ** 2 / z[i].exp()
        return y, z
    """,
    "items-in-the-dtype-of-the-tensor": """
        out, h = torch.zeros_like(x), torch.zeros_like(x[0])
        for i in range(x.shape[0]):  # HERE
            h = h * 0.5 + x[i]
            out[i] = h.to(out.dtype)
        return out
    """,
    "rows-of-another": """
        y = self.linear(x)
        for i in range(x.shape[0]):  # HERE
            y[i] += x[i] * i
        return y
    """,
    "loops-in-loops": """
        h = x * 1
        total = torch.zeros(3)
        for i in range(x.shape[0]):  # HERE
            for row in x:
                h = torch.tanh(h * 0.5 + row)
            state = x[i] * 0
            for j in range(x.shape[0]):
                state = torch.sin(state + x[j])
            total = total + state
        return h, total
    """,
    "state": """
        h = torch.zeros_like(x[0])
        for row in x:  # HERE
            h = torch.tanh(self.linear(h) + row)
        return h
    """,
    "results-in-a-list": """
        h = x.mean(0)[None]
        token = x[:1]
        outputs = []
        for _ in range(len(x)):  # HERE
            h = self.cell(token, h)
            token = self.linear(h)
            outputs.append(token)
        return torch.stack(outputs, dim=-1), h
    """,
    "a-list-without-a-state": """
        parts = []
        for row in x:  # HERE
            parts.append(row[None] * 2)
        return torch.cat(parts, 0) + torch.cat(parts)
    """,
    "a-list-that-gives-its-name-away": """
        parts = []
        for row in x:  # HERE
            parts.append(row * 2)
        parts = torch.stack(parts)
        return parts + 1
    """,
    "a-comprehension": """
        y = x.flip(0)
        parts = [self.linear(a) + b * i for i, (a, b) in enumerate(zip(x, y))]  # HERE
        parts = torch.stack(parts)
        return torch.cat([x[i][None] * i for i in range(x.shape[0])], dim=1) + parts.sum()  # HERE
    """,
    "lists-of-rows": """
        x = torch.stack(list(x)) * 2  # HERE
        total = sum(x)  # HERE
        order = torch.tensor(range(x.shape[0]))  # HERE
        return x[list(range(len(x)))[::-1]] * order[:, None] + total  # HERE
    """,
    "windows": """
        h, t = torch.zeros(3), 0
        while t < x.shape[0]:  # HERE
            h = torch.tanh(h * 0.5 + x[t])
            t += 1
        y = torch.cat([x, x])
        pairs = [y[i : i + 2] - x[i] for i in range(x.shape[0])]  # HERE
        return torch.cat([h[None], *([x[:1]] * x.shape[0])]) + sum(pairs).sum()  # HERE
    """,
    "branches-on-the-number": """
        h = x[0] * 0
        for i in range(x.shape[0]):  # HERE
            if i % 2 == 0:
                h = h + x[i]
            else:
                h = h * 0.5 - x[i]
        return h
    """,
    "an-item-repeated-in-a-list": """
        numbers = torch.tensor([3] * len(x))  # HERE
        rows = torch.stack([x.mean(0)] * x.shape[0])  # HERE
        return rows + torch.cat([x[:1] for _ in range(x.size(0))]) * numbers[:, None]  # HERE
    """,
    "numbers-and-rows": """
        state = torch.zeros(x.shape[0])
        out = torch.empty_like(x.T)
        for t, column in enumerate(x.T.unbind(dim=0)):
            state = state * 0.5 + column
            out[t, :] = state
        for t, (row) in enumerate(x.T.unbind(dim=1)):  # HERE
            out[:, t] = out[:, t] - row
        return out
    """,
    "two-tensors-of-other-lengths": """
        total = torch.zeros(3)
        for a, b in zip(x, x.flip(0)[1:]):  # HERE
            total += (a * b
                      - a)
        return total
    """,
    "backwards": """
        h = torch.zeros_like(x[0])
        out = torch.zeros_like(x)
        for i in reversed(range(x.shape[0])):  # HERE
            h = h * 0.5 + x[i]
            out[..., i, :] = h
        for i in range(x.shape[0] - 1, 0, -2):  # HERE
            out[i, 1:] = x[i - 1, 1:]
        return out
    """,
    "data-in-the-body": """
        keep = torch.ones(x.shape[0], dtype=torch.bool)
        for i in range(x.shape[0]):  # HERE
            drop = (x[:, 0] > x[i, 0]) & (torch.arange(x.shape[0]) > i) & keep[i]
            keep = keep & ~drop
        return keep.float()
    """,
    "branches-in-the-body": """
        h = torch.zeros(3)
        for row in x:  # HERE
            if row.sum() > 0:
                h = h * 0.5 + row
            if h.max() > 1:
                h = h - 1
            else:
                h = h + row
        return h
    """,
    "while": """
        y = x
        while y.abs().max() > 1:  # HERE
            y = y / 2
        return y
    """,
    "end-by-data": """
        total = torch.zeros(())
        for row in x:
            total = total + row.sum()
            if total > 2:  # HERE
                break
        return total
    """,
    "end-of-a-loop-over-modules": """
        for layer in self.layers:
            x = torch.relu(layer(x)) * 2
            if x.max() > 1:  # HERE
                break
        return x
    """,
    "branches-one-after-another": """
        if x.sum() > 0:  # HERE
            x = x * 2
        y = x + 1
        if y.max() > 1.5:  # HERE
            return y - 3
        return y
    """,
    "appended-in-both-ways": """
        parts = []
        for i in range(3):
            mask = x[:, i] > 0
            if mask.any():  # HERE
                rows = x[mask]
                parts.append(rows.mean(0))
            else:
                parts.append(torch.zeros(3))
        return torch.stack(parts)
    """,
    "functions-that-a-capture-replaces": """
        total = torch.zeros(3)
        for row in x:  # HERE
            total = total * torch.tensor(0.5) + torch.nn.functional.one_hot(row.argmax(), 3) * torch.linspace(0, 1, 3)
        return total
    """,
    "from-the-end": """
        state, states, others = torch.zeros(3), [], []
        for t in range(x.shape[0] - 1, -1, -1):  # HERE
            state = state * 0.5 + x[t]
            states.append(state)
            others.insert(0, state * 2)
        states.reverse()
        return torch.stack(states), torch.stack(others), states[-1]
    """,
    "the-last-item": """
        state, states = torch.zeros(3), []
        for row in x:  # HERE
            state = state * 0.5 + row
            states.append(state)
        return states[-1] + torch.stack(states[::-1])
    """,
    "a-number-that-becomes-a-tensor": """
        total, mean = 0, 0.0
        for i, row in enumerate(x):  # HERE
            total += row.sum() * i
            mean = self.linear(row).mean() + mean
        return total / len(x) + mean
    """,
    "a-tensor-that-grows": """
        y, z = x.new_empty(0, 3), None
        for t in range(x.shape[0]):  # HERE
            part = self.linear(x[t : t + 1])
            y = torch.cat([y, part * t], dim=0)
            if z is None:
                z = part
            else:
                z = torch.cat((z, part))
        return y, z
    """,
    "changes-what-it-iterates-over": """
        for row in x:  # HERE
            x = x + row
        return x
    """,
}
"""Bodies of `forward`, with the lines that are rewritten."""


def exported(model: Any, rows: int = 4, **options: Any) -> onnxplain.ONNXProgram:
    torch.manual_seed(0)
    return onnxplain.export(model, (torch.randn(rows, 3),), dynamic_shapes=({0: Dim.DYNAMIC},), **options)


def found(findings: Any) -> list[tuple[str, int | None]]:
    return [(each.rule.id, each.location.line) for each in findings]


@pytest.mark.parametrize("forward", FORWARDS)
def test_loops_and_branches_are_rewritten(forward: str, load: Load, marked: Marked, tmp_path: pathlib.Path) -> None:
    body = "\n".join(line[8:] for line in FORWARDS[forward].strip("\n").splitlines()).strip().replace("\n", "\n            ")
    model = load(NET.format(body)).Net().eval()
    source = (tmp_path / "model.py").read_text()
    program = exported(model)
    lines = marked("HERE")
    assert set(found(program.diagnostics.findings)) >= {("OXP1037", line) for line in lines}
    assert {rule for rule, _ in found(program.diagnostics.findings)} == {"OXP1037"}
    assert (tmp_path / "model.py").read_text() == source
    for rows in (1, 2, 4, 7):
        for scale in (1, -1):
            x = torch.randn(rows, 3) * scale
            with torch.no_grad():
                expected = model(x.clone())
            expected = expected if isinstance(expected, tuple) else (expected,)
            torch.testing.assert_close(tuple(program(x)), tuple(expected), rtol=1e-4, atol=1e-5)


def test_a_dim_that_is_fixed_because_it_equals_another(load: Load) -> None:
    """The addition fixes the dim of `mask` as long as the loop fixes that of `x`."""
    body = "h = x[0] * 0\n            for row in x:\n                h = h * 0.5 + row\n            return h + (x + mask).sum(0)"
    model = load(NET.format(body).replace("forward(self, x)", "forward(self, x, mask)")).Net()
    program = onnxplain.export(model, (torch.randn(4, 3), torch.ones(4, 3)), dynamic_shapes=({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC}))
    assert [each.rule.id for each in program.diagnostics.findings if each.level is not onnxplain.Level.NOTE] == []
    x, mask = torch.randn(7, 3), torch.randn(7, 3)
    torch.testing.assert_close(program(x, mask)[0], model(x, mask))


@pytest.mark.slow
def test_a_recurrent_model_of_transformers() -> None:
    """Its loop over time is rewritten, and the results are right for another length. Others are in the coverage of architectures."""
    result = trials.run(trials.Trial("recurrence", "RecurrentGemmaForCausalLM", dynamic=True))
    assert result == trials.Result(Outcome.OK.value)


def test_weights_keep_their_names(load: Load) -> None:
    model = load(NET.format("for row in x:\n                x = x + self.linear(row)\n            return x")).Net()
    names = {value.name for value in exported(model).model.graph.initializers.values()}
    assert "linear.bias" in names
    assert any(name.startswith("linear.weight") for name in names)


BRANCHES = {
    "bool": "if bool((x > 0).any()):\n    x = x.clamp(min=0)\nelse:\n    x = x * 0 - 1\nreturn x",
    "is_nonzero": "return x + 1 if torch.is_nonzero((x > 0).sum()) else x - 1",
    "float": "return x + 1 if float(x.sum()) > 0 else x - 1",
    "two floats": "return x + 1 if float(x.abs().mean() * 1) > float(x.mean()) + 0.1 else x - 1",
    "chain": "return x + 1 if 0 < x.sum() < 4 else x - 1",
    "numbers together": "return x + 1 if x.sum().item() > 0 and x.max().item() < 1.5 else x - 1",
    "truth and number": "return x + 1 if bool((x > 0).any()) and x.sum().item() > 1 else x - 1",
    "items": "y = x * 2\nif x.sum() > 0:\n    y[0] = 1\n    y[:, 1] += x[:, 1]\nelse:\n    y[1] = x[0]\nreturn y + x",
    "floats": "s = 2.0 if x.mean() > 0 else 0.5\nreturn x * s",
    "lists": "y = []\nif x.sum() > 0:\n    y.append(x)\nelse:\n    y.append(-x)\nreturn torch.stack(y)",
    "selected": "y = x * 1\nmask = x[:, 0] > 2\nif mask.any():\n    y[mask] = x[:1] * 7\nreturn y",
    "iterations until both": "n, y = 0, x\nwhile n < 2 or (y - x).abs().max() < 5 and n < 9:\n    y = y + x.abs()\n    n = n + 1\nreturn y",
    "number from data": "n = int((x > 0).sum())\nif n > 0:\n    x = x + self.linear(x).flatten()[:n].sum()\nreturn x",
    "a first place": "places = torch.nonzero(x > 0.7)\nif places.shape[0] > 0:\n    x = x + places[0, 0] + 1\nreturn x",
    "several selected": "y = x * 1\nmask = x[:, 0] > 0.8\nif mask.any():\n    y[mask] = self.linear(x)[: mask.sum()]\nreturn y",
}
"""Bodies of `forward` with one branch on data."""


# NOTE: a copy that reads a number from data in a way of its branch is captured strictly.
STRICT = "number from data", "a first place"


@pytest.mark.parametrize("branch", [pytest.param(each, marks=[pytest.mark.falls_back] * (each in STRICT)) for each in BRANCHES])
def test_branches_are_rewritten(branch: str, load: Load) -> None:
    if branch == "a first place" and Version(torch.__version__) < Version("2.12"):
        pytest.skip("torch 2.11 reads no item of a tensor whose number of items data decide in a branch")
    if branch == "number from data" and not IS_3_11:
        pytest.skip("Python 3.10 does not tell which part of a line runs")
    model = load(NET.format(BRANCHES[branch].replace("\n", "\n            "))).Net().eval()
    torch.manual_seed(0)
    program = onnxplain.export(model, (torch.rand(4, 3),))
    assert {rule for rule, _ in found(program.diagnostics.findings)} == {"OXP1037"}
    for x in (torch.rand(4, 3), -torch.rand(4, 3), torch.randn(4, 3), torch.rand(4, 3) * 5, torch.full((4, 3), 0.1)):
        torch.testing.assert_close(program(x)[0], model(x.clone()).detach(), rtol=1e-4, atol=1e-5)


def test_as_many_values_as_are_selected_in_the_example(load: Load) -> None:
    """The export keeps the branch: the values fit no other number of places, also none."""
    body = "y = x * 1\nmask = x[:, 0] > 0\nif mask.any():\n    y[mask] = self.linear.weight[:2] + x[:2]\nreturn y"
    model = load(NET.format(body.replace("\n", "\n            "))).Net().eval()
    x = torch.tensor([[1.0, 2, 3], [-1, 2, 3], [-1, 2, 3], [1, 2, 3]])
    program = onnxplain.export(model, (x,))
    for each in (x, -x, x.abs() * -1):
        torch.testing.assert_close(program(each)[0], model(each).detach(), rtol=1e-4, atol=1e-5)


def test_torch_by_another_module(load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "everything.py").write_text("import torch\n")
    monkeypatch.syspath_prepend(tmp_path)
    source = NET.format("return x + 1 if x.sum() > 0 else x - 1").replace("import torch\n", "from everything import *\n", 1)
    program = onnxplain.export(load(source).Net(), (torch.rand(4, 3),))
    assert [rule for rule, _ in found(program.diagnostics.findings)] == ["OXP1037"]


HELPERS = """
    import torch


    def decayed(x, factor):
        total = torch.zeros_like(x[0])
        for row in x:  # HERE
            total = total * factor + row
        return total


    class Inner(torch.nn.Module):
        def forward(self, x):
            return decayed(x, 0.5)


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            y = self.inner(x) + 1
            return y.numpy() if False else torch.special.bessel_j0(y) * 0 + y
"""


@needs_runtime
def test_a_helper_is_rewritten_and_later_lines_stay_where_they_are(load: Load, marked: Marked) -> None:
    model = load(HELPERS).Net()
    program = exported(model)
    assert found(program.diagnostics.findings) == [("OXP1037", *marked("HERE"))]
    x = torch.randn(6, 3)
    torch.testing.assert_close(program(x)[0], model(x))


LATER = """
    import torch


    class Net(torch.nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                x = x * 2
                y = x + 1
            else:
                y = x - 1
            return {1: y}[int(y.sum())]  # HERE
"""


def test_a_finding_behind_a_rewritten_branch_is_at_its_line(load: Load, marked: Marked) -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        exported(load(LATER).Net())
    assert found(failed.value.findings) == [("OXP1001", 7), ("OXP1002", *marked("HERE"))]


LIBRARY_OF_ONE = torch.library.Library("rewritten", "FRAGMENT")
LIBRARY_OF_ONE.define("own(Tensor x) -> Tensor")
LIBRARY_OF_ONE.impl("own", lambda x: x * 2, "CPU")
torch.library.register_fake("rewritten::own", torch.empty_like, lib=LIBRARY_OF_ONE)

OWN = """
    import torch


    class Net(torch.nn.Module):
        def forward(self, x):
            if x.sum() > 0:  # HERE
                y = torch.ops.rewritten.own(x)
            else:
                y = x * 2
                y = y.sin()  # END
            return y
"""


def test_a_finding_in_new_code_is_where_the_old_code_was(load: Load, marked: Marked) -> None:
    lines = dict(found(exported(load(OWN).Net()).diagnostics.findings))
    assert lines.keys() == {"OXP1037", "OXP2004"}
    assert [lines["OXP1037"]] == marked("HERE")
    # The new code has more lines than the branch, and the operator is behind its first ones.
    assert lines["OXP2004"] in range(*marked("HERE"), marked("END")[0] + 1)


LIST = """
    import torch


    class Net(torch.nn.Module):
        def forward(self, x):
            h = torch.zeros(3)
            results = []
            for row in x:  # HERE
                if row.sum() > 0:
                    h = h + row
                results.append(h)
            return torch.stack(results)
"""


def test_a_loop_with_a_branch_that_was_rewritten_before(load: Load, marked: Marked) -> None:
    model = load(LIST).Net()
    # Without the survey, the branch is found before the loop.
    program = exported(model, strategies=["non-strict"])
    assert found(program.diagnostics.findings) == [("OXP1037", *marked("HERE"))]
    x = torch.randn(6, 3)
    torch.testing.assert_close(program(x)[0], model(x))


NOT_REWRITTEN = {
    "nested": "out = torch.zeros_like(x)\nfor i in range(x.shape[0]):\n    for j in range(x.shape[0]):\n        out[i] = x[j]\nreturn out",
    "windows-that-end-early": "parts = []\nfor i in range(x.shape[0]):\n    parts.append(x[i : i + 2].mean(0))\nreturn torch.stack(parts)",
    "a-sum-that-is-read": "total = 0\nfor row in x:\n    total = total + row.sum()\n    x = x + total\nreturn x",
    "a-grown-tensor-that-is-read": ("y = x[:1]\nfor i in range(1, x.shape[0]):\n    y = torch.cat([y, y[-1:] + x[i : i + 1]])\nreturn y"),
    "two-ways-to-grow": (
        "y = None\nfor i in range(x.shape[0]):\n    y = x[i : i + 1] * 2 if y is None else torch.cat([y, x[i : i + 1]])\nreturn y"
    ),
    "a-call-for-its-effect": "for row in x:\n    print(row.shape)\nreturn x",
    "a-list-that-is-read": "parts = []\nfor row in x:\n    parts.append(row)\nreturn torch.stack(parts) + len(parts)",
    "a-view-that-is-changed": "y = x[:]\nfor i in range(len(x)):\n    y[i] += 1\nreturn y",
    "a-tensor-with-two-names": "h = torch.zeros(3)\nprev = h\nfor row in x:\n    if row.sum() > 100:\n        h += row\nreturn prev + h",
    "a-tensor-in-a-list": "h = torch.zeros(3)\nkept = [h]\nfor row in x:\n    if row.sum() > 100:\n        h += row\nreturn kept[0] + h",
    "two-symbolic-items": "y = x * 1\nfor i in range(len(x)):\n    y[i, i % 2] = 0\nreturn y",
    "return": "for row in x:\n    if row.sum() > 0:\n        return row\nreturn x[0]",
    "the-input-by-another-name": "y = self.dropout(x)\nfor i in range(len(x)):\n    y[i] += y[i].mean()\nreturn y",
    "no-other-size": "h = torch.zeros(3)\nfor row in x:\n    h = h * 0.5 + row\nreturn h + x + torch.ones(4, 3)",
    "a-state-of-the-module": "h = torch.zeros(3)\nfor row in x:\n    h = h + row * self.counted()\nreturn h",
}


@pytest.mark.parametrize("body", NOT_REWRITTEN)
def test_what_cannot_be_followed_is_a_finding(body: str, load: Load) -> None:
    model = load(NET.format(NOT_REWRITTEN[body].replace("\n", "\n            "))).Net().eval()
    with pytest.raises(onnxplain.ExportFailed) as failed:
        exported(model)
    assert {rule for rule, _ in found(each for each in failed.value.findings if each.blocking)} <= {"OXP1001", "OXP1003"}


LIBRARY = """
    import torch


    def decayed(x):
        total = torch.zeros_like(x[0])
        for row in x:
            total = total * 0.5 + row
        return total
"""

USER = """
    import torch
    from decayed_library import decayed


    class Net(torch.nn.Module):
        def forward(self, x):
            return decayed(x) + 1
"""


@pytest.mark.parametrize("control_flow", ["rewrite", "libraries", "report"])
def test_code_of_libraries_is_rewritten(control_flow: str, load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "decayed_library.py").write_text(textwrap.dedent(LIBRARY), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    monkeypatch.delitem(sys.modules, "decayed_library", raising=False)
    model, options = load(USER).Net(), {"control_flow": control_flow}
    x = torch.randn(4, 3)
    if control_flow == "report":
        with pytest.raises(onnxplain.ExportFailed) as failed:
            onnxplain.export(model, (x,), dynamic_shapes=({0: Dim.DYNAMIC},), **options)
        (finding,) = failed.value.findings
        assert finding.rule.id == "OXP1003"
        assert not any(edit.file.endswith("decayed_library.py") for fix in finding.fixes for edit in fix.edits)
        return
    program = onnxplain.export(model, (x,), dynamic_shapes=({0: Dim.DYNAMIC},), **options)
    (note,) = program.diagnostics.findings
    assert note.rule.id == "OXP1037"
    assert [edit for fix in note.fixes for edit in fix.edits] == []
    for rows in (1, 7):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(program(x)[0], model(x))


def test_a_loop_in_a_loop_over_another_dim(load: Load) -> None:
    body = "h = torch.zeros(())\nfor row in x:\n    for j in range(x.shape[1]):\n        h = torch.tanh(h * 0.5 + row[j])\nreturn h"
    model = load(NET.format(body.replace("\n", "\n            "))).Net()
    program = onnxplain.export(model, (torch.randn(4, 3),), dynamic_shapes=({0: "rows", 1: "columns"},))
    assert [each.rule.id for each in program.diagnostics.findings] == ["OXP1037"]
    for sizes in ((1, 2), (5, 1), (3, 6)):
        x = torch.randn(sizes)
        torch.testing.assert_close(program(x)[0], model(x))


@pytest.mark.parametrize(
    ("statement", "operator"),
    [
        ("y[i] += torch.sin(y[i]) * (y[i] > 0)", "tensors"),
        ("y[i] += torch.sin(y[i])\n                y[i] *= 2", "tensors"),
        ("y[i] = torch.sin(y[i - 1])", "while_loop"),
        ("y[i] -= y[i].max()", "while_loop"),
        ("y[i] = torch.cumsum(y[i], 0)", "while_loop"),
        ("y[i] += x[i]", "while_loop"),
    ],
)
def test_rows_that_stand_alone_are_computed_at_once(statement: str, operator: str, load: Load) -> None:
    body = f"y = self.linear(x)\n            for i in range(x.shape[0]):\n                {statement}\n            return y"
    model = load(NET.format(body)).Net()
    program = exported(model)
    (note,) = program.diagnostics.findings
    assert note.rule.operator == operator
    x = torch.randn(6, 3)
    torch.testing.assert_close(program(x)[0], model(x).detach())


SUM = "total = torch.zeros_like(x[0])\n            for row in x:\n                total = total * 0.5 + row\n            return total"


@pytest.mark.parametrize(
    ("change", "reaches"),
    [("total.view(-1).add_(1)", True), ("y[0] = 1", True), ("y += 1", True), ("w = x * 2\n            w += 1", False)],
)
def test_a_tensor_that_changes_after_a_branch_has_no_other_name(load: Load, change: str, reaches: bool) -> None:
    """Both ways of a kept branch have data of their own, which a later change in place of the other name would not reach."""
    lines = ["y = x * 1", "total = y", "if x.sum() > 0:", "    total = -y", change, "return total + y"]
    model, x = load(NET.format(("\n" + 12 * " ").join(lines))).Net(), torch.randn(6, 3)
    if reaches:
        with pytest.raises(onnxplain.ExportFailed) as failed:
            exported(model)
        assert {rule for rule, _ in found(failed.value.findings)} == {"OXP1001"}
    else:
        torch.testing.assert_close(exported(model)(x)[0], model(x))


@pytest.mark.parametrize("trains", [True, False])
def test_the_code_of_a_loop_without_gradients_is_no_safe_edit(trains: bool, load: Load) -> None:
    body = (
        "y = self.linear(x)\n            for i in range(1, x.shape[0]):\n                y[i] = torch.sin(y[i - 1])\n            return y"
    )
    model = load(NET.format(body)).Net().requires_grad_(trains)
    (note,) = exported(model).diagnostics.findings
    assert note.rule.operator == "while_loop"
    (fix,) = note.fixes
    assert (fix.confidence is Confidence.SAFE) == (not trains)


def test_only_if_wanted_and_if_the_model_may_be_run(load: Load) -> None:
    model = load(NET.format(SUM)).Net()
    for options in ({"control_flow": "report"}, {"control_flow": "libraries"}, {"try_fixes": False}):
        with pytest.raises(onnxplain.ExportFailed) as failed:
            exported(model, **options)
        assert found(failed.value.findings) == [("OXP1003", 19)]
    with pytest.raises(onnxplain.InvalidArgument):
        exported(model, control_flow="maybe")


def test_a_copy_that_differs_for_other_inputs_is_not_exported(load: Load) -> None:
    # A copy's class is a subclass, and this model looks at its classes, but for the example's size it computes the same.
    body = SUM.replace("return total", "return total * (1 + len(type(self).__mro__) * (x.shape[0] // 5))")
    with pytest.raises(onnxplain.ExportFailed) as failed:
        exported(load(NET.format(body)).Net())
    assert ("OXP1003", 19) in found(failed.value.findings)


ROUTED = """
    import torch
    from torch import nn


    class Experts(nn.ModuleDict):
        def __init__(self):
            super().__init__({f"expert_{number}": nn.Linear(3, 3) for number in range(4)})

        def forward(self, x, chosen, weights):
            total = torch.zeros_like(x)
            mask = nn.functional.one_hot(chosen, 4).permute(2, 1, 0)
            hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
            for expert in hit:  # HERE
                expert = expert[0]
                if expert == 4:
                    continue
                way, token = torch.where(mask[expert])
                y = self[f"expert_{expert}"](x[token]) * weights[token, way, None]
                total.index_add_(0, token, y)
            return total


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.router = nn.Linear(3, 4)
            self.experts = Experts()

        def forward(self, x):
            weights, chosen = self.router(x).softmax(-1).topk(2)
            return self.experts(x, chosen, weights)


    class Places(nn.Module):
        def forward(self, x):
            scale = x.sum()
            for place in (x.mean(0).expand(2, 3) * torch.tensor([[1.0], [-1.0]]) > 0).nonzero():  # PLACES
                scale = scale * (place[0] + 2) + place[1]
            return x * scale
"""


@pytest.mark.parametrize("index", ["expert", "expert.item()"])
@pytest.mark.parametrize(("name", "comment"), [("Net", "HERE"), ("Places", "PLACES")])
def test_loops_over_the_places_that_data_choose(name: str, comment: str, index: str, load: Load, marked: Marked) -> None:
    torch.manual_seed(0)
    model = getattr(load(ROUTED.replace("mask[expert]", f"mask[{index}]")), name)().eval()
    program = exported(model, strategies=("non-strict", "draft"))
    assert found(program.diagnostics.findings) == [("OXP1037", marked(comment)[0])]
    for rows in (1, 4, 9):
        for _ in range(3):
            x = torch.randn(rows, 3)
            torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-4)


AFTER_IT = {
    "a change through a view": "total = x * 1\nrow = total[0]\nfor i in (x > 0).nonzero():\n    row.add_(w[i[0]])\nreturn total",
    "a change of the input": "total = x\nfor i in (x > 0).nonzero():\n    total.index_add_(0, i[:1], w[:1])\nreturn total",
    "a change before the iteration is left": (
        "n = x.sum()\nfor i in (x > 0).nonzero():\n    n = n + w[i[0]].sum()\n    if i[0] == 1:\n        continue\n    n = n * 2\nreturn n"
    ),
    "a maximum of what may be nothing": (
        "n = x.sum()\nfor i in (x > 0).nonzero():\n    n = n + torch.where(x[i[0]] > 0, w[i[0]], w[0]).max()\nreturn n"
    ),
    "the last place": "n = x.sum()\nfor i in (x > 0).nonzero():\n    n = n * w[i[0]].sum()\nreturn n * i[0]",
}


@pytest.mark.parametrize("body", AFTER_IT)
def test_iterations_that_may_do_more_are_not_run_at_all_places(body: str, load: Load) -> None:
    forward = AFTER_IT[body].replace("w[", "self.linear.weight[").replace("\n", "\n            ")
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(load(NET.format(forward)).Net(), (torch.ones(3, 3),), control_flow="rewrite", strategies=("non-strict",))
    fixes = [fix for each in failed.value.findings for fix in each.fixes if any("is_chosen" in edit.replacement for edit in fix.edits)]
    assert [fix for fix in fixes if fix.confidence is Confidence.SAFE] == []
