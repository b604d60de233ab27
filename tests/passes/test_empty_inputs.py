"""Operators on tensors that may be empty, at sizes for which kernels of ONNX Runtime fail or end the process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from marks import skip_if_old_runtime
from torch.nn import functional
from torch.utils import _pytree as pytree

import onnxplain

torch.manual_seed(0)
LSTM = torch.nn.LSTM(3, 2, bidirectional=True, num_layers=2).eval()
GRU = torch.nn.GRU(3, 2, batch_first=True).eval()

MODELS: dict[str, Callable[[torch.Tensor], object]] = {
    "running product": lambda x: x.cumprod(1),
    "running product of rows that may be none": lambda x: x.T.cumprod(1),
    "running largest": lambda x: tuple(x.cummax(1)),
    "running smallest": lambda x: tuple(x.T.cummin(0)),
    "running logsumexp": lambda x: x.logcumsumexp(1),
    "contraction of nothing": lambda x: torch.einsum("ij,kj->ik", x, x),
    "contraction to nothing": lambda x: torch.einsum("ij,ik->jk", x, x),
    "median of integers": lambda x: (x.int().median(), x.int().nanmedian(), x.to(torch.uint8).median()),
    "shuffle": lambda x: functional.channel_shuffle(x.T[:, None, :, None].repeat(1, 4, 1, 1), 2),
    "flattened columns": lambda x: x.T[:, :, None, None].repeat(1, 1, 2, 2).transpose(1, 2).flatten(2),
    "pool": lambda x: functional.adaptive_avg_pool1d(x[None], 1),
    "long short-term memory": lambda x: LSTM(x.T[None, :, :]),
    "gated recurrent unit with a state": lambda x: GRU(x.T[:, None, :], x.T.sum(1)[None, :, None].repeat(1, 1, 2) - 1),
    "parts of no size": lambda x: tuple(x[0].repeat_interleave(2).chunk(2, -1)),
    "the first part of nothing": lambda x: x.split(3, 1)[0],
    "the one part of nothing": lambda x: x.split(x.shape[1] + 2, 1)[-1],
    "pool of two dims": lambda x: functional.adaptive_avg_pool2d(x[None, None], 1),
}


@pytest.mark.parametrize("name", MODELS)
def test_of_a_part_that_may_be_empty(name: str) -> None:
    skip_if_old_runtime(name, "median of integers")
    function = MODELS[name]
    program = onnxplain.export(lambda x: function(x[:, 1:]), (torch.randn(3, 5),), dynamic_shapes=({1: "length"},))
    for length in (1, 2, 5, 8):
        x = torch.randn(3, length)
        wanted = function(x[:, 1:])
        for got, want in zip(program(x), pytree.tree_leaves(wanted), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_of_a_whole_that_is_never_empty() -> None:
    model = torch.nn.AdaptiveAvgPool1d(1)
    program = onnxplain.export(
        lambda x: (torch.einsum("ij,kj->ik", x, x), model(x[None])), (torch.randn(3, 5),), dynamic_shapes=({1: "length"},)
    )
    assert {"Einsum", "GlobalAveragePool"} <= {node.op_type for node in program.model.graph}
