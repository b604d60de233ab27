"""An edit of an argument stands where the user wrote its value, and never in the export of another model."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
from marks import needs_columns

import onnxplain

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]

MODELS = """
import torch
import onnxplain


class Frozen(torch.nn.Module):
    def forward(self, x):
        return x.view(4, 3) + 1  # model


class Other(torch.nn.Module):
    def forward(self, x):
        return x + 1


X = torch.ones(4, 3)
"""

WAYS = {
    "in-the-call": """
def run():
    onnxplain.export(Frozen(), (X,), dynamic_shapes=({0: "batch"},))  # here
""",
    "through-a-name": """
def run():
    shapes = ({0: "batch"},)  # here
    onnxplain.export(Frozen(), (X,), dynamic_shapes=shapes)
""",
    "beside-another-export": """
def other():
    onnxplain.export(Other(), (X,), dynamic_shapes=({0: "batch"},))


def run():
    onnxplain.export(Frozen(), (X,), dynamic_shapes=({0: "batch"},))  # here
""",
    "through-options": """
def run():
    options = {"dynamic_shapes": ({0: "batch"},)}  # here
    onnxplain.export(Frozen(), (X,), **options)
""",
    "an-entry-of-a-dict": """
def run():
    config = dict(shapes=({0: "batch"},))  # here
    onnxplain.export(Frozen(), (X,), dynamic_shapes=config["shapes"])
""",
    "a-name-of-the-module": """
SHAPES = ({0: "batch"},)  # here


def run():
    onnxplain.export(Frozen(), (X,), dynamic_shapes=SHAPES)
""",
    "through-a-function": """
def export(model, shapes):
    onnxplain.export(model, (X,), dynamic_shapes=shapes)


def run():
    export(Other(), None)
    export(Frozen(), ({0: "batch"},))  # here
""",
    "through-keywords-of-a-function": """
def export(model, **options):
    onnxplain.export(model, (X,), **options)


def run():
    export(Other(), dynamic_shapes=({0: "rows"},))
    export(Frozen(), dynamic_shapes=({0: "batch"},))  # here
""",
    "through-an-initializer": """
class Export:
    def __init__(self, model, shapes):
        onnxplain.export(model, (X,), dynamic_shapes=shapes)


def run():
    Export(Frozen(), ({0: "batch"},))  # here
""",
    "a-default": """
def export(model, shapes=({0: "batch"},)):  # here
    onnxplain.export(model, (X,), dynamic_shapes=shapes)


def run():
    export(Frozen())
""",
}


def edited(failed: pytest.ExceptionInfo[onnxplain.ExportFailed], marked: Marked) -> set[int]:
    """The lines that the fixes edit, without the model's own."""
    edits = (edit for finding in failed.value.findings for fix in finding.fixes for edit in fix.edits)
    return {edit.region.line for edit in edits} - set(marked("model"))


@needs_columns
@pytest.mark.parametrize("way", WAYS)
def test_the_edit_is_where_the_value_was_written(load: Load, marked: Marked, way: str) -> None:
    module = load(MODELS + WAYS[way])
    with pytest.raises(onnxplain.ExportFailed) as failed:
        module.run()
    assert edited(failed, marked) == set(marked("here"))


@pytest.mark.parametrize(
    "call",
    [
        'list(map(export, [Frozen()], [({0: "batch"},)]))',
        "call([Frozen(), SHAPES], [SHAPES])",
        "call(export, SHAPES)",
        "export(*[Frozen(), SHAPES])",
    ],
)
def test_nothing_is_edited_where_another_function_calls_the_export(load: Load, marked: Marked, call: str) -> None:
    # NOTE: generated code has no file, as if a library called the export.
    module = load(f"""{MODELS}
SHAPES = ({{0: "batch"}},)
scope = {{}}
exec("def call(function, args): export(Frozen(), SHAPES)", scope)
call = scope["call"]


def export(model, shapes):
    onnxplain.export(model, (X,), dynamic_shapes=shapes)


scope.update(Frozen=Frozen, SHAPES=SHAPES, export=export)


def run():
    {call}
""")
    with pytest.raises(onnxplain.ExportFailed) as failed:
        module.run()
    assert edited(failed, marked) == set()


@pytest.mark.parametrize(
    "call",
    [
        'onnxplain.export(Frozen(), (X,), input_names=["x"], dynamic_axes=axes)',
        "onnxplain.export(Frozen(), (X,), dynamic_shapes=axes)",
    ],
    ids=["dynamic_axes", "dynamic_shapes"],
)
def test_nothing_is_edited_where_the_value_is_not_known(load: Load, marked: Marked, call: str) -> None:
    module = load(
        MODELS
        + f"""
def other():
    onnxplain.export(Other(), (X,), input_names=["x"], dynamic_axes={{"x": {{0: "batch"}}}})
    onnxplain.export(Other(), (X,), dynamic_shapes={{"x": {{0: "batch"}}}})
    configuration = {{"dynamic_shapes": {{"x": {{0: "batch"}}}}, "dynamic_axes": {{"x": {{0: "batch"}}}}}}


def run(axes):
    {call}
"""
    )
    # NOTE: the caller is compiled from a string, so no file tells what it hands in.
    scope = {"module": module}
    with pytest.raises(onnxplain.ExportFailed) as failed:
        exec("module.run({'x': {0: 'batch'}})", scope)
    assert "OXP1003" in [finding.rule.id for finding in failed.value.findings]
    assert edited(failed, marked) == set()


def test_the_axes_of_an_export_are_its_own(load: Load, marked: Marked) -> None:
    module = load(
        MODELS
        + """
def other():
    onnxplain.export(Other(), (X,), input_names=["x"], dynamic_axes={"x": {0: "batch"}})


def run():
    onnxplain.export(Frozen(), (X,), input_names=["x"], dynamic_axes={"x": {0: "batch"}})  # here
"""
    )
    with pytest.raises(onnxplain.ExportFailed) as failed:
        module.run()
    assert edited(failed, marked) <= set(marked("here"))


def test_axes_of_a_model_without_inputs(load: Load) -> None:
    module = load(MODELS)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(module.Other(), (), dynamic_axes={"x": {0: "batch"}})
    assert [finding.rule.id for finding in failed.value.findings] == ["OXP1005", "OXP1024"]
