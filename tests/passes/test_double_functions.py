"""Resizing in double precision, as precise as eager mode, at other sizes as well."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from marks import skip_if_old_runtime
from torch.nn import functional

import onnxplain

MODES: list[tuple[int, dict[str, Any]]] = [
    *((rank, {"mode": mode}) for rank in (1, 2, 3) for mode in ("nearest", "nearest-exact")),
    *(
        (rank, {"mode": mode, "align_corners": corners})
        for rank, mode in ((1, "linear"), (2, "bilinear"), (2, "bicubic"))
        for corners in (False, True)
    ),
    (3, {"mode": "trilinear", "align_corners": False}),
]


@pytest.mark.parametrize(("rank", "options"), MODES, ids=str)
def test_as_precise_as_eager(rank: int, options: dict[str, Any]) -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return functional.interpolate(x, scale_factor=1.5, **options), functional.interpolate(x, size=(5, 6, 7)[:rank], **options)

    example = torch.randn(2, 3, *(4, 5, 6)[:rank], dtype=torch.float64)
    program = onnxplain.export(model, (example,), dynamic_shapes=({0: "batch", **{dim + 2: f"size_{dim}" for dim in range(rank)}},))
    for sizes in ((4, 5, 6), (7, 3, 4)):
        x = torch.randn(1, 3, *sizes[:rank], dtype=torch.float64)
        for got, wanted in zip(program(x), model(x), strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-10)


def test_a_quotient_of_sizes_is_double() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x * (x.shape[0] / 3)

    program = onnxplain.export(model, (torch.randn(4, 2, dtype=torch.float64),), dynamic_shapes=({0: "rows"},))
    x = torch.randn(7, 2, dtype=torch.float64)
    torch.testing.assert_close(program(x)[0], model(x), rtol=1e-14, atol=0)


def test_normalizations_and_a_pool_in_double() -> None:
    layers = torch.nn.Sequential(torch.nn.GroupNorm(2, 4), torch.nn.InstanceNorm2d(4, affine=True), torch.nn.AdaptiveAvgPool2d(1)).double()
    program = onnxplain.export(layers, (torch.randn(2, 4, 5, 6, dtype=torch.float64),), dynamic_shapes=({0: "batch", 2: "height"},))
    x = torch.randn(3, 4, 7, 6, dtype=torch.float64)
    torch.testing.assert_close(program(x)[0], layers(x), rtol=1e-10, atol=1e-10)


FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    **{each.__name__: each for each in (torch.erf, torch.sinh, torch.cosh, torch.tan, torch.atan, torch.asinh)},
    **{each.__name__: each for each in (functional.gelu, functional.selu, functional.hardsigmoid, functional.hardswish)},
    **{each.__name__: each for each in (functional.mish, functional.softplus)},
    "approximate gelu": torch.nn.GELU("tanh"),
    "prelu": lambda x: functional.prelu(x, torch.tensor([0.3], dtype=torch.float64)),
    "acosh": lambda x: torch.acosh(x.abs() + 1),
    "of large numbers": lambda x: torch.stack([torch.acosh(x.abs() * 1e12 + 1), torch.asinh(x * 1e12)]),
    "inside": lambda x: torch.stack([each(x.clamp(-1, 1)) for each in (torch.asin, torch.acos, torch.atanh)]),
    "angles": lambda x: torch.atan2(x[:, None], x),
    "determinants": lambda x: torch.linalg.det(x[: x.shape[0] // 9 * 9].reshape(-1, 3, 3)),
    "places": lambda x: x.nonzero(),
    "average pool": lambda x: functional.avg_pool1d(x[None, None], 3, 2, 1),
    "average pool beyond the end": lambda x: functional.avg_pool1d(x[None, None], 3, 2, 1, ceil_mode=True, count_include_pad=False),
    "average pool of two dims": lambda x: functional.avg_pool2d(x[None, None].expand(-1, 5, -1), (2, 3), divisor_override=5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_as_precise_as_eager(name: str) -> None:
    skip_if_old_runtime(name, "tan")
    function = FUNCTIONS[name]
    numbers = torch.tensor(
        [0.0, -0.0, 1e-9, -0.3, 0.7, -0.9, 1.0, -2.5, 30.0, -300.0, 1e5, math.inf, -math.inf, math.nan], dtype=torch.float64
    )
    finite = numbers[numbers.isfinite()]
    program = onnxplain.export(function, (torch.randn(27, dtype=torch.float64),), dynamic_shapes=({0: "count"},))
    for x in (finite if name in ("determinants", "mish") or "pool" in name else numbers, torch.randn(20, dtype=torch.float64)):
        torch.testing.assert_close(program(x)[0], function(x), rtol=1e-10, atol=1e-12, equal_nan=True)
