"""An example with an empty tensor in a dynamic dim: where the model asks whether it is empty, that decides, or it is told."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import onnxplain

X, EMPTY = torch.randn(2, 3), torch.zeros(0, 3)
Model = Callable[[Tensor, Tensor], Tensor]


def asks_size(x: Tensor, cache: Tensor) -> Tensor:
    if cache.size(0) == 0:  # asks
        return x + 3
    return x + cache.sum(0)


def asks_for_elements(x: Tensor, cache: Tensor) -> Tensor:
    if cache.numel():  # asks for elements
        x = x * cache.mean(0)
    return x + 1


def asks_in_vain(x: Tensor, cache: Tensor) -> Tensor:
    length = 0 if cache.numel() == 0 else cache.shape[0]
    return torch.cat([cache, x]).sum(0) + length


def joins(x: Tensor, cache: Tensor) -> Tensor:
    return torch.cat([cache, x]).cumsum(0)


@pytest.mark.parametrize(("model", "mark"), [(asks_size, "# asks\n"), (asks_for_elements, "# asks for elements\n")])
@pytest.mark.parametrize("options", [{}, {"try_fixes": False}, {"strategies": ("strict",)}], ids=str)
def test_a_named_dim_is_told_where_the_model_asks(model: Model, mark: str, options: dict[str, Any]) -> None:
    for shapes in ({"dynamic_shapes": ({}, {0: "length"})}, {"dynamic_axes": {"cache": [0]}, "input_names": ["x", "cache"]}):
        with pytest.raises(onnxplain.ExportFailed) as failed:
            onnxplain.export(model, (X, EMPTY), **shapes, **options)
        (finding,) = [each for each in failed.value.findings if each.fails]
        assert (finding.rule.id, finding.rule.value) == ("OXP1003", 0)
        assert finding.location.line == pathlib.Path(__file__).read_text().partition(mark)[0].count("\n") + 1


@pytest.mark.parametrize("model", [asks_size, asks_for_elements])
def test_an_open_dim_stays_empty(model: Model) -> None:
    program = onnxplain.export(model, (X, EMPTY), dynamic_shapes=({}, {0: torch.export.Dim.AUTO}))
    assert {each.rule.id for each in program.diagnostics.findings} == {"OXP1034", "OXP4002"}
    torch.testing.assert_close(program(X, EMPTY)[0], model(X, EMPTY))


@pytest.mark.parametrize("model", [asks_in_vain, joins])
def test_what_is_the_same_for_all_sizes_stays_dynamic(model: Model) -> None:
    program = onnxplain.export(model, (X, EMPTY), dynamic_shapes=({}, {0: "length"}))
    assert not program.diagnostics.findings
    for cache in (EMPTY, torch.randn(1, 3), torch.randn(4, 3)):
        torch.testing.assert_close(program(X, cache)[0], model(X, cache))
