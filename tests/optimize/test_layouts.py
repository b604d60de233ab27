"""Chains of views become at most a Reshape, a Transpose and a Reshape."""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from onnxscript import opset20 as op

import onnxplain

View = Callable[[torch.Tensor], torch.Tensor]


def nodes(function: View, x: torch.Tensor, dynamic: bool = False) -> Counter[str]:
    """The operators of the exported function, which equals eager PyTorch on `x` and on a batch of 5."""
    program = onnxplain.export(function, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},) if dynamic else None)
    for each in (x, torch.randn(5, *x.shape[1:])) if dynamic else (x,):
        torch.testing.assert_close(program(each)[0], function(each))
    return Counter(node.op_type for node in program.model.graph)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(lambda x: x.view(-1, 6, 4, 2).transpose(1, 2).transpose(2, 3) * 2, {"Reshape": 1, "Transpose": 1}, id="heads"),
        pytest.param(
            lambda x: x.unflatten(-1, (2, 4)).unsqueeze(0).transpose(0, -2).squeeze(-2) * 2, {"Reshape": 1, "Transpose": 1}, id="qkv"
        ),
        pytest.param(lambda x: x.transpose(1, 2).unsqueeze(1).transpose(2, 3).squeeze(1) * 2, {}, id="back-and-forth"),
        pytest.param(lambda x: x.unsqueeze(1).flatten(1, 2).unsqueeze(-1) * 2, {"Reshape": 1}, id="ones"),
        pytest.param(lambda x: x.transpose(1, 2).unsqueeze(-1).reshape(-1, 48) * 2, {"Transpose": 1, "Reshape": 1}, id="flat"),
        pytest.param(
            lambda x: x.view(-1, 3, 2, 2, 4).permute(0, 1, 3, 2, 4).reshape(-1, 6, 8) * 2, {"Reshape": 2, "Transpose": 1}, id="windows"
        ),
    ],
)
def test_chains(function: View, expected: dict[str, int], dynamic: bool) -> None:
    assert nodes(function, torch.randn(3, 6, 8), dynamic) - Counter(["Mul"]) == Counter(expected)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(lambda x: x.reshape(x.shape[0], x.shape[1], 1, 8) * 2, {"Reshape": 1}, id="one"),
        pytest.param(
            lambda x: x.transpose(0, 1).reshape(x.shape[1], 1, x.shape[0], 8).squeeze(1) * 2, {"Transpose": 1}, id="one-that-goes-again"
        ),
        pytest.param(lambda x: x.reshape(x.shape[0], x.shape[1], 1, 8).transpose(1, 2) * 2, {"Reshape": 1}, id="one-that-moves"),
    ],
)
def test_computed_shapes_with_dims_of_size_one(function: View, expected: dict[str, int]) -> None:
    """The dims of the result tell what a shape is that the graph computes."""
    x = torch.randn(3, 5, 8)
    program = onnxplain.export(function, (x,), dynamic_shapes=({0: "batch", 1: "steps"},))
    for each in (x, torch.randn(2, 7, 8)):
        torch.testing.assert_close(program(each)[0], function(each))
    assert Counter(node.op_type for node in program.model.graph) - Counter(["Mul"]) == Counter(expected)


def test_a_chain_ends_at_a_value_that_is_used_again() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        turned = x.transpose(0, 1)
        return turned.reshape(6, 4) @ turned.reshape(4, 6) + turned.sum()

    assert nodes(function, torch.randn(3, 8))["Transpose"] == 1


def test_an_output_in_a_chain_stays() -> None:
    program = onnxplain.export(lambda x: (y := x.transpose(0, 1), y.unsqueeze(0).transpose(1, 2)), (torch.randn(3, 4),))
    x = torch.randn(3, 4)
    first, second = program(x)
    torch.testing.assert_close(first, x.T)
    torch.testing.assert_close(second, x[None])


def test_what_a_removed_chain_begins_with_keeps_its_line(load: Callable[..., ModuleType], marked: Callable[..., list[int]]) -> None:
    module = load(
        """
        def forward(x):
            y = x.sin()  # wrong
            z = y.transpose(1, 2).unsqueeze(1)
            return z.transpose(2, 3).squeeze(1) * 2
        """
    )
    wrong = {torch.ops.aten.sin.default: lambda x: op.Cos(x)}
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(module.forward, (torch.randn(3, 4, 5),), custom_translation_table=wrong, verify=True)
    (finding,) = (each for each in failed.value.findings if each.rule.id == "OXP6008")
    assert finding.location is not None
    assert [finding.location.line] == marked("wrong")


