"""Convolutions in double precision, as precise as eager mode, at other sizes as well."""

from __future__ import annotations

import pytest
import torch

import onnxplain

LAYERS: dict[str, torch.nn.Module] = {
    "1d": torch.nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2),
    "groups": torch.nn.Conv2d(4, 8, (3, 2), padding=(1, 0), groups=2),
    "same size": torch.nn.Conv2d(4, 4, (4, 3), padding="same", groups=4, bias=False),
    "other border": torch.nn.Conv2d(4, 3, 3, padding=1, padding_mode="reflect"),
    "3d": torch.nn.Conv3d(4, 2, 2, stride=(1, 2, 1)),
    "transposed 1d": torch.nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
    "transposed 2d": torch.nn.ConvTranspose2d(4, 3, (3, 2), stride=(2, 3), dilation=2, padding=(0, 1)),
    "transposed with more at the end": torch.nn.ConvTranspose2d(4, 3, 3, stride=2, padding=2, output_padding=1),
    "transposed 3d": torch.nn.ConvTranspose3d(4, 2, 2, padding=3),
}


@pytest.mark.parametrize("name", LAYERS)
def test_as_precise_as_eager(name: str) -> None:
    layer = LAYERS[name].double()
    rank = layer.weight.ndim - 2
    dynamic = {0: "batch", **{dim + 2: f"size_{dim}" for dim in range(rank)}}
    program = onnxplain.export(layer, (torch.randn(2, 4, *(8, 9, 7)[:rank], dtype=torch.float64),), dynamic_shapes=(dynamic,))
    for sizes in ((8, 9, 7), (11, 6, 10)):
        x = torch.randn(3, 4, *sizes[:rank], dtype=torch.float64)
        torch.testing.assert_close(program(x)[0], layer(x), rtol=1e-10, atol=1e-10)


def test_without_a_batch() -> None:
    for layer in (torch.nn.Conv2d(4, 3, 3).double(), torch.nn.ConvTranspose2d(4, 3, 3).double()):
        x = torch.randn(4, 6, 7, dtype=torch.float64)
        torch.testing.assert_close(onnxplain.export(layer, (x,))(x)[0], layer(x), rtol=1e-10, atol=1e-10)
