"""Quantization."""

from __future__ import annotations

import torch
import torch.ao.quantization.fx._decomposed  # Registers the operators.
from torch import nn
from torch.ao.quantization import fake_quantize

from .case import Case, aten, dynamic, randn, static

quantized = torch.ops.quantized_decomposed

LARGE = (randn(2, 3, 4) * 50,)
SCALES, ZEROS = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2], dtype=torch.int32)


def _without_observer(layer: nn.Module, x: torch.Tensor) -> nn.Module:
    layer(x)
    return layer.apply(fake_quantize.disable_observer).eval()


def _round_trip(x: torch.Tensor, least: int, largest: int, dtype: torch.dtype) -> torch.Tensor:
    return quantized.dequantize_per_tensor(quantized.quantize_per_tensor(x, 0.1, 3, least, largest, dtype), 0.1, 3, least, largest, dtype)


def _by_tensors(x: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> list[torch.Tensor]:
    least, largest = torch.tensor(-127), torch.tensor(127)
    small = quantized.quantize_per_tensor.tensor(x, scale, zero, -127, 127, torch.int8)
    same = quantized.quantize_per_tensor.tensor2(x, scale, zero, least, largest, torch.int8)
    return [
        quantized.dequantize_per_tensor.tensor(small, scale, zero, -127, 127, torch.int8),
        quantized.dequantize_per_tensor.tensor2(same, scale, zero, least, largest, torch.int8, out_dtype=torch.float32),
    ]


def _chosen(x: torch.Tensor) -> list[torch.Tensor]:
    return [*quantized.choose_qparams(x, -128, 127, 1e-5, torch.int8), *quantized.choose_qparams_symmetric(x, 0, 255, 1e-5, torch.uint8)]


def _by_channel(x: torch.Tensor, dtype: torch.dtype) -> list[torch.Tensor]:
    small = quantized.quantize_per_channel(x, SCALES, ZEROS, 1, 0, 100, dtype)
    return [
        quantized.dequantize_per_channel(small, SCALES, ZEROS, 1, 0, 100, dtype),
        quantized.dequantize_per_channel(small, SCALES, None, 1, 0, 100, dtype),
    ]


CASES: dict[str, Case] = {
    "fake_quantize": dynamic(
        lambda x: [
            *(torch.fake_quantize_per_tensor_affine(x, 0.1, 3, *limits) for limits in ((0, 255), (-127, 127), (0, 127), (-5, 100))),
            *(
                torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -1000, 1000),
                torch.fake_quantize_per_tensor_affine(x.half(), 0.25, 0, 0, 9),
            ),
            torch.fake_quantize_per_tensor_affine(x, torch.tensor([0.3]), torch.tensor([1]), -128, 127),
        ],
        LARGE,
    ),
    "fake_quantize_channels": static(
        lambda x: [
            *(torch.fake_quantize_per_channel_affine(x, SCALES, ZEROS, 1, *limits) for limits in ((-128, 127), (0, 15), (-1000, 1000))),
            torch.fake_quantize_per_channel_affine(x, SCALES, torch.tensor([0.0, 1.0, 2.5]), 1, 0, 15),
        ],
        LARGE,
    ),
    "fake_quantize_learnable": static(
        lambda x: [
            aten._fake_quantize_learnable_per_tensor_affine(x, torch.tensor([0.2]), torch.tensor([3.4]), -128, 127),
            aten._fake_quantize_learnable_per_channel_affine(x, SCALES, torch.tensor([0.4, 1.6, 300.0]), 1, 0, 255),
        ],
        LARGE,
    ),
    "fake_quantize_fused": static(_without_observer(fake_quantize.default_fused_act_fake_quant(), LARGE[0]), LARGE),
    "fake_quantize_fused_channels": static(
        _without_observer(fake_quantize.default_fused_per_channel_wt_fake_quant(), randn(3, 5)), (randn(3, 5) * 3,)
    ),
    "fake_quantize_off": static(
        _without_observer(fake_quantize.default_fused_act_fake_quant(), LARGE[0]).apply(fake_quantize.disable_fake_quant), LARGE
    ),
    "quantize": dynamic(
        lambda x: [
            *(_round_trip(x, 0, 255, torch.uint8), _round_trip(x, -127, 127, torch.int8), _round_trip(x, -30000, 30000, torch.int16)),
            _round_trip(x, -(2**31), 2**31 - 1, torch.int32),
        ],
        LARGE,
    ),
    "quantize_tensors": static(_by_tensors, (*LARGE, torch.tensor(0.2), torch.tensor(5))),
    "quantize_channels": static(lambda x: [*_by_channel(x, torch.uint8), *_by_channel(x, torch.int16)], LARGE),
    "choose_qparams": dynamic(lambda x: [result for each in (x, x.abs() + 2, -x.abs() - 2, x * 0) for result in _chosen(each)], LARGE),
    "int_mm": static(
        torch._int_mm, (torch.arange(-64, 64).reshape(32, 4).to(torch.int8), torch.arange(-16, 16).reshape(4, 8).to(torch.int8))
    ),
}