def test_sizes_of_the_input_after_one_that_is_computed() -> None:
    def rearranged(x: torch.Tensor) -> torch.Tensor:
        joined = op.Transpose(op.Reshape(x, op.Constant(value_ints=[0, 0, -1])), perm=[1, 0, 2])
        pairs = op.Transpose(op.Reshape(joined, op.Constant(value_ints=[-1, 2, 0])), perm=[1, 0, 2])
        again = op.Transpose(op.Reshape(pairs, op.Constant(value_ints=[2, 6, 2, 2, 5])), perm=[1, 2, 0, 3, 4])
        return op.Sin(op.Transpose(op.Reshape(again, op.Constant(value_ints=[6, 4, 2, 5])), perm=[1, 0, 2, 3]))

    x = torch.randn(4, 6, 2, 5)
    program = onnxplain.export(lambda x: x.sin() * 2, (x,), custom_translation_table={torch.ops.aten.sin.default: rearranged})
    torch.testing.assert_close(program(x)[0], x.sin() * 2)
    assert [node.op_type for node in program.model.graph] == ["Sin", "Mul"]


def test_a_user_that_nobody_uses_does_not_end_a_chain() -> None:
    def rearranged(x: torch.Tensor) -> torch.Tensor:
        turned = op.Transpose(x, perm=[1, 0])
        op.Exp(turned)
        split = op.Transpose(op.Reshape(turned, op.Constant(value_ints=[6, 2, 2])), perm=[1, 2, 0])
        return op.Sin(op.Reshape(split, op.Constant(value_ints=[4, 6])))

    x = torch.randn(4, 6)
    program = onnxplain.export(lambda x: x.sin() * 2, (x,), custom_translation_table={torch.ops.aten.sin.default: rearranged})
    assert [node.op_type for node in program.model.graph] == ["Sin", "Mul"]


def test_a_new_shape_has_a_name_that_no_value_has() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(2, (2, 4)).transpose(1, 2).flatten(1, 2) * 2

    x = torch.randn(3, 5, 8)
    dims = ({0: torch.export.Dim("batch"), 1: torch.export.Dim("steps")},)
    program = onnxplain.export(function, (x,), dynamic_shapes=dims, input_names=["shape_0_0_2_4"])
    torch.testing.assert_close(program(x)[0], function(x))
    assert "shape_0_0_2_4_" in program.model.graph.initializers


@pytest.mark.parametrize("fake", [False, True])
def test_a_weight_is_not_used_as_a_shape(fake: bool) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("sizes", torch.tensor([0, 0, 2, 4]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.unflatten(2, (2, 4)).transpose(1, 2).flatten(1, 2) * self.sizes.sum()

    with onnxplain.enable_fake_mode() if fake else contextlib.nullcontext():
        net, x = Net(), torch.randn(3, 5, 8)
    program = onnxplain.export(net, (x,), dynamic_shapes=({0: torch.export.Dim("batch"), 1: torch.export.Dim("steps")},))
    assert [user.op_type for user in program.model.graph.initializers["sizes"].consumers()] == ["ReduceSum"]


@pytest.mark.parametrize("seed", range(12))
def test_random_chains(seed: int) -> None:
    draw = random.Random(seed)
    x = torch.randn(2, 3, 4, 6)
    steps: list[View] = []
    y = x
    for _ in range(draw.randint(2, 6)):
        match draw.randint(0, 3):
            case 0:
                order = draw.sample(range(y.ndim), y.ndim)
                steps.append(lambda each, order=order: each.permute(order))
            case 1:
                axis = draw.randint(0, y.ndim)
                steps.append(lambda each, axis=axis: each.unsqueeze(axis))
            case 2 if y.ndim > 1:
                axis = draw.randint(0, y.ndim - 2)
                steps.append(lambda each, axis=axis: each.flatten(axis, axis + 1))
            case _:
                axis = draw.randint(0, y.ndim - 1)
                parts = draw.choice([each for each in range(1, y.shape[axis] + 1) if y.shape[axis] % each == 0])
                steps.append(lambda each, axis=axis, parts=parts: each.unflatten(axis, (parts, -1)))
        y = steps[-1](y)

    def function(x: torch.Tensor) -> torch.Tensor:
        for step in steps:
            x = step(x)
        return x * 2

    assert sum(nodes(function, x).values()) <= 4
