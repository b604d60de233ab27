"""How translations are registered and found."""

from __future__ import annotations

import inspect
import pathlib
from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # Registers operators.

from onnxplain import ops

NAME = "onnxplain_tests::made_up"


def translation(self: Any) -> Any:
    return self


@pytest.fixture(autouse=True)
def forgetful_table() -> Any:
    table: Any = ops.load()
    yield
    table.pop(NAME, None)


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        (False, False, True),
        (True, True, True),
        (None, None, True),
        (None, False, True),
        (None, True, True),
        (False, None, True),
        (True, None, True),
        (False, True, False),
        (True, False, False),
    ],
)
def test_a_second_translation_for_the_same_tensors_is_refused(first: bool | None, second: bool | None, refused: bool) -> None:
    def other(self: Any) -> Any:
        return self

    ops.translates(NAME, is_complex=first)(translation)
    if refused:
        with pytest.raises(TypeError) as caught:
            ops.translates(NAME, is_complex=second)(other)
        for text in (NAME, translation.__qualname__, other.__qualname__):
            assert text in str(caught.value)
    else:
        ops.translates(NAME, is_complex=second)(other)
    found = [(translation, first)] if refused else [(translation, first), (other, second)]
    assert list(ops.load()[NAME]) == found


def test_load_finds_a_new_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made_up.py").write_text(
        f"from onnxplain.ops import translates\n\n@translates({NAME!r})\ndef made_up(self):\n    return self\n", encoding="utf-8"
    )
    monkeypatch.setattr(ops, "__path__", [*ops.__path__, str(tmp_path)])
    assert [function.__name__ for function, _ in ops.load()[NAME]] == ["made_up"]


def test_defaults_are_those_of_the_schema() -> None:
    """A graph leaves out arguments that have the default of the schema; the translation then gets its own."""
    compared = 0
    for name, found in ops.load().items():
        namespace, _, operator = name.partition("::")
        packet, _, overload = operator.partition(".")
        target = getattr(getattr(getattr(torch.ops, namespace), packet, None), overload or "default", None)
        defaults = {each.name: each.default_value for each in target._schema.arguments if each.has_default_value()} if target else {}
        for function, _ in found:
            for parameter in inspect.signature(function).parameters.values():
                expected = defaults.get(parameter.name.rstrip("_"), parameter.empty)
                if parameter.empty in (expected, parameter.default):
                    continue
                compared += 1
                if expected is None:
                    # NOTE: -1 is no ONNX dtype.
                    assert parameter.default in (None, -1), f"{name}: {parameter}"
                elif isinstance(expected, list):
                    # NOTE: one number stands for each dim.
                    assert {*parameter.default} == {*expected}, f"{name}: {parameter}"
                else:
                    assert (type(expected), parameter.default) == (type(parameter.default), expected), f"{name}: {parameter}"
    assert compared > 250
