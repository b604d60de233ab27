"""The estimate of activation memory: its peak, its timeline, and the tensors that make the peak."""

from __future__ import annotations

import math
import pathlib
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import measured_memory
import onnx_ir as ir
import pytest
import torch
from torch import nn

import onnxplain
from onnxplain.memory import MemoryEstimate, Origin, Step, TensorSize, bound, estimate, listing, readable

MIB = 2**20


def estimate_of(model: Any, *args: torch.Tensor, dynamic_shapes: Any = None) -> MemoryEstimate:
    program = onnxplain.export(model, args, dynamic_shapes=dynamic_shapes)
    names = [value.name for value in program.model.graph.inputs]
    sizes = bound(program.model, {name: arg.shape for name, arg in zip(names, args, strict=True)})
    return estimate(program.model, sizes)


def test_the_peak_is_at_the_users_line(load: Callable[[str], ModuleType], marked: Callable[[str], list[int]]) -> None:
    program = load(
        """
        import torch

        class Wide(torch.nn.Module):
            def forward(self, x):
                y = x.exp()
                wide = y.repeat(8, 1)  # wide
                return wide.cos().sum(0)  # peak
        """
    )
    found = estimate_of(program.Wide(), torch.ones(256, 1024))
    assert found.peak == 16 * MIB
    assert found.steps[found.at].live == found.peak
    assert found.steps[found.at].origin.source.endswith(f":{marked('peak')[0]}")
    assert [tensor.size for tensor in found.tensors[:2]] == [8 * MIB, 8 * MIB]
    lines = {int(tensor.origin.source.rpartition(":")[2]) for tensor in found.tensors[:2]}
    assert lines == {*marked("wide"), *marked("peak")}
    assert found.inputs == MIB
    assert not found.unknown


def test_tensors_grow_with_named_dims() -> None:
    found = estimate_of(
        lambda x, y: (x[:, None] - y[None]).abs().sum(),
        torch.ones(6, 5),
        torch.ones(7, 5),
        dynamic_shapes=({0: "n", 1: "d"}, {0: "m", 1: "d"}),
    )
    assert found.sizes == {"n": 6, "d": 5, "m": 7}
    assert [(tensor.shape, tensor.growth, tensor.size) for tensor in found.tensors[:2]] == [("[n, m, d]", "d*m*n", 6 * 7 * 5 * 4)] * 2


