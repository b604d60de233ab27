"""Views by strides address the memory of the whole tensor, or are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import onnxplain

Function = Callable[[torch.Tensor], torch.Tensor]


class Applied(torch.nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x) * 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.as_strided((3,), (4,)),
        lambda x: x[:, :3].as_strided((3,), (4,)),
        lambda x: x[:, 1:].as_strided((2, 2), (4, 1)),
        lambda x: x[1:].as_strided((2, 2), (4, 1), 0),
        lambda x: x[:2].as_strided((3, 4), (4, 1)),
        lambda x: x.t().as_strided((3,), (4,)),
        lambda x: x.t()[1:].as_strided((3,), (4,)),
        lambda x: (x + 1).view(x.shape[0], 2, 2)[:, 0].as_strided((2,), (4,)),
        lambda x: torch.as_strided_copy(x[:, :3], (3,), (4,)),
        lambda x: x.view(-1).as_strided_scatter(torch.zeros(3), (3,), (4,)),
    ],
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_view_addresses_the_memory_of_the_whole_tensor(function: Function, dynamic: bool) -> None:
    model, x = Applied(function), torch.rand(3, 4)
    program = onnxplain.export(model, (x,), dynamic_shapes=({0: "B"},) if dynamic else None)
    for each in (x, torch.rand(5, 4)) if dynamic else (x,):
        torch.testing.assert_close(program(each)[0], model(each))


@pytest.mark.parametrize(
    ("function", "is_transposed"),
    [
        (lambda x: x.as_strided((3,), (4,)), True),
        (lambda x: (x + 1).as_strided((3,), (4,)), True),
        (lambda x: x[:, :3].as_strided_scatter(torch.zeros(3), (3,), (4,)), False),
        (lambda x: x[1:].as_strided_scatter(torch.zeros(2), (2,), (4,)), False),
        (lambda x: x.t().as_strided_scatter(torch.zeros(3), (3,), (4,)), False),
    ],
)
def test_memory_that_is_not_in_order_is_refused(function: Function, is_transposed: bool) -> None:
    x = torch.rand(4, 3).t() if is_transposed else torch.rand(3, 4)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Applied(function), (x,))
    assert [each.rule.id for each in failed.value.findings] == ["OXP3002"]


def test_strides_are_products_of_sizes() -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        strides = [*x.stride(), *x.transpose(0, 2).stride(), *x[:, 0].stride()]
        return [x.sum() * stride for stride in strides] + [x.as_strided((x.shape[0], 2), (x.stride(0), x.stride(1)))]

    program = onnxplain.export(function, (torch.ones(2, 3, 4),), dynamic_shapes=True)
    other = torch.randn(5, 4, 3)
    for got, wanted in zip(program(other), function(other), strict=True):
        torch.testing.assert_close(got, wanted)
