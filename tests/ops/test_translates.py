"""How translations are registered and found."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

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
