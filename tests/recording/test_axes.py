"""Reductions along axes that are counted from the end, which kernels of ONNX Runtime do not reduce in empty tensors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

import onnxplain

REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda x: x.sum(-1),
    "sum of two dims": lambda x: x[..., None].sum((-1, -2)),
    "largest": lambda x: x.amax(-1, keepdim=True),
    "position": lambda x: x.argmax(-1),
    "any": lambda x: (x > 0).any(-1),
    "number of elements that are not zero": lambda x: x.count_nonzero(-1),
    "sum without NaN": lambda x: x.nansum(-1),
    "cosine": lambda x: functional.cosine_similarity(x, x, -1),
    "distances": lambda x: torch.cdist(x, x),
    "distances of power 3": lambda x: torch.cdist(x, x, p=3.0),
    "buckets": lambda x: torch.bucketize(x, torch.tensor([0.0, 1.0])),
    "absolute values of complex numbers": lambda x: torch.complex(x, x).abs(),
    "equal complex numbers": lambda x: torch.complex(x, x) == torch.complex(x, -x),
    "largest of windows": lambda x: functional.adaptive_max_pool1d(x[:, None], 1),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_rows_that_may_be_none(name: str) -> None:
    function = REDUCTIONS[name]
    program = onnxplain.export(lambda x: function(x[1:]), (torch.randn(5, 3),), dynamic_shapes=({0: "rows"},))
    for rows in (1, 2, 5, 8):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(program(x)[0], function(x[1:]), rtol=1e-4, atol=1e-5)
