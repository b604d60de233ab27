"""A batch normalization that follows a convolution becomes part of its weights."""

from __future__ import annotations

import pathlib
from collections import Counter
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import onnxplain

CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
NORM = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}


class ConvNorm(nn.Module):
    def __init__(self, bias: bool = False, dims: int = 2, epsilon: float = 1e-5, affine: bool = True, **conv: Any) -> None:
        super().__init__()
        self.conv = CONV[dims](4, 6, 3, bias=bias, **conv)
        self.norm = NORM[dims](6, eps=epsilon, affine=affine)
        nn.init.uniform_(self.norm.running_mean)  # type: ignore[arg-type]
        nn.init.uniform_(self.norm.running_var, 0.5, 2)  # type: ignore[arg-type]
        if affine:
            nn.init.uniform_(self.norm.weight)
            nn.init.uniform_(self.norm.bias)

    def forward(self, x: torch.Tensor) -> Any:
        return self.norm(self.conv(x))


class Transposed(ConvNorm):
    def __init__(self, dims: int = 2, **conv: Any) -> None:
        super().__init__(dims=dims)
        self.conv = (nn.ConvTranspose1d, nn.ConvTranspose2d)[dims - 1](4, 6, 3, **conv)


class UsedTwice(ConvNorm):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.conv(x)
        return self.norm(y) + y


class Returned(ConvNorm):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.conv(x)
        return self.norm(y), y


class SharedWeights(ConvNorm):
    def forward(self, x: torch.Tensor) -> Any:
        return self.norm(self.conv(x)) + self.conv(x + 1)


class Between(ConvNorm):
    def forward(self, x: torch.Tensor) -> Any:
        return self.norm(self.conv(x).relu())


class Alone(ConvNorm):
    def forward(self, x: torch.Tensor) -> Any:
        return self.norm(torch.cat([x, x[:, :2]], 1))


class GivenKernel(ConvNorm):
    """The kernel is an input, so nothing can be merged into it."""

    def forward(self, x: torch.Tensor) -> Any:
        return self.norm(nn.functional.conv2d(x, x[:1, :, :3, :3].expand(6, 4, 3, 3)))


class Twice(ConvNorm):
    """Two normalizations. The second one follows the convolution that absorbed the first one."""

    def forward(self, x: torch.Tensor) -> Any:
        return self.norm(self.norm(self.conv(x)))


MERGED = {"Conv": 1}
CASES: dict[str, tuple[nn.Module, dict[str, int]]] = {
    "plain": (ConvNorm(), MERGED),
    "bias": (ConvNorm(bias=True), MERGED),
    "one dim": (ConvNorm(dims=1), MERGED),
    "three dims": (ConvNorm(bias=True, dims=3), MERGED),
    "large epsilon": (ConvNorm(bias=True, epsilon=0.5), MERGED),
    "groups, stride, padding": (ConvNorm(groups=2, stride=2, padding=1, dilation=2), MERGED),
    "transposed": (Transposed(stride=2, output_padding=1), {"ConvTranspose": 1}),
    "transposed, no bias": (Transposed(dims=1, bias=False), {"ConvTranspose": 1}),
    "transposed, groups": (Transposed(groups=2), {"ConvTranspose": 1, "BatchNormalization": 1}),
    "no scale": (ConvNorm(affine=False), {"Conv": 1, "BatchNormalization": 1}),
    "used twice": (UsedTwice(), {"Conv": 1, "BatchNormalization": 1, "Add": 1}),
    "returned": (Returned(), {"Conv": 1, "BatchNormalization": 1}),
    "shared weights": (SharedWeights(), {"Conv": 2, "BatchNormalization": 1, "Add": 2}),
    "something between": (Between(), {"Conv": 1, "BatchNormalization": 1, "Relu": 1}),
    "no convolution": (Alone(), {"BatchNormalization": 1, "Concat": 1, "Slice": 1}),
    "a kernel that is computed": (GivenKernel(), {"Conv": 1, "BatchNormalization": 1, "Slice": 3, "Expand": 1}),
    "twice": (Twice(), MERGED),
}


def example(model: nn.Module) -> torch.Tensor:
    dims = next(each.weight.ndim for each in model.modules() if hasattr(each, "kernel_size")) - 2
    return torch.randn(2, 4, *[8] * dims)


@pytest.mark.parametrize(("model", "expected"), CASES.values(), ids=CASES)
def test_merged_where_nothing_else_needs_the_convolution(model: nn.Module, expected: dict[str, int], tmp_path: pathlib.Path) -> None:
    x = example(model.eval())
    program = onnxplain.export(model, (x,), output_names=["scores"])
    assert Counter(node.op_type for node in program.model.graph) == expected
    assert program.model.graph.outputs[0].name == "scores"
    wants = torch.utils._pytree.tree_leaves(model(x))
    for got, want in zip(program(x), wants, strict=True):
        torch.testing.assert_close(got, want.detach(), rtol=1e-4, atol=1e-5)
    program.save(tmp_path / "m.onnx", external_data=True)
    assert Counter(node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node) == expected
    assert all(node.metadata_props["onnxplain.source"] for node in program.model.graph)


@pytest.mark.parametrize(
    "model", [ConvNorm(), ConvNorm(bias=True, dims=1, epsilon=0.5), Twice(), Transposed()], ids=["plain", "bias", "twice", "transposed"]
)
def test_a_model_without_weights_computes_them_from_those_of_the_state_dict(model: ConvNorm, tmp_path: pathlib.Path) -> None:
    x = example(model.eval())
    onnxplain.export(model, (x,)).save(tmp_path / "m.onnx", include_initializers=False, keep_initializers_as_inputs=True)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.mul_(torch.rand_like(tensor) + 0.5)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    feeds = {each.name: x.numpy() if each.name == "x" else state[each.name] for each in session.get_inputs()}
    torch.testing.assert_close(torch.from_numpy(session.run(None, feeds)[0]), model(x).detach(), rtol=1e-4, atol=1e-5)


def test_optimize_can_be_left_out_and_done_later() -> None:
    model = ConvNorm().eval()
    x = example(model)
    program = onnxplain.export(model, (x,), optimize=False)
    assert Counter(node.op_type for node in program.model.graph) == {"Conv": 1, "BatchNormalization": 1}
    program.optimize()
    assert Counter(node.op_type for node in program.model.graph) == MERGED
    torch.testing.assert_close(program(x)[0], model(x).detach(), rtol=1e-4, atol=1e-5)


class Large(nn.Module):
    """Weights that are written in several blocks: merged, and transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(64, 3000, 3)
        self.norm = nn.BatchNorm1d(3000)
        self.linear = nn.Linear(1500, 701)
        nn.init.uniform_(self.norm.running_var, 0.5, 2)  # type: ignore[arg-type]
        nn.init.uniform_(self.norm.weight)

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(self.norm(self.conv(x)).mT.reshape(2, -1, 1500))


@pytest.mark.parametrize("external", [True, False])
def test_large_weights_are_written_in_blocks(external: bool, tmp_path: pathlib.Path) -> None:
    model, x = Large().eval(), torch.randn(2, 64, 5)
    onnxplain.export(model, (x,)).save(tmp_path / "m.onnx", external_data=external)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    assert [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node].count("Conv") == 1
    torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x).detach(), rtol=1e-4, atol=1e-4)
