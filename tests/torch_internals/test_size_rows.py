"""`list(range(n))` and `len(range(n))` of a size: what a model computes with such a list stays dynamic, or ends in the finding about it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from marks import needs_columns

import onnxplain

Load = Callable[..., ModuleType]

pytestmark = needs_columns

NET = """
    import torch


    class Net(torch.nn.Module):
        def forward(self, x):
            p = list(range(x.shape[1]))
            {}
"""
# The line after the list, and from how many columns on the program is right.
READ = {
    "places": ("return x + p[0] + p[-1] + p[1] + p[-2]", 2),
    "slices": ("return x + len(p[1:-1]) + len(p[::2]) * 10 + len(p[2::3]) * 100 + p[1:][0] + p[2::3][-1] + p[:-1][-1]", 4),
    "backwards": ("return x + p[::-1][0] - p[::-1][-1] * 2 + p[:-2][::-1][0]", 3),
    "joined": ("q = [7] + p[2:-1:1] + [9, 8]\nreturn x + len(q) + q[0] + q[1] * 10 + q[-1] + q[-2] * 2 + q[-3] * 3", 4),
    "two rows": ("q = p + p[1:]\nreturn x + len(q) + q[0] + q[-1]", 2),
    "the front": ("for i in p[:2]:\n    x = x + i\nreturn x * len(p)", 2),
    "a size as bound": ("return x + len(p[x.shape[0] :]) + len(p[: x.shape[0]])", 3),
    "ranges": ("return x + len(range(2, x.shape[1], 3)) * 10 + len(range(x.shape[1], 1, -2)) * 100 + len(range(x.shape[1] - 1))", 1),
    "a class": ("return x * len(p) if isinstance(p, list) and issubclass(bool, int) and not issubclass(bool, list) else x", 1),
    "other lists": ("return x * (len(p) + len(list((1, 2))) + len(list(range(3))) + len(list()) + len(x))", 1),
}


@pytest.mark.parametrize("name", READ)
def test_of_a_list_of_positions(name: str, load: Load) -> None:
    line, least = READ[name]
    model = load(NET.format(line.replace("\n", "\n            "))).Net()
    program = onnxplain.export(model, (torch.randn(3, 6),), dynamic_shapes=({0: "rows", 1: "columns"},))
    assert {finding.rule.id for finding in program.diagnostics.findings} == ({"OXP1011"} if least > 1 else set())
    for columns in range(least, 9):
        x = torch.randn(3, columns)
        torch.testing.assert_close(program(x)[0], model(x))


LEFT = {
    "all elements": "return x + sum(p[1:])",
    "an output": "return x, p",
    "a change": "p.reverse()\nreturn x + p[0]",
    "its class": "return x * 2 if type(p) is list else x + len(p)",
    "an index": "return x[:, p[1:] + p[:1]]",
    "parts by steps": "return x + ([0] + p)[::2][0]",
    "a start from the end": "return x + p[-2:][0]",
    "its truth": "return x + len(p) if p else x",
}


@pytest.mark.parametrize("name", LEFT)
def test_what_needs_the_elements_is_told_as_before(name: str, load: Load) -> None:
    model = load(NET.format(LEFT[name].replace("\n", "\n            "))).Net()
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(model, (torch.randn(3, 6),), dynamic_shapes=({1: "columns"},))
    assert {(each.rule.id, each.location and each.location.line) for each in failed.value.findings} == {("OXP1003", 7)}
