"""Texts that a model makes of sizes, and sizes by which it looks something up: they fix the sizes if they decide what it computes."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from marks import needs_columns
from torch.export import Dim

import onnxplain

Load = Callable[..., ModuleType]
Marked = Callable[[str], list[int]]

SOURCE = """
import logging

import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = torch.nn.ModuleDict({{"5": torch.nn.Linear(4, 2), "7": torch.nn.Linear(4, 3)}})
        self.factors = {{}}

    def factor(self, key):
        if key not in self.factors:
            self.factors[key] = 2.0
        return self.factors[key]

    def cached(self, n):
        try:
            return {{5: 2.0}}.get(n, 2.0)
        except TypeError:
            return 2.0

    def forward(self, x):
        n = x.shape[0]
        {}
        return x * y
"""

DECIDE = {
    "a formatted text": "y = {'n5': 1.0, 'n7': 2.0}.get(f'n{n}', 3.0)",
    "a text": "y = 2.0 if str(n) == '5' else 1.0",
    "a text with %": "y = 2.0 if '%s' % n == '5' else 1.0",
    "the text of a shape": "y = 2.0 if repr(x.shape) == 'torch.Size([5, 4])' else 1.0",
    "a number of a text": "y = float(str(n))",
    "a name of a module": "y = self.heads[str(n)](x).sum()",
    "a key": "y = {5: 1.0, 7: 2.0}.get(n, 3.0)",
    "a key of sizes": "y = {(5, 4): 1.0}.get(tuple(x.shape), 3.0)",
    "a set": "y = 2.0 if n in {5, 6} else 1.0",
}
DECIDE_NOTHING = {
    "print": "print(f'{n} {x.shape}'); y = 1.0",
    "a log": "logging.getLogger('net').warning(f'{n}'); y = 1.0",
    "a message of an assert": "assert n > 0, f'{n}'; y = 1.0",
    "a key of a cache": "y = self.factor(f'{n}x{x.shape[1]}')",
    "an unused text": "text = f'{n}'; y = 1.0",
    "a lookup whose failure is caught": "y = self.cached(n)",
}


@pytest.mark.parametrize("line", DECIDE.values(), ids=DECIDE)
def test_a_size_whose_text_decides_is_fixed(line: str, load: Load, marked: Marked) -> None:
    model = load(SOURCE.format(line + "  # here")).Net().eval()
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(model, (torch.randn(5, 4),), dynamic_shapes=({0: "n"},))
    assert [(each.rule.id, each.location and each.location.line) for each in failed.value.log.findings] == [("OXP1003", marked("here")[0])]


@pytest.mark.parametrize("line", DECIDE.values(), ids=DECIDE)
def test_with_all_dims_dynamic_the_others_stay_so(line: str, load: Load) -> None:
    model = load(SOURCE.format(line)).Net().eval()
    program = onnxplain.export(model, (torch.randn(5, 4),), dynamic_shapes=True)
    assert {each.rule.id for each in program.diagnostics.findings} == {"OXP1034"}
    shape = program.model.graph.inputs[0].shape
    assert shape is not None
    assert shape[0] == 5
    x = torch.randn(5, 4 if isinstance(shape[1], int) else 9)
    torch.testing.assert_close(program(x)[0], model(x))


@pytest.mark.parametrize("line", DECIDE_NOTHING.values(), ids=DECIDE_NOTHING)
def test_a_size_whose_text_decides_nothing_stays_dynamic(line: str, load: Load) -> None:
    model = load(SOURCE.format(line)).Net().eval()
    program = onnxplain.export(model, (torch.randn(5, 4),), dynamic_shapes=({0: "n"},))
    assert [each.rule.id for each in program.diagnostics.findings if each.rule.id not in ("OXP1018", "OXP1039")] == []
    for size in (5, 7, 3):
        x = torch.randn(size, 4)
        torch.testing.assert_close(program(x)[0], model(x))


COMPARED = {
    "a key": "y = {True: 1.0, False: 2.0}[n > 4]",
    "a key that lacks": "y = {False: 1.0}.get(n > 4, 2.0)",
    "an integer as a key": "y = {1: 1.0, 0: 2.0}[n > 4]",
    "a key of comparisons": "y = {(True, False): 1.0}.get((n > 4, n > 8), 2.0)",
    "a set": "y = 1.0 if (n > 4) in {True} else 2.0",
    "a list": "y = 1.0 if (n > 4) in [True] else 2.0",
    "another comparison": "y = 1.0 if (n > 4) == (n > 3) else 2.0",
    "a truth": "y = 1.0 if (n > 4) == True else 2.0",
    "no truth": "y = 1.0 if (n > 4) != False else 2.0",
    "a quotient as a key": "y = {2.5: 1.0}.get(n / 2, 2.0)",
    "a quotient in a set": "y = 1.0 if n * 0.5 in {2.5, 3.0} else 2.0",
}


@pytest.mark.parametrize("dim", ["n", Dim.AUTO, Dim.DYNAMIC, Dim("n", max=9)])
@pytest.mark.parametrize("line", COMPARED.values(), ids=COMPARED)
def test_a_comparison_that_is_looked_up_is_told(line: str, dim: Any, load: Load, marked: Marked) -> None:
    model = load(SOURCE.format(line + "  # here")).Net().eval()
    program = onnxplain.export(model, (torch.randn(5, 4),), dynamic_shapes=({0: dim},), strategies=("non-strict",))
    findings = {(each.rule.id, each.location and each.location.line) for each in program.diagnostics.findings}
    assert findings == {("OXP1011", marked("here")[0])}


@needs_columns
def test_messages_take_no_further_capture(load: Load) -> None:
    def captures(name: str) -> int:
        model = load(SOURCE.format(DECIDE_NOTHING[name]), name.replace(" ", "_")).Net().eval()
        program = onnxplain.export(model, (torch.randn(5, 4),), dynamic_shapes=({0: "n"},))
        return sum(each.text.startswith("Capturing") for each in program.diagnostics.events)

    assert [captures(each) for each in ("print", "a lookup whose failure is caught", "an unused text")] == [1, 1, 2]


def test_a_failure_of_another_kind_is_told_as_it_is(load: Load, marked: Marked) -> None:
    model = load(SOURCE.format("text = f'{n}'; y = 1.0 if x.sum() > 0 else 2.0  # here")).Net().eval()
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(model, (torch.randn(5, 4),), dynamic_shapes=({0: "n"},), control_flow="report")
    assert [(each.rule.id, each.location and each.location.line) for each in failed.value.log.findings] == [("OXP1001", marked("here")[0])]


def test_a_lookup_by_a_number_from_data_is_about_the_data(load: Load, marked: Marked) -> None:
    model = load(SOURCE.format("y = len(set((x > 0).sum(1).tolist()))  # here")).Net().eval()
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(model, (torch.randn(5, 4),))
    assert [(each.rule.id, each.location and each.location.line) for each in failed.value.log.findings] == [("OXP1002", marked("here")[0])]


def test_sizes_have_their_own_texts_and_no_hash_afterwards(load: Load) -> None:
    text, key = torch.SymInt.__repr__, torch.SymInt.__hash__
    model = load(SOURCE.format(DECIDE["a key"])).Net().eval()
    onnxplain.export(model, (torch.randn(5, 4),), dynamic_shapes=True)
    assert (torch.SymInt.__repr__, torch.SymInt.__hash__) == (text, key)
