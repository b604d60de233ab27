"""The skeleton of a translation, and the place of an existing one."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import torch

from onnxplain.diagnostics import Location, Region
from onnxplain.source import stubs


@pytest.mark.parametrize(
    ("target", "lines"),
    [
        (torch.ops.aten.relu.default, ["def aten_relu(self):", "torch.ops.aten.relu.default: aten_relu"]),
        (torch.ops.aten.add.Tensor, ["def aten_add(self, other, alpha):", "torch.ops.aten.add.Tensor: aten_add"]),
    ],
)
def test_a_skeleton_has_the_parameters_of_the_operator(target: object, lines: list[str]) -> None:
    snippet = stubs.skeleton(target).snippet
    assert [line for line in lines if line in snippet] == lines


def test_other_functions_have_no_skeleton() -> None:
    fix = stubs.skeleton(torch.relu)
    assert (fix.snippet, fix.edits) == ("", ())


def test_the_place_of_a_translation(load: Callable[..., ModuleType], marked: Callable[..., list[int]]) -> None:
    module = load("def translate(x):  # here\n    return x\n")
    called = Location("model.py", Region(3))
    found = stubs.at(module.translate, called)
    assert found is not None
    assert found.location == Location(str(module.__file__), Region(*marked("here")), "translate")
    assert [(place.file, place.line) for place in found.related] == [("model.py", 3)]
    alone = stubs.at(module.translate, None)
    assert alone is not None
    assert alone.related == ()
    assert stubs.at(len, called) is None