@pytest.mark.parametrize("optimize", [True, "memory"])
def test_sizes_that_are_rounded_products(optimize: Any) -> None:
    def pairs(x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.interpolate(x, scale_factor=1.7, mode="nearest-exact")
        return (y[:, :, None] - y[:, None]).abs().lt(1).sum(1)

    x = torch.randn(1, 3, 20, 30)
    program = onnxplain.export(pairs, (x,), dynamic_shapes=({2: "h", 3: "w"},), optimize=optimize, verify=True)
    assert program.diagnostics.findings == ()
    # NOTE: the largest tensor has INT64.
    wide = 3 * 3 * 34 * 51
    assert (program.memory(h=20, w=30).tensors[0].size, program.memory(h=40, w=30).tensors[0].size) == (8 * wide, 16 * wide)


def test_powers_of_a_dim_and_unnamed_shapes_of_a_translation() -> None:
    def attention(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(x, x, x)

    found = estimate_of(attention, torch.ones(2, 4, 64, 8), dynamic_shapes={"x": {0: "batch", 2: "length"}})
    assert found.tensors[0].growth == "batch*length**2"
    assert found.tensors[0].size == 2 * 4 * 64 * 64 * 4


def test_views_and_kernels_in_place_take_no_memory() -> None:
    found = estimate_of(lambda x: x.exp().reshape(-1).sigmoid().tanh()[None].sum(), torch.ones(1024, 256))
    assert MIB <= found.peak < 1.01 * MIB


def test_the_body_of_a_loop_counts() -> None:
    class Loop(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch._higher_order_ops.while_loop(
                lambda i, y: i < 3, lambda i, y: (i + 1, (y[:, None] + y).sum(1)), (torch.tensor(0), x)
            )[1]

    assert estimate_of(Loop(), torch.ones(512, 64)).peak >= 512 * 512 * 64 * 4


def test_sizes_that_only_a_run_tells_are_named() -> None:
    found = estimate_of(lambda x: x[x > 0] * 2, torch.ones(64))
    assert found.unknown


@pytest.mark.parametrize(("count", "lines"), [(9, 9), (10, 10), (11, 11), (12, 11)])
def test_the_ten_largest_tensors_are_listed(count: int, lines: int) -> None:
    origin = Origin("Exp")
    tensors = tuple(TensorSize(f"x{number}", "FLOAT", "[1]", 4, "", origin) for number in range(count))
    found = MemoryEstimate(4 * count, 0, tensors, (Step(4 * count, origin),), {}, 0, 0, ())
    text = listing(found).splitlines()
    assert len(text[text.index("tensors at the peak:") + 1 :]) == lines


@pytest.mark.parametrize(("count", "rows"), [(0, 0), (1, 0), (2, 2), (20, 20), (21, 11), (41, 14)])
def test_the_timeline_has_twenty_rows_at_most(count: int, rows: int) -> None:
    steps = tuple(Step(number + 1, Origin(f"Op{number}")) for number in range(count))
    text = listing(MemoryEstimate(count, max(0, count - 1), (), steps, {}, 0, 0, ())).splitlines()
    assert sum(" Op" in line and "#" in line for line in text) == rows
    heads = [re.findall(r"\d+", line) for line in text if line.startswith("timeline")]
    assert heads == ([[] if rows == count else [str(math.ceil(count / 20))]] if rows else [])
    # The last operator is the peak, and its bar the longest one.
    assert not rows or (text[-1].endswith(f"Op{count - 1}") and text[-1].count("#") == 30)


def test_golden_listing(golden: Callable[[str, str], None]) -> None:
    places = [
        Origin("Exp", "net.py:3", "layers.0"),
        Origin("Add", f"{'a' * 33}/net.py", ""),
        Origin("Mul", f"{'b' * 34}/net.py"),
        Origin("Gemm"),
    ]
    sizes = (400 * MIB, 4 * MIB, 4 * MIB - 1, 0)
    tensors = tuple(
        TensorSize(f"x{number}", "FLOAT16", "[batch, 8]", size, "batch" if number == 0 else "", origin)
        for number, (size, origin) in enumerate(zip(sizes, places, strict=True))
    )
    steps = (*(Step(100 * MIB * (number + 1), origin) for number, origin in enumerate(places)), Step(0, Origin("Cast", module="m" * 120)))
    found = MemoryEstimate(400 * MIB, 3, tensors, steps, {"batch": 4, "tokens": 7}, 10 * MIB, 1023, ("y1", "y2"))
    golden("memory_listing.txt", listing(found) + listing(MemoryEstimate(0, 0, (), (), {}, 0, 0, ())))


def test_a_dim_that_is_a_multiple() -> None:
    half = torch.export.Dim("half", min=2)
    found = estimate_of(lambda x: x.exp().reshape(-1, 2).sum(0), torch.ones(8), dynamic_shapes={"x": {0: 2 * half}})
    assert found.sizes["half"] == 4


def test_a_dim_that_is_smaller_than_its_symbol() -> None:
    n = torch.export.Dim("n", min=2)
    found = estimate_of(lambda x: x.exp().sum(0), torch.ones(8), dynamic_shapes={"x": {0: n - 1}})
    assert found.sizes["n"] == 9


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (10_240, "10.0 KiB"),
        (102_400, "100 KiB"),
        (2**20, "1.00 MiB"),
        (4_096_000_000, "3.81 GiB"),
        (2**60, "1048576 TiB"),
    ],
)
def test_bytes_for_people(count: int, text: str) -> None:
    assert readable(count) == text


CONV = nn.Sequential(nn.Conv3d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv3d(16, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool3d(1))
MLP = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(32, 32, 3, padding=1), nn.Conv2d(32, 32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.second(self.first(x).relu()) + x).relu()


class Last(nn.Module):
    """A normalization of the channels, which it moves to the end for that."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class First(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


IMAGES = (torch.randn(4, 3, 160, 160),)


class Parallel(nn.Module):
    """A late branch that ONNX Runtime runs first, and a sum that nothing else reads."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.rows = nn.LayerNorm(64), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = self.rows(x.repeat(1, 8, 1)).exp()
        return self.norm(x.cos() + wide.reshape(-1, 8, *x.shape[1:]).sum(1))


MEASURED = {
    "copies of images": (nn.Sequential(nn.Conv2d(3, 16, 3), nn.InstanceNorm2d(16), nn.Conv2d(16, 16, 3), nn.InstanceNorm2d(16)), IMAGES),
    "images in blocks": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.SiLU(), nn.ConvTranspose2d(8, 8, 3)), IMAGES),
    "sums of images": (nn.Sequential(nn.Conv2d(3, 32, 3), Residual(), Residual(), nn.MaxPool2d(2)), IMAGES),
    "channels last": (nn.Sequential(nn.Conv2d(3, 32, 2, 2), Last(), nn.Conv2d(32, 32, 3)), IMAGES),
    "gelu by tanh": (nn.Sequential(nn.Linear(64, 256), nn.GELU("tanh"), nn.Linear(256, 64)), (torch.randn(20_000, 64),)),
    "swish": (nn.Sequential(nn.Linear(64, 256), nn.SiLU(), nn.Linear(256, 64)), (torch.randn(20_000, 64),)),
    "branches": (Parallel(), (torch.randn(64, 128, 64),)),
    "gru": (First(nn.GRU(64, 64, bidirectional=True)), (torch.randn(8, 2000, 64),)),
    "lstm": (First(nn.LSTM(64, 64)), (torch.randn(8, 2000, 64),)),
    "softmax of columns": (lambda x: (x.exp() * 2).softmax(1), (torch.randn(64, 128, 512),)),
    "where": (lambda x: torch.where(x[:, :, :1] > 0, x.exp(), x[:, :1]).sum(-1), (torch.randn(64, 128, 512),)),
    "convolutions": (CONV, (torch.randn(1, 1, 48, 48, 48),)),
    "mlp": (MLP, (torch.randn(20_000, 64),)),
    "attention": (nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), (torch.randn(16, 192, 32),)),
    "distances": (lambda x, y: (x[:, :, None] - y[:, None, :]).abs().lt(1).sum(0), (torch.randn(16, 600), torch.randn(16, 600))),
}

