"""Checks of a captured program also look into its inner graphs."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from marks import needs_columns

import onnxplain

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]


class DrawsWithoutGradients(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            noise = torch.randn_like(x)
        return x + noise


class Samples(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.distributions.Normal(0.0, 1.0).sample(x.shape)


@pytest.mark.parametrize(("model", "line"), [(DrawsWithoutGradients(), "randn_like(x)"), (Samples(), ".sample(x.shape)")])
def test_draws_within_no_grad(model: torch.nn.Module, line: str) -> None:
    findings = onnxplain.export(model, (torch.ones(2, 3),)).diagnostics.findings
    assert [finding.rule.id for finding in findings] == ["OXP1015"]
    assert findings[0].location is not None
    assert line in findings[0].location.snippet


class SkipsInTraining(torch.nn.Module):
    """It draws a number that only training needs."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        number = torch.rand([])
        return x if self.training and number < 0.1 else self.linear(x)


class SkipsByPythonsNumbers(torch.nn.Module):
    """As `SkipsInTraining`."""

    def __init__(self, reads: bool) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.reads = reads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        number = random.uniform(0, 1)
        skips = self.training and (number < 0.1)
        if self.reads:
            x = x * numpy_number()
        return x if skips else self.linear(x)


def numpy_number() -> float:
    number: float = np.random.uniform(0, 1)
    return number


@pytest.mark.parametrize(
    ("reads", "training", "generators"), [(False, False, []), (True, False, ["numpy.random"]), (False, True, ["random"])]
)
def test_a_number_of_python_that_only_training_needs(reads: bool, training: bool, generators: list[str]) -> None:
    findings = onnxplain.export(SkipsByPythonsNumbers(reads).train(training), (torch.ones(2, 3),)).diagnostics.findings
    assert [finding.rule.generator for finding in findings if finding.rule.id == "OXP1014"] == generators


