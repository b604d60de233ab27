"""Operators on weights: the precomputed values are those that ONNX Runtime would compute."""

from __future__ import annotations

import pathlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import onnx
import pytest
import torch
from onnxscript import opset20 as op
from torch import nn

import onnxplain


class Sum(nn.Module):
    """The sum of a weight, plus the input."""

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight.sum() + x


def ints(*values: int) -> Any:
    return op.Constant(value_ints=list(values))


def floats(*values: float) -> Any:
    return op.Constant(value_floats=list(values))


def total(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A translation of `sum` that depends on the place of each element of `function(weight)`."""

    def translate(weight: Any) -> Any:
        # NOTE: Abs and CumSum are computed at run time, and so are the operators after them.
        made = op.Cast(op.Abs(function(weight)), to=1)
        numbers = op.CumSum(op.Cast(op.Shape(made), to=1), op.Constant(value_int=0))
        places = op.CumSum(op.CumSum(made, op.Constant(value_int=0)), op.Constant(value_int=-1))
        weighted = op.Add(op.ReduceSum(op.Mul(places, made), keepdims=0), op.ReduceSum(numbers, keepdims=0))
        return op.CastLike(weighted, weight)

    return translate


SQUARE = torch.rand(3, 3) + 0.5
WIDE = torch.rand(3, 4) + 0.5
OPERATORS: dict[str, tuple[torch.Tensor, Callable[[Any], Any], bool]] = {
    "Add": (WIDE, lambda w: op.Add(w, floats(1, 2, 3, 4)), True),
    "Sub": (WIDE, lambda w: op.Sub(floats(1, 2, 3, 4), w), True),
    "Mul": (WIDE, lambda w: op.Mul(w, floats(1, 2, 3, 4)), True),
    "Div": (WIDE, lambda w: op.Div(w, floats(1, 2, 3, 4)), True),
    "Div of integers": (torch.tensor([[-7, 7, 5]]), lambda w: op.Div(w, ints(2, -2, 2)), True),
    "Exp": (WIDE, lambda w: op.Exp(w), True),
    "Neg": (WIDE, lambda w: op.Neg(w), True),
    "Reciprocal": (WIDE, lambda w: op.Reciprocal(w), True),
    "Split": (SQUARE, lambda w: op.Concat(*reversed(op.Split(w, num_outputs=2)), axis=0), True),
    "Split, last axis": (SQUARE, lambda w: op.Concat(*reversed(op.Split(w, axis=-1, num_outputs=2)), axis=1), True),
    "Sqrt": (WIDE, lambda w: op.Sqrt(w), True),
    "Concat": (WIDE, lambda w: op.Concat(w, floats_like(w), axis=-1), True),
    "Gather": (WIDE, lambda w: op.Gather(w, ints(2, 0)), True),
    "Gather, axis 1": (SQUARE, lambda w: op.Gather(w, ints(2, 0), axis=1), True),
    "Gather, last axis": (SQUARE, lambda w: op.Gather(w, ints(2, 0), axis=-1), True),
    "Gather, from the end": (SQUARE, lambda w: op.Gather(w, ints(-1, 1), axis=1), True),
    "Reshape": (WIDE, lambda w: op.Reshape(w, ints(2, -1)), True),
    "Reshape, dim kept": (WIDE, lambda w: op.Reshape(w, ints(0, 2, 2)), False),
    "Slice": (WIDE, lambda w: op.Slice(w, ints(1, 1), ints(3, 4)), True),
    "Slice, axes": (WIDE, lambda w: op.Slice(w, ints(1), ints(100), ints(-1)), True),
    "Slice, from the end": (WIDE, lambda w: op.Slice(w, ints(-3, -2), ints(-1, 4), ints(1, 0)), True),
    "Slice, steps": (WIDE, lambda w: op.Slice(w, ints(0, 1), ints(3, 4), ints(0, 1), ints(2, 2)), True),
    "Slice, backwards": (WIDE, lambda w: op.Slice(w, ints(-1), ints(-9), ints(1), ints(-1)), False),
    "Squeeze": (WIDE[None, :, None], lambda w: op.Squeeze(w, ints(0, 2)), True),
    "Squeeze, no axes": (WIDE[None, :, None], lambda w: op.Squeeze(w), False),
    "Transpose": (WIDE, lambda w: op.Transpose(w), True),
    "Transpose, perm": (WIDE[None], lambda w: op.Transpose(w, perm=[2, 0, 1]), True),
    "Unsqueeze": (WIDE, lambda w: op.Unsqueeze(w, ints(-1, 1)), True),
}


def floats_like(weight: Any) -> Any:
    return op.Transpose(op.Transpose(weight, perm=[1, 0]), perm=[1, 0])


@pytest.mark.parametrize(("weight", "function", "computed"), OPERATORS.values(), ids=OPERATORS)
def test_computed_as_onnx_runtime_does(weight: torch.Tensor, function: Callable[[Any], Any], computed: bool) -> None:
    table = {torch.ops.aten.sum.default: total(function)}
    args = (torch.zeros(2, dtype=weight.dtype),)
    plain, clean = (
        onnxplain.export(Sum(weight), args, custom_translation_table=table, optimize=optimize, verify=False) for optimize in (False, True)
    )
    torch.testing.assert_close(clean(*args)[0], plain(*args)[0])
    left = Counter(node.op_type for node in clean.model.graph)
    kinds = {
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Exp",
        "Sqrt",
        "Concat",
        "Gather",
        "Reshape",
        "Slice",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
        "Neg",
        "Reciprocal",
        "Split",
    }
    always = Counter({"Mul": 1, "Add": 2})
    assert bool(Counter({kind: left[kind] for kind in kinds if left[kind]}) - always) == (not computed)


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(3, 3))
        self.register_buffer("index", torch.tensor([2, 0]), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table.index_select(-1, self.index)


def test_a_column_of_a_weight_is_selected() -> None:
    model, x = Rows(), torch.randn(3, 2)
    torch.testing.assert_close(onnxplain.export(model, (x,))(x)[0], model(x).detach())


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, rest = self.weight.split([1, 3])
        return x @ first.T, x @ rest.T


def test_a_weight_is_split_into_parts_of_given_sizes() -> None:
    model, x = Parts(), torch.randn(2, 3)
    program = onnxplain.export(model, (x,))
    for got, want in zip(program(x), model(x), strict=True):
        torch.testing.assert_close(got, want.detach())
    assert [node.op_type for node in program.model.graph] == ["MatMul", "MatMul"]


class Views(nn.Module):
    """A large and a small weight that are used directly and transposed, and a large one that is only transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.large, self.small = nn.Parameter(torch.randn(64, 64)), nn.Parameter(torch.randn(8, 8))
        self.turned = nn.Parameter(torch.randn(64, 32))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return x @ self.large + x @ self.large.T, y @ self.small + y @ self.small.T, x[:, :32] @ self.turned.T


def test_a_large_weight_is_written_once(tmp_path: pathlib.Path) -> None:
    model = Views()
    args = torch.randn(2, 64), torch.randn(2, 8)
    program = onnxplain.export(model, args)
    for got, want in zip(program(*args), model(*args), strict=True):
        torch.testing.assert_close(got, want.detach(), rtol=1e-4, atol=1e-4)
    program.save(tmp_path / "m.onnx")
    graph = onnx.load(tmp_path / "m.onnx").graph
    sizes = sorted(len(each.raw_data) for each in graph.initializer if len(each.raw_data) >= 256)
    assert sizes == [4 * 64, 4 * 64, 4 * 64 * 32, 4 * 64 * 64]
    assert [node.op_type for node in graph.node].count("Transpose") == 1


class Loop(nn.Module):
    """A loop whose test reads a weight: ONNX has the test twice, before the loop and in it."""

    def __init__(self) -> None:
        super().__init__()
        self.limit = nn.Parameter(torch.arange(24000.0).reshape(400, 60) / 1000, requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        (result,) = torch._higher_order_ops.while_loop(
            lambda count: (count @ self.limit.T).sum() < 9999.0, lambda count: (count + 1,), (x,)
        )
        return result  # type: ignore[no-any-return]


def test_what_a_loop_makes_of_a_weight_is_written_once(tmp_path: pathlib.Path) -> None:
    program = onnxplain.export(Loop(), (torch.zeros(2, 60),))
    torch.testing.assert_close(program(torch.zeros(2, 60))[0], Loop()(torch.zeros(2, 60)))
    program.save(tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size < 1.5 * 24000 * 4
    assert not [node for node in program.model.graph.all_nodes() if node.op_type == "Transpose"]


class Scaled(nn.Module):
    """A large weight that is used as it is, and multiplied by a small one."""

    def __init__(self) -> None:
        super().__init__()
        self.large, self.small = nn.Parameter(torch.randn(64, 64)), nn.Parameter(torch.randn(64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.large + x @ (self.large * self.small)


def test_a_large_weight_stays_beside_a_small_one() -> None:
    model, x = Scaled(), torch.randn(2, 64)
    program = onnxplain.export(model, (x,))
    torch.testing.assert_close(program(x)[0], model(x).detach(), rtol=1e-4, atol=1e-4)
    assert sorted(program.model.graph.initializers) == ["large", "small"]


def test_a_computed_weight_takes_no_name_of_another_value() -> None:
    program = onnxplain.export(Rows(), (torch.randn(3, 2),), output_names=["table.gather"])
    assert [value.name for value in program.model.graph.outputs] == ["table.gather"]
    assert "table.gather" not in program.model.graph.initializers
    assert [node.op_type for node in program.model.graph] == ["Add"]


class Twice(nn.Module):
    """Weights that are used as they are and transposed: of 4096 bytes, and of a few more."""

    def __init__(self) -> None:
        super().__init__()
        self.small, self.large = nn.Parameter(torch.randn(32, 32)), nn.Parameter(torch.randn(33, 32))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x @ self.small @ self.small.T + y @ self.large @ self.large.T @ self.large


def test_weights_up_to_4096_bytes_may_be_written_twice() -> None:
    program = onnxplain.export(Twice(), (torch.randn(2, 32), torch.randn(2, 33)))
    turned = [node.inputs[0].name for node in program.model.graph if node.op_type == "Transpose" and node.inputs[0] is not None]
    assert turned == ["large"]
    assert sorted(program.model.graph.initializers) == ["large", "small", "small.transpose"]


@pytest.mark.parametrize("of_weight", [False, True], ids=["input", "weight"])
@pytest.mark.parametrize(
    "translation",
    [
        lambda x: op.Gather(x, 0, axis=0),
        lambda x: op.ReduceMean(x, [-1], keepdims=0),
        lambda x: op.ArgMax(x, axis=-1, keepdims=0),
        lambda x: op.Neg(op.Squeeze(op.Transpose(x), [0])) if x.const_value is None else op.Gather(x, [0], axis=-1),
    ],
    ids=["gather", "reduce", "place", "layout"],
)
def test_an_axis_of_a_scalar_is_told(translation: Callable[[Any], Any], of_weight: bool) -> None:
    table = {torch.ops.aten.sum.default if of_weight else torch.ops.aten.sin.default: translation}

    class Scalars(Sum):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x.sin())

    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Scalars(torch.tensor(2.0)), (torch.tensor(1.0),), custom_translation_table=table)
    assert [each.rule.id for each in failed.value.findings] == ["OXP5002"]