ROUGHLY = frozenset({"gru", "attention"})
"""Those whose estimate may be off by more."""


@pytest.mark.skipif(not measured_memory.IS_POSSIBLE, reason="the system does not tell the peak of a process")
@pytest.mark.parametrize("name", MEASURED)
def test_the_peak_is_near_the_measured_one(name: str, tmp_path: pathlib.Path) -> None:
    model, args = MEASURED[name]
    program = onnxplain.export(model.eval() if isinstance(model, nn.Module) else model, args, tmp_path / "model.onnx")
    names = [value.name or "" for value in program.model.graph.inputs]
    peak = measured_memory.peak_of(tmp_path / "model.onnx", {name: arg.numpy() for name, arg in zip(names, args, strict=True)})
    assert estimate(program.model, {}).peak == pytest.approx(peak, rel=0.15 if name in ROUGHLY else 0.1)


def test_images_stay_in_blocks_through_a_pooling() -> None:
    model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.MaxPool2d(2), nn.Conv2d(32, 32, 3))
    found = estimate_of(model, torch.randn(1, 3, 34, 34))
    # The first convolution, then with the pooled image beside it.
    assert [step.live for step in found.steps[:2]] == [4 * 32 * 32 * 32, 4 * 32 * (32 * 32 + 16 * 16)]


def parsed(nodes: str) -> ir.Model:
    """A model without the shapes of its values. Its weights are `one` and `row`, (1, 1024) each."""
    weights = "float[1, 1024] row = {" + ", ".join(["1"] * 1024) + "}, int64[1] one = {1}"
    return ir.from_onnx_text(f'<ir_version: 10, opset_import: ["": 18]> g (float[n, 1024] x) => (float[n, 1024] z) <{weights}> {{{nodes}}}')


def test_a_shape_that_the_model_computes_is_known() -> None:
    model = parsed("e = Exp(x) s = Shape(e) t = Mul(s, one) y = Expand(row, t) z = Neg(y)")
    found = estimate(model, {"n": 64})
    assert found.unknown == ()
    assert found.peak >= 2 * 64 * 1024 * 4


def test_what_depends_on_weights_alone_is_computed_before_the_run() -> None:
    found = estimate(parsed("w = Exp(row) z = Add(x, w)"), {"n": 64})
    assert [step.origin.operator for step in found.steps] == ["Add"]
