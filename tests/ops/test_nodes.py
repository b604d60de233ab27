"""What translations cost: the nodes that they make, where several sets of nodes give the same numbers. Also the nodes of older opsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from parity import check
from torch.nn import functional

import onnxplain

IMAGE = torch.randn(2, 4, 8, 6)
BATCH = torch.randn(3, 4, 6)
NODES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...], bool, str]] = {
    # function, inputs, whether all sizes are dynamic, nodes
    "pooling to 1": (lambda x: functional.adaptive_avg_pool2d(x, 1), (IMAGE,), True, "GlobalAveragePool"),
    "pooling without a batch": (lambda x: functional.adaptive_avg_pool2d(x, 1), (IMAGE[0],), False, "ReduceMean"),
    "pooling of equal windows": (lambda x: functional.adaptive_avg_pool2d(x, (4, 3)), (IMAGE,), False, "AveragePool"),
    "pooling of one window": (lambda x: functional.adaptive_avg_pool2d(x, (8, 1)), (IMAGE,), False, "AveragePool"),
    "pooling of windows that overlap": (
        lambda x: functional.adaptive_avg_pool2d(x, (8, 4)),
        (IMAGE[..., :5],),
        False,
        "Slice ReduceMean Slice ReduceMean Slice ReduceMean Slice ReduceMean Concat",
    ),
    "complex of the same sizes": (lambda x, y: torch.complex(x, y).imag, (BATCH, BATCH), True, "Unsqueeze Unsqueeze Concat Gather"),
    "flatten": (lambda x: x.flatten(1), (BATCH,), True, "Flatten"),
    "flatten in front": (lambda x: x.flatten(0, 1), (BATCH,), True, "Flatten"),
    "flatten nothing": (lambda x: x.flatten(1, 1).abs(), (BATCH,), True, "Abs"),
    "nearest of twice the size": (lambda x: functional.interpolate(x, scale_factor=2.0), (IMAGE,), True, "Resize"),
    "nearest to a size": (lambda x: functional.interpolate(x, size=(11, 9)), (IMAGE,), False, "Resize"),
    "places of the same sizes": (
        lambda x, i, j: x[i, j],
        (BATCH, *torch.tensor([[0, 1], [1, 2]])),
        True,
        "Unsqueeze Unsqueeze Concat GatherND",
    ),
    "linear": (lambda x: functional.linear(x, torch.ones(2, 6), torch.ones(2)), (BATCH[0],), True, "Gemm"),
    "slice everything": (lambda x: x[:, :].abs(), (BATCH,), True, "Abs"),
    "split of one part": (lambda x: x.split(4, 1)[0].abs(), (BATCH,), False, "Abs"),
    "unbind of one": (lambda x: x.unbind(1)[0].abs(), (BATCH[:, :1],), False, "Squeeze Abs"),
    "write everything": (lambda x: aten.slice_scatter(x, x.abs()), (BATCH,), False, "Abs"),
    "write the front": (lambda x: aten.slice_scatter(x, x[:1].abs(), 0, 0, 1), (BATCH,), False, "Slice Abs Slice Concat"),
    "write the end": (lambda x: aten.slice_scatter(x, x[:1].abs(), 0, 2), (BATCH,), False, "Slice Abs Slice Concat"),
    "sum of one": (lambda x: x.sum(), (torch.tensor(2.0),), False, "Identity"),
    "power by products": (lambda x: torch.view_as_real(torch.complex(x, x) ** 1).abs(), (BATCH,), False, "Unsqueeze Concat Abs"),
    "times 1": (lambda x: torch.add(x, x, alpha=1), (BATCH,), False, "Add"),
    "scatter to as many places": (
        lambda x, i: x.scatter_reduce(1, i, x, "sum"),
        (BATCH, torch.zeros(3, 4, 6, dtype=torch.int64)),
        False,
        "ScatterElements",
    ),
    "scatter as many as places": (
        lambda x, i: x.scatter_add(1, i, x),
        (BATCH, torch.zeros(3, 4, 6, dtype=torch.int64)),
        False,
        "ScatterElements",
    ),
    "quantized to all bytes": (
        lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255),
        (BATCH,),
        False,
        "QuantizeLinear DequantizeLinear",
    ),
    "clamp": (lambda x: x.clamp(0, 1), (BATCH,), False, "Clip"),
    "cast to the same": (lambda x: x.to(torch.float32).abs(), (BATCH,), False, "Abs"),
    "range": (lambda x: torch.arange(x.size(0)), (BATCH,), True, "Shape Squeeze Range"),
    "recurrent layer of one gate": (
        lambda x, w, r, b: torch.rnn_tanh(x, torch.zeros(1, 4, 5), [w, r, b, b], True, 1, 0.0, False, False, False)[0],
        (BATCH, torch.randn(5, 6), torch.randn(5, 5), torch.randn(5)),
        False,
        "Unsqueeze Unsqueeze Concat Unsqueeze RNN Squeeze",
    ),
    "transform of a real signal": (
        lambda x: torch.view_as_real(torch.stft(x, 4, 2, center=False, onesided=False, window=torch.ones(4), return_complex=True)),
        (BATCH.reshape(3, 24),),
        False,
        "Unsqueeze STFT Transpose",
    ),
    "dropout of nothing": (
        lambda x: functional.alpha_dropout(functional.dropout(x, 0.0), 0.0, training=True).abs(),
        (BATCH,),
        False,
        "Abs",
    ),
    "dropout in evaluation": (lambda x: functional.dropout(x, 0.5, training=False).abs(), (BATCH,), False, "Abs"),
}
aten = torch.ops.aten


@pytest.mark.parametrize(("function", "args", "dynamic", "nodes"), NODES.values(), ids=NODES)
def test_nodes(function: Callable[..., Any], args: tuple[torch.Tensor, ...], dynamic: bool, nodes: str) -> None:
    program = onnxplain.export(function, args, dynamic_shapes=True if dynamic else None)
    assert " ".join(node.op_type for node in program.model.graph) == nodes
    check(function, program, args)


def test_a_view_with_one_dynamic_size_has_a_constant_shape() -> None:
    program = onnxplain.export(lambda x: x.view(x.shape[0], 1), (torch.randn(5),), dynamic_shapes=True, optimize=False)
    shape = program.model.graph.node(-1).inputs[1]
    assert shape is not None
    assert shape.const_value is not None


def older(x: torch.Tensor) -> list[torch.Tensor]:
    z = torch.fft.fft(x)
    return [
        *(functional.gelu(x), functional.gelu(x, approximate="tanh"), torch.view_as_real(z), torch.view_as_real(torch.fft.ifft(z, dim=0))),
        *(torch.view_as_real(torch.fft.rfft(x, dim=1)), torch.fft.irfft(z, n=7), torch.fft.irfftn(z, dim=(0, 1))),
    ]


@pytest.mark.parametrize("opset", [18, 19, 20, 21])
def test_opsets_in_which_operators_changed(opset: int) -> None:
    program = onnxplain.export(older, (BATCH,), opset_version=opset)
    assert ("Gelu" in [node.op_type for node in program.model.graph]) == (opset >= 20)
    check(older, program, (BATCH * 2,))
