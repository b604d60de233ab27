"""Sizes of which a model makes Python numbers by `int(...)` or `float(...)`: the dims stay dynamic."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from packaging.version import Version
from torch.export import Dim

import onnxplain

Load = Callable[..., ModuleType]

SOURCE = """
import math

import numpy as np
import torch


def half(size):
    return int(size / 2)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        x = x * self.scale
        return {}
"""

BODIES = {
    "a quotient": "x[: int(x.shape[0] / 2)]",
    "a quotient in a helper": "x[half(x.shape[0]) :]",
    "a whole quotient": "x.new_zeros(int(x.shape[0] // 2)) + x.sum()",
    "a product": "torch.nn.functional.interpolate(x[None].movedim(1, 3), size=(4, int(x.shape[0] * 1.5)))",
    "a root": "torch.arange(int(math.sqrt(x.shape[0]))) + x.sum()",
    "a maximum": "torch.ones(int(max(x.shape[0], 3))) + x.sum()",
    "a minimum": "torch.ones(int(torch.sym_min(x.shape[0], 9))) + x.sum()",
    "a remainder": "x[int(x.shape[0] % 5) :]",
    "a scale": "x * float(max(x.shape[0], 3)) ** -0.5",
    "numpy's ceil": "x[: int(np.ceil(x.shape[0] / 3))]",
    "numpy's floor": "x[: int(np.floor(x.shape[0] / 3))]",
    "numpy's root": "x[: int(np.sqrt(x.shape[0]))] / np.sqrt(x.shape[0])",
    "numpy's product": "x.reshape(int(np.prod(x.shape)))",
    "a logarithm": "x * math.log(x.shape[0]) / math.log(x.shape[0], 3) + math.log2(x.shape[0])",
    "other logarithms": "x * np.log(x.shape[0]) * math.log10(x.shape[0]) - np.log2(x.shape[0])",
    "a rounded product": "x.view(math.floor(x.shape[0] * x[0].numel())) * math.ceil(x.shape[0] * 2) * math.trunc(x.shape[0] * 3)",
    "the next power of two": "torch.nn.functional.pad(x, (0, 0, 0, 2 ** math.ceil(math.log2(x.shape[0])) - x.shape[0])).sum(1)",
    "other powers": "x * 2 ** (-x.shape[0]) + x * 0.5 ** x.shape[0]",
    "quotient and rest": "x[divmod(x.shape[0], 3)[0] : -divmod(x.shape[0], 3)[1] - 1]",
    "bits": "x[: (x.shape[0] & -2) | 1] * (x.shape[0] >> 1) + (x.shape[0] << 2)",
    "a type": "x[: int(x.shape[0] / 2)] if isinstance(int(x.shape[0] / 2), int) else x",
    "a truth": "x * int(x.shape[0] > 9) + int(x.shape[0] % 2 == 0)",
    "a step": "x[:: int(x.shape[0] / 4)]",
    "remainders of floats": "x[: math.ceil(x.shape[0] / 3 % 1)] * (x.shape[0] / 3 % 1) + x.shape[0] % -2.5 + (1 - x.shape[0]) / 4 % 0.75",
    "quotients of floats": "x * (x.shape[0] / 3 // 1) + x.shape[0] * 0.3 // 0.1 - x.shape[0] // -0.75 + 7.5 // x.shape[0]",
    "a remainder that is rounded": "x + (x.shape[0] * 0.3) % 0.1",
    "tens": "x * round(x.shape[0] * 5, -1) + round(x.shape[0]) + round(x.shape[0], 1) + round(x.shape[0] * 77, -2)",
    "lengths": "x[: len(x) // 2] * len(x.mT + 1) + len([1, 2])",
    "a rounded logarithm": "torch.arange(math.ceil(math.log2(x.shape[0])) + math.floor(np.log2(x.shape[0]))) + x.sum()",
}

FORMS: dict[str, Any] = {"named": {"x": {0: "n"}}, "Dim": {"x": {0: Dim("n", min=4, max=99)}}, "all": True}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("body", BODIES)
def test_the_dim_stays_dynamic(body: str, form: str, load: Load) -> None:
    if body == "a step" and Version(torch.__version__) < Version("2.12"):
        pytest.skip("this torch asks whether a step is 1")
    model = load(SOURCE.format(BODIES[body])).Net().eval()
    program = onnxplain.export(model, (torch.randn(8, 3, 4),), dynamic_shapes=FORMS[form])
    assert program.diagnostics.findings == ()
    assert not {"int", "float"} & vars(sys.modules[type(model).__module__]).keys()
    for size in (8, 4, 11, 16, 37):
        x = torch.randn(size, 3, 4)
        torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)


def test_logarithms_of_powers_are_whole(load: Load) -> None:
    model = (
        load(SOURCE.format("torch.arange(math.floor(math.log10(x.shape[0])) + math.ceil(math.log2(x.shape[0]))) + x.sum()")).Net().eval()
    )
    program = onnxplain.export(model, (torch.randn(20, 3, 4),), dynamic_shapes={"x": {0: "n"}})
    for size in (64, 999, 1000, 1001, 8192):
        x = torch.randn(size, 3, 4) / size
        torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-4)


CLOCK = "\n\nimport time\n\ndef seconds(self):\n    return time.time()\n"
SEEN = {
    "x * float(x.shape[0])": {"named": set(), "Dim": set(), "all": set()},
    "x * (2.0 if x.shape[0] > 5 else 1.0)": {"named": {"OXP1011"}, "Dim": {"OXP1011"}, "all": {"OXP1011"}},
    "x * {8: 2.0}.get(x.shape[0], 1.0)": {"all": {"OXP1034"}},
}


@pytest.mark.parametrize(("body", "form"), [(body, form) for body, forms in SEEN.items() for form in forms])
def test_a_file_with_a_clock(body: str, form: str, load: Load) -> None:
    """Where a model may read a clock, it is captured again, which must go the same way."""
    model = load((SOURCE + CLOCK).format(body)).Net().eval()
    program = onnxplain.export(model, (torch.randn(8, 3, 4),), dynamic_shapes=FORMS[form])
    assert {each.rule.id for each in program.diagnostics.findings} == SEEN[body][form]


def test_other_dims_that_the_model_fixes(load: Load) -> None:
    """With all dims dynamic, the model is captured again when some are fixed, for example by its weights."""
    source = SOURCE.replace("x = x * self.scale", "x = torch.nn.functional.linear(x, torch.eye(4) * self.scale)")
    model = load(source.format(BODIES["a quotient"])).Net().eval()
    program = onnxplain.export(model, (torch.randn(8, 3, 4),), dynamic_shapes=True)
    (finding,) = program.diagnostics.findings
    assert finding.rule.sizes == ("x.shape[2] == 4",)  # type: ignore[attr-defined]
    x = torch.randn(13, 5, 4)
    torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strategies", [("strict",), ("non-strict",)], ids="-".join)
def test_each_strategy_keeps_the_dim(strategies: Any, form: str, load: Load) -> None:
    model = load(SOURCE.format(BODIES["a product"])).Net().eval()
    program = onnxplain.export(model, (torch.randn(8, 3, 4),), dynamic_shapes=FORMS[form], strategies=strategies)
    assert program.diagnostics.findings == ()
    x = torch.randn(13, 3, 4)
    torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.falls_back
def test_a_module_with_another_int_is_captured_strictly(load: Load) -> None:
    model = load(SOURCE.format("x[: int(x.shape[0] / 2)]") + "\n\nint = int\n").Net().eval()
    program = onnxplain.export(model, (torch.randn(8, 3, 4),), dynamic_shapes=FORMS["named"])
    assert program.diagnostics.findings == ()
    x = torch.randn(13, 3, 4)
    torch.testing.assert_close(program(x)[0], model(x))


@pytest.mark.parametrize("strategies", [("non-strict", "strict"), ("strict",)], ids="-".join)
@pytest.mark.parametrize("body", ["{8: 1.0, 16: 2.0}.get(int(max(x.shape[0], 3)), 3.0)", "len([*range(max(x.shape[0], 3))])"])
@pytest.mark.falls_back
def test_a_number_that_decides_is_told_once(strategies: Any, body: str, load: Load, marked: Callable[[str], list[int]]) -> None:
    model = load(SOURCE.format(f"x * {body}  # here")).Net().eval()
    program = onnxplain.export(model, (torch.randn(8, 3, 4),), dynamic_shapes={"x": {0: "n"}}, strategies=strategies)
    assert [(each.rule.id, each.location and each.location.line) for each in program.diagnostics.findings] == [
        ("OXP1011", marked("here")[0])
    ]


def test_a_size_that_is_an_int_of_a_fraction_is_named_as_python_writes_it(load: Load) -> None:
    model = load(SOURCE.format("x.new_zeros(int(x.shape[0] * 0.5)) + x.sum()")).Net().eval()
    program = onnxplain.export(model, (torch.randn(8, 3, 4),), dynamic_shapes={"x": {0: "n"}})
    assert str(program.model.graph.outputs[0].shape[0]) == "int(0.5*n)"