class FillsInPlace(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        noise = torch.empty_like(x)
        noise.normal_()
        return x + noise


@pytest.mark.parametrize(("model", "rules"), [(SkipsInTraining(), []), (FillsInPlace(), ["OXP1015"])])
def test_a_number_that_nothing_needs(model: torch.nn.Module, rules: list[str]) -> None:
    findings = onnxplain.export(model.eval(), (torch.ones(2, 3),)).diagnostics.findings
    assert [finding.rule.id for finding in findings] == rules


class Products(torch.nn.Module):
    def __init__(self, calls: bool) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.weight = torch.nn.Parameter(torch.ones(3, 3))
        self.calls = calls

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.calls:
            return self.linear(x)  # called
        return x @ self.weight  # written


class CastsByItself(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.linear(x)


@pytest.mark.parametrize(("dtype", "given"), [(torch.half, torch.float32), (torch.bfloat16, torch.float32), (torch.float32, torch.float64)])
@pytest.mark.parametrize("calls", [True, False])
def test_products_of_different_dtypes(calls: bool, dtype: torch.dtype, given: torch.dtype) -> None:
    """Eager mode refuses them; a capture does not."""
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Products(calls).to(dtype), (torch.ones(2, 3, dtype=given),))
    (finding,) = failed.value.findings
    assert (finding.rule.id, finding.location is not None) == ("OXP1005", True)
    assert ("# called" if calls else "# written") in finding.location.snippet


def test_products_of_different_dtypes_that_autocast_allows() -> None:
    assert [each.rule.id for each in onnxplain.export(CastsByItself(), (torch.ones(2, 3),)).diagnostics.findings] == []


ACTIVE = """
    import torch
    import torch.nn.functional as F

    def outside(x):
        return F.dropout(x)  # outside

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Dropout(0.3)

        def forward(self, x, **options):
            x = F.dropout(x, 0.5)  # short
            x = F.dropout(x, p=0.5, training=True)  # named
            x = F.alpha_dropout(x, 0.5, True)  # third
            x = F.rrelu(x, 0.1, 0.2, True)  # fourth
            x = F.dropout(*(x, 0.5))  # unpacked
            x = F.dropout(F.dropout(x, 0.0), 0.4, **options)  # options
            x = F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)  # attention
            x = F.dropout(x, training=self.training)
            return outside(self.layer(x))  # layer
"""


@needs_columns
def test_dropout_that_is_active_in_evaluation(load: Load, marked: Marked) -> None:
    model = load(ACTIVE).Net().eval()
    model.layer.train()
    found = onnxplain.export(model, (torch.rand(2, 3, 4),)).diagnostics.findings
    assert {each.rule.id for each in found} == {"OXP1015"}
    edits = {each.location.line: [edit.replacement for fix in each.fixes for edit in fix.edits] for each in found if each.location}
    assert edits == {
        marked("short")[0]: ["0.5, training=self.training"],
        marked("named")[0]: ["self.training"],
        marked("third")[0]: ["self.training"],
        marked("fourth")[0]: ["self.training"],
        **{marked(name)[0]: [] for name in ("unpacked", "options", "attention", "layer", "outside")},
    }


def test_a_check_of_variances_becomes_a_finding() -> None:
    class Loss(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor, variance: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.gaussian_nll_loss(x, y, variance, full=True)

    program = onnxplain.export(Loss(), (torch.rand(3, 4), torch.rand(3, 4), torch.rand(3, 4) + 0.1), dynamic_shapes=True)
    assert [each.rule.id for each in program.diagnostics.findings] == ["OXP1023"]
    given = torch.rand(5, 2), torch.rand(5, 2), torch.rand(5, 2) + 0.1
    torch.testing.assert_close(program(*given)[0], Loss()(*given))


def test_sizes_from_the_numbers_of_repeats() -> None:
    program = onnxplain.export(
        lambda x: x.repeat_interleave(torch.arange(x.shape[0]), 0) * x, (torch.randn(3, 4),), dynamic_shapes=({0: "batch"},)
    )
    assert [each.rule.id for each in program.diagnostics.findings] == ["OXP1023"]


@pytest.mark.parametrize("caught", [True, False])
@pytest.mark.falls_back
def test_a_refusal_for_a_size_from_data_that_the_model_catches(load: Load, caught: bool) -> None:
    line = "try: return repeated.view(n % 40)" if caught else "return repeated.view(n % 40)"
    module = load(f"""
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                repeated = x.repeat_interleave(torch.arange(3), -1)
                n = x.shape[0]
                {line}
                {"except RuntimeError: return repeated" if caught else ""}
    """)
    # NOTE: ONNX Runtime refuses other numbers of elements, as eager mode does, so that nothing need be told without the `try`.
    findings = onnxplain.export(module.Net(), (torch.ones(2, 3),), dynamic_shapes=({0: "n"},)).diagnostics.findings
    assert [finding.rule.id for finding in findings] == ["OXP1023"] * caught


@pytest.mark.parametrize(
    ("squeezed", "checks"),
    [
        (lambda x: (x > 0).nonzero().squeeze(), ["shape[0] != 1"]),
        (lambda x: (x > 0).nonzero().squeeze(1), []),
        (lambda x: (x > 0).nonzero().squeeze(0), ["shape[0] != 1"]),
        (lambda x: (x > 0).nonzero().squeeze((0, 1)), ["shape[0] != 1"]),
        (lambda x: x[x > 0].squeeze(), ["shape[0] != 1"]),
        (lambda x: x.sum().squeeze(), []),
        (lambda x: x[None].squeeze(0), []),
    ],
)
def test_a_squeeze_of_a_size_from_data(squeezed: Callable[[torch.Tensor], torch.Tensor], checks: list[str]) -> None:
    findings = onnxplain.export(squeezed, (torch.ones(5),)).diagnostics.findings
    assert [finding.rule.id for finding in findings] == ["OXP1023"] * len(checks)
    assert [vars(finding.rule)["check"] for finding in findings] == checks


def test_a_multiple_of_a_size_from_data_needs_no_check() -> None:
    class Grouped(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            rows = torch.cat([y, x[x[:, 0] > 0]])
            return rows.repeat(1, 4).view(-1).view(rows.shape[0], -1) * 2

    example = torch.rand(3, 2) - 0.5, torch.rand(6, 2)
    program = onnxplain.export(Grouped(), example)
    assert program.diagnostics.findings == ()
    given = -example[0], example[1]
    torch.testing.assert_close(program(*given)[0], Grouped()(*given))


def test_a_question_that_only_an_empty_input_answers_otherwise() -> None:
    class Edges(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            edges = torch.cat([x, x[x > 0]])
            return edges if edges.numel() == 0 else edges * 2

    program = onnxplain.export(Edges(), (torch.tensor([1.0, -1.0, 2.0]),), dynamic_shapes=({0: "n"},))
    assert program.diagnostics.findings == ()
    for x in (torch.tensor([-1.0]), torch.tensor([1.0, 2.0, -3.0, 4.0])):
        torch.testing.assert_close(program(x)[0], Edges()(x))


DOUBLES = """
import numpy as np
import torch


class Constant(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.from_numpy(np.linspace(0, 1, 3))

    def forward(self, x):
        with torch.no_grad():
            return (x * self.scale).relu()  # constant


class Converted(torch.nn.Module):
    def forward(self, x):
        return x.double().mean().float()  # operator


class Table(torch.nn.Module):
    def forward(self, x):
        return x * torch.arange(3, dtype=torch.float64).exp().float()


class Layer(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x).relu()  # parameter
"""


@pytest.mark.parametrize(
    ("name", "dtype", "told"),
    [
        ("Constant", torch.float32, ("constant", "scale", 2, 12)),
        ("Converted", torch.float32, ("operator", "aten.to.dtype", 1, 0)),
        ("Table", torch.float32, None),
        ("Layer", torch.float64, ("parameter", "weight", 2, 32)),
    ],
)
def test_what_brings_float64_in(load: Load, marked: Marked, name: str, dtype: torch.dtype, told: tuple[Any, ...] | None) -> None:
    made = getattr(load(DOUBLES), name)
    model = made(3, 2).double() if name == "Layer" else made()
    findings = onnxplain.export(model, (torch.ones(3, dtype=dtype),)).diagnostics.findings
    assert [(each.rule.id, *vars(each.rule).values()) for each in findings] == ([] if told is None else [("OXP1040", *told)])
    assert [each.location.line for each in findings if each.location] == ([] if told is None else marked(told[0]))


def test_inputs_in_float64_are_the_cause_where_nothing_else_is() -> None:
    x = torch.ones(3, dtype=torch.float64)
    assert [vars(each.rule)["kind"] for each in onnxplain.export(lambda x: x * 2, (x,)).diagnostics.findings] == ["input"]
    assert onnxplain.export(lambda x: x.float() * 2, (x,)).diagnostics.findings == ()
