"""Fourier transforms decompose where sizes are dynamic, and where their inputs require gradients."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import onnxplain

HANN = torch.hann_window(16)


class Behind(torch.nn.Module):
    """A transform behind trained weights."""

    def __init__(self, transform: Callable[[torch.Tensor], torch.Tensor], rows: int) -> None:
        super().__init__()
        self.transform, self.project = transform, torch.nn.Conv1d(6, 2 * rows, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.transform(torch.complex(*self.project(x).chunk(2, 1)))


TRANSFORMS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], int]] = {
    "irfft of a dynamic dim": (lambda z: torch.fft.irfft(z, dim=2), 9),
    "irfft of a static dim": (lambda z: torch.fft.irfft(z, n=16, dim=1), 9),
    "irfft2": (lambda z: torch.fft.irfft2(z), 9),
    "istft": (lambda z: torch.istft(z, 16, 4, window=HANN), 9),
    "istft without a window": (lambda z: torch.istft(z, 16, win_length=10, normalized=True), 9),
    "istft of one": (lambda z: torch.istft(z[0], 16, 4, 12, torch.hann_window(12)), 9),
    "istft from the first frame": (lambda z: torch.istft(z, 16, 4, center=False), 9),
    "istft from both halves": (lambda z: torch.istft(z, 16, 4, window=HANN, onesided=False), 16),
    "istft to complex numbers": (lambda z: torch.istft(z, 16, 4, window=HANN, onesided=False, return_complex=True).abs(), 16),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("transform", "rows"), TRANSFORMS.values(), ids=TRANSFORMS)
def test_dynamic_transforms_behind_trained_weights(transform: Callable[[torch.Tensor], torch.Tensor], rows: int) -> None:
    model = Behind(transform, rows)
    program = onnxplain.export(model, (torch.randn(2, 6, 12),), dynamic_shapes=({0: "b", 2: "t"},))
    assert [each.rule.id for each in program.diagnostics.findings if each.level.name != "NOTE"] == []
    for shape in ((2, 6, 12), (3, 6, 21), (1, 6, 9)):
        x = torch.randn(shape)
        torch.testing.assert_close(program(x)[0], model(x).detach(), rtol=1e-4, atol=1e-5)
