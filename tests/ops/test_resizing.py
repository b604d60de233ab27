"""Resizing chooses the elements and the sizes that PyTorch computes."""

from __future__ import annotations

import pytest
import torch
from marks import needs_runtime
from torch.nn import functional

import onnxplain


class Resized(torch.nn.Module):
    """Resizes the first input as the options say, or to the size of the second one."""

    def __init__(self, **options: object) -> None:
        super().__init__()
        self.options = options

    def forward(self, x: torch.Tensor, like: torch.Tensor | None = None) -> torch.Tensor:
        size = None if like is None else like.shape[2:]
        return functional.interpolate(x, **{"size": size, **self.options})  # type: ignore[arg-type]  # the options vary


@pytest.mark.parametrize(("before", "after"), [(28, 4), (14, 2), (3, 123), (7, 6), (28, 56)])
def test_the_nearest_of_fixed_sizes(before: int, after: int) -> None:
    inputs = torch.randn(1, 2, before), torch.randn(1, 1, after)
    program = onnxplain.export(Resized(), inputs)
    assert program(*inputs)[0].equal(Resized()(*inputs))


def test_the_nearest_of_sizes_of_which_a_resize_takes_one() -> None:
    x = torch.randn(1, 1, 2, 4)
    program = onnxplain.export(Resized(size=(82, 8)), (x,))
    assert program(x)[0].equal(Resized(size=(82, 8))(x))


def test_the_nearest_of_dynamic_sizes() -> None:
    inputs = torch.randn(1, 1, 5, 3), torch.randn(1, 1, 4, 7)
    axes = {2: torch.export.Dim.DYNAMIC, 3: torch.export.Dim.DYNAMIC}
    program = onnxplain.export(Resized(), inputs, dynamic_shapes={"x": axes, "like": axes})
    assert not program.diagnostics.findings
    for before in range(1, 64, 3):
        x = torch.randn(1, 1, before, 61 - before // 2)
        for after in range(1, 64):
            like = torch.empty(1, 1, after, 70 - after)
            assert program(x, like)[0].equal(Resized()(x, like)), (x.shape, like.shape)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("factor", [0.7, 1.4, 2.1, 3.0, 0.57, 41.0])
def test_factors(mode: str, factor: float) -> None:
    resized = Resized(scale_factor=factor, mode=mode)
    program = onnxplain.export(resized, (torch.randn(1, 2, 9),), dynamic_shapes={"x": {2: torch.export.Dim.DYNAMIC}})
    assert not program.diagnostics.findings
    for size in (2, 10, 30, 45, 60, 90, 100, 170, 340, 360):
        x = torch.arange(2.0 * size).reshape(1, 2, size)
        torch.testing.assert_close(program(x)[0], resized(x), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    ("mode", "rank"), [("nearest", 1), ("nearest", 2), ("nearest", 3), ("linear", 1), ("bilinear", 2), ("trilinear", 3)]
)
@pytest.mark.parametrize("factor", [1.1, 1.4, 1.9, 2.0, 2.1, 2.9])
def test_factors_that_leave_small_images_or_double_them(mode: str, rank: int, factor: float) -> None:
    resized = Resized(scale_factor=factor, mode=mode)
    axes = dict.fromkeys(range(2, rank + 2), torch.export.Dim.DYNAMIC)
    program = onnxplain.export(resized, (torch.randn(1, 2, *(6, 7, 5)[:rank]),), dynamic_shapes={"x": axes})
    for size in range(1, 13):
        x = torch.randn(1, 2, *(size, size + 1, size)[:rank])
        torch.testing.assert_close(program(x)[0], resized(x), rtol=1e-5, atol=1e-5)
        if size in (3, 5):
            torch.testing.assert_close(onnxplain.export(resized, (x,))(x)[0], resized(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_factors_whose_sizes_onnx_infers_in_single_precision(mode: str) -> None:
    resized = Resized(scale_factor=0.9, mode=mode)
    x = torch.randn(1, 2, 10, 20)
    torch.testing.assert_close(onnxplain.export(resized, (x,))(x)[0], resized(x), rtol=1e-5, atol=1e-5)


@needs_runtime
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("aligned", [False, True])
def test_images_of_bytes(mode: str, antialias: bool, aligned: bool) -> None:
    # NOTE: to capture a cubic resize by a factor takes torch seconds, and the factor is treated alike.
    for options in ({"size": (14, 1)}, {"scale_factor": 0.7})[: 2 if mode == "bilinear" else 1]:
        resized = Resized(mode=mode, antialias=antialias, align_corners=aligned, **options)
        axes = {2: torch.export.Dim.DYNAMIC, 3: torch.export.Dim.DYNAMIC}
        program = onnxplain.export(resized, (_bytes(28, 36),), dynamic_shapes={"x": axes})
        for size in ((28, 36), (90, 45), (7, 64)):
            x = _bytes(*size)
            assert program(x)[0].equal(resized(x)), (options, size)


def _bytes(*size: int) -> torch.Tensor:
    return torch.randint(256, (1, 3, *size), dtype=torch.uint8)
