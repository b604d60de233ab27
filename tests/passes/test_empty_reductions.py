"""Reductions of tensors without elements give what PyTorch gives: NaN for a mean, false for `any`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from onnxscript import opset20 as op

import onnxplain

REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor | tuple[torch.Tensor, ...]]] = {
    "mean": lambda x: x.mean(),
    "mean of dims": lambda x: x.mean((0, 1)),
    "mean, kept": lambda x: x.mean(0, keepdim=True),
    "mean of integers": lambda x: x.int().float().mean(0),
    "mean of half": lambda x: x.half().mean(),
    "any": lambda x: (x > 0).any(),
    "any along a dim": lambda x: (x > 0).any(0),
    "any of bytes": lambda x: x.to(torch.uint8).any(0, keepdim=True),
    "var": lambda x: x.var(),
    "var along a dim": lambda x: x.var(0),
    "var, biased": lambda x: x.var(0, correction=0, keepdim=True),
    "std": lambda x: x.std(),
    "std, biased": lambda x: x.std(0, unbiased=False),
    "var_mean": lambda x: torch.var_mean(x, 0),
    "std_mean": lambda x: torch.std_mean(x, 0, keepdim=True),
    "std_mean of all": lambda x: torch.std_mean(x),
    "std_mean of all, biased": lambda x: torch.std_mean(x, unbiased=False),
    "var of complex numbers": lambda x: torch.complex(x, x + 1).var(0),
    "mse_loss": lambda x: torch.nn.functional.mse_loss(x, x + 1),
    "l1_loss": lambda x: torch.nn.functional.l1_loss(x, x + 1),
    "huber_loss": lambda x: torch.nn.functional.huber_loss(x, x + 3),
}


def check(function: Callable[..., Any], program: onnxplain.ONNXProgram, x: torch.Tensor) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # eager PyTorch warns about degrees of freedom
        wanted = function(x)
    for got, want in zip(program(x), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        torch.testing.assert_close(got, want, equal_nan=True, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_of_a_part_that_may_be_empty(name: str) -> None:
    def function(x: torch.Tensor) -> Any:
        return REDUCTIONS[name](x[: x.shape[0] - 5])

    program = onnxplain.export(function, (torch.randn(8, 3),), dynamic_shapes=({0: torch.export.Dim("rows", min=5, max=64)},))
    for rows in (5, 6, 9):
        check(function, program, torch.randn(rows, 3))


def test_beside_an_operator_that_asks_for_the_size() -> None:
    def function(x: torch.Tensor) -> Any:
        chosen = x[x > 0]
        return chosen.mean(), chosen.logsumexp(0)

    program = onnxplain.export(function, (torch.randn(5),))
    for x in (torch.randn(5), -torch.ones(5)):
        check(function, program, x)


@pytest.mark.parametrize("name", ["mean", "any", "std", "mean of half", "mse_loss"])
def test_of_chosen_elements(name: str) -> None:
    def function(x: torch.Tensor) -> Any:
        return REDUCTIONS[name](x[x > 0])

    program = onnxplain.export(function, (torch.randn(8, 3),))
    for x in (torch.randn(8, 3), -torch.ones(8, 3)):
        check(function, program, x)


def test_dims_that_are_kept_may_be_empty() -> None:
    program = onnxplain.export(lambda x: x[: x.shape[0] - 5].mean(1), (torch.randn(8, 3),), dynamic_shapes=({0: "rows"},))
    assert "ReduceMean" in [node.op_type for node in program.model.graph]


@pytest.mark.parametrize("name", ["mean", "any", "var"])
def test_of_an_empty_input(name: str) -> None:
    check(REDUCTIONS[name], onnxplain.export(REDUCTIONS[name], (torch.ones(0, 3),)), torch.ones(0, 3))


def test_others_keep_their_operator() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.mean(0) + torch.cat([x, x * 2]).mean(0)

    check(lambda x: x.mean(0), onnxplain.export(lambda x: x.mean(0), (torch.tensor(2.0),)), torch.tensor(3.0))
    program = onnxplain.export(function, (torch.randn(8, 3),), dynamic_shapes=({0: "rows"},))
    assert [node.op_type for node in program.model.graph].count("ReduceMean") == 2


def test_a_users_translation_is_used() -> None:
    def mean(self: Any, dtype: int = -1) -> Any:
        return op.ReduceMax(self, keepdims=0)

    def function(x: torch.Tensor) -> torch.Tensor:
        return x[x > 0].mean()

    program = onnxplain.export(function, (torch.tensor([1.0, 3.0]),), custom_translation_table={torch.ops.aten.mean.default: mean})
    assert program(torch.tensor([1.0, 3.0]))[0] == 3
