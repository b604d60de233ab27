"""Wrong arguments of an export are refused by name; names, axes and strategies in each of their forms are taken."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim

import onnxplain
from onnxplain.diagnostics import InvalidArgument
from onnxplain.request import STRATEGIES, as_shapes, check_inputs, checked_strategies, misfit
from onnxplain.request.checks import checked_shapes

X, Y = torch.ones(4, 6), torch.ones(4, 6)


class Two(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


class Nested(torch.nn.Module):
    def forward(self, parts: list[torch.Tensor], last: torch.Tensor) -> torch.Tensor:
        return parts[0] + parts[1] + last


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"model": torch.nn.ReLU}, "model"),
        ({"model": "relu"}, "model"),
        ({"args": "x"}, "args"),
        ({"kwargs": [1]}, "kwargs"),
        ({"input_names": "x"}, "input_names"),
        ({"input_names": ["x", 3]}, "input_names"),
        ({"output_names": {"y"}}, "output_names"),
        ({"dynamic_shapes": "batch"}, "dynamic_shapes"),
        ({"dynamic_shapes": False}, "dynamic_shapes"),
        ({"dynamic_shapes": 3}, "dynamic_shapes"),
        ({"dynamic_axes": [0]}, "dynamic_axes"),
        ({"strategies": "fast"}, "strategies"),
        ({"strategies": ("strict", 3)}, "strategies"),
        ({"strategies": ()}, "strategies"),
        ({"name": ""}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "a/b"}, "name"),
        ({"name": "a\\b"}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": 3}, "name"),
        ({"optimize": 1}, "optimize"),
        ({"external_data": "yes"}, "external_data"),
        ({"custom_translation_table": []}, "custom_translation_table"),
        *(
            ({"verify_sizes": sizes}, "verify_sizes")
            for sizes in (
                -1,
                True,
                "",
                "ab",
                {"x": 3},
                [3],
                [{3: 3}],
                [{"x": "3"}],
                [{"x": 3, "y": -1}],
                [{"x": True}],
                [{"x": -1}],
                [{"x": 3}, {"x": -1}],
            )
        ),
    ],
    ids=str,
)
def test_the_wrong_argument_is_named(options: dict[str, Any], argument: str) -> None:
    given: dict[str, Any] = {"model": torch.nn.ReLU(), "args": (X,), **options}
    with pytest.raises(InvalidArgument, match=f"^{argument}\\b"):
        onnxplain.export(given.pop("model"), given.pop("args"), **given)


@pytest.mark.parametrize("sizes", [0, 1, [], ({"x": 0},)], ids=str)
def test_sizes_to_verify(sizes: Any) -> None:
    assert onnxplain.export(torch.nn.ReLU(), (X,), verify_sizes=sizes)


def test_names_may_be_tuples_or_none() -> None:
    program = onnxplain.export(Two(), (X, Y), input_names=("left",), output_names=None, name="two words")
    assert [value.name for value in program.model.graph.inputs] == ["left", "y"]
    assert program.diagnostics.subject == "two words"


@pytest.mark.parametrize(
    "shapes", [None, True, {}, [], (), torch.export.ShapesCollection()], ids=["none", "all", "dict", "list", "tuple", "collection"]
)
def test_structures_of_shapes(shapes: Any) -> None:
    assert checked_shapes(shapes) is shapes


class Extractor:
    name = "ours"

    def generate_fx(self, model: Any, args: Any, kwargs: Any, dynamic_shapes: Any) -> torch.export.ExportedProgram:
        return torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)


def test_strategies_by_name_and_the_users() -> None:
    own = Extractor()
    assert checked_strategies("strict") == ("strict",)
    assert checked_strategies(["draft", own]) == ("draft", own)
    assert checked_strategies(STRATEGIES) == STRATEGIES
    assert checked_strategies(own) == (own,)
    for name in (*STRATEGIES, None):
        wrong = Extractor()
        wrong.name = name  # type: ignore[assignment]
        with pytest.raises(InvalidArgument, match=r"^strategies: "):
            checked_strategies(wrong)


AXES = {
    "names": ((X, Y), {}, ["a", "b"], {"a": {0: "n"}, "b": [1]}, {"x": {0: "n"}, "y": {1: Dim.DYNAMIC}}),
    "parameters": ((X, Y), {}, [], {"y": {0: "n"}}, {"x": None, "y": {0: "n"}}),
    "fewer names": ((X, Y), {}, ["a"], {"a": (0,), "y": {0: "n"}}, {"x": {0: Dim.DYNAMIC}, "y": {0: "n"}}),
    "outputs": ((X, Y), {}, [], {"out": {0: "n"}}, {"x": None, "y": None}),
    "none": ((X, Y), {}, [], {"x": None}, {"x": None, "y": None}),
    "keywords": ((X,), {"y": Y}, [], {"y": {0: "n"}}, {"x": None, "y": {0: "n"}}),
}


@pytest.mark.parametrize(("args", "kwargs", "names", "axes", "expected"), AXES.values(), ids=AXES)
def test_axes_as_shapes(args: Any, kwargs: Any, names: list[str], axes: Any, expected: Any) -> None:
    assert as_shapes(Two(), args, kwargs, names, axes) == expected
    assert misfit(Two(), args, kwargs, names, ["out"], axes) is None


def test_axes_of_nested_inputs_go_by_the_names_in_order() -> None:
    axes = {"a": {0: "n"}, "b": [1], "c": {1: "m"}}
    expected = {"parts": [{0: "n"}, {1: Dim.DYNAMIC}], "last": {1: "m"}}
    assert as_shapes(Nested(), ([X, X], Y), {}, ["a", "b", "c"], axes) == expected


def test_weights_of_a_lazy_module_exist_after_its_first_call() -> None:
    model, x = torch.nn.Sequential(torch.nn.LazyLinear(3)), torch.ones(2, 4)
    with pytest.raises(InvalidArgument, match=r"^model: .*'weight'.*'0'"):
        onnxplain.export(model, (x,))
    model(x)
    assert onnxplain.export(model, (x,)).diagnostics.findings == ()


def test_submodules_are_modules_or_none() -> None:
    model = Two()
    model.register_module("left_out", None)
    onnxplain.export(model, (X, Y))
    model._modules["wrong"] = "a text"  # type: ignore[assignment]  # as deserialized models may have it
    with pytest.raises(InvalidArgument, match=r"^model: .*'wrong'"):
        onnxplain.export(model, (X, Y))


@pytest.mark.parametrize("name", ["", "\ud800"])
def test_weights_have_names_of_characters(name: str) -> None:
    model = Two()
    model._parameters[name] = torch.nn.Parameter(X)  # as deserialized models may have it
    with pytest.raises(InvalidArgument, match=r"^model: "):
        onnxplain.export(model, (X, Y))


def test_containers_of_inputs_lie_a_hundred_deep_at_most() -> None:
    value: object = X
    for _ in range(50):
        value = [{"x": value}]
    check_inputs(value)
    with pytest.raises(InvalidArgument):
        check_inputs((value,))
