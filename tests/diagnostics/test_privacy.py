"""What texts of a log tell of the machine."""

from __future__ import annotations

import pathlib

import pytest

from onnxplain.diagnostics import privacy_of


@pytest.mark.parametrize(("user", "shown"), [("ada", "/data/<user>/model.pt"), ("root", "/data/root/model.pt")])
def test_the_name_of_the_user_is_hidden_unless_everybody_has_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, user: str, shown: str
) -> None:
    monkeypatch.setenv("LOGNAME", user)
    assert privacy_of(tmp_path).text(f"cannot open /data/{user}/model.pt") == f"cannot open {shown}"
