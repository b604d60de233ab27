"""Strings of a model in its script: placeholders, unless the script fails alike only with the strings."""

from __future__ import annotations

import pathlib
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

import onnxplain
from onnxplain.diagnostics import Diagnostic, Log
from onnxplain.process import Budget
from onnxplain.repro import trial

pytestmark = pytest.mark.usefixtures("whole_scripts")
Load = Callable[..., types.ModuleType]

SOURCE = """
import torch

MODES = ("bright", "dark")


class Settings:
    pass


class Net(torch.nn.Module):
    def __init__(self, **attributes):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
        self.inner = torch.nn.Module()
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x, *strings):
        USED
        if x.sum() > 0:
            return x
        return -x
"""
SECRET, OTHER = "correct-horse-battery", "another/staple"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The scripts that were tried out. None is run: each seems to fail alike."""
    scripts: list[str] = []

    def run(script: str, finding: Diagnostic, budget: Budget) -> str:
        scripts.append(script)
        return ""

    monkeypatch.setattr(trial, "difference", run)
    return scripts


def failed(model: Any, folder: pathlib.Path, args: tuple[Any, ...] = ()) -> tuple[str, Log]:
    """The script of an export that fails, and its log."""
    with pytest.raises(onnxplain.ExportFailed) as failure:
        onnxplain.export(model, (torch.ones(2), *args), repro=folder / "repro.py", control_flow="report")
    assert not any(finding.stage == "repro" for finding in failure.value.log.findings)
    return (folder / "repro.py").read_text(encoding="utf-8"), failure.value.log


def warned(log: Log) -> str:
    """The events of the script, joined."""
    return "".join(event.text for event in log.events if event.stage == "repro")


def head(script: str) -> str:
    """The comments at the top."""
    return script.partition("\n\n")[0]


def test_equal_strings_have_equal_placeholders(load: Load, tmp_path: pathlib.Path, runs: list[str]) -> None:
    used = "self.api_token, self.copies, self.login, self.raw"
    attributes = {"api_token": SECRET, "copies": [SECRET, {"key": SECRET}], "login": OTHER, "raw": SECRET.encode()}
    script, log = failed(load(SOURCE.replace("USED", used)).Net(**attributes), tmp_path, (SECRET, "an input of words"))
    assert script.count("'<api_token>'") + script.count("'<args_1>'") >= 4
    assert "'<login>'" in script
    assert "b'<raw>'" in script
    for absent in (SECRET, OTHER, "an input of words"):
        assert absent not in script
    assert len(runs) == 1
    assert "api_token" not in warned(log)


def test_different_strings_have_different_placeholders(load: Load, tmp_path: pathlib.Path, runs: list[str]) -> None:
    model = load(SOURCE.replace("USED", "self.names")).Net(names={"a b": SECRET, "a_b": OTHER})
    script, _ = failed(model, tmp_path)
    made = {text for text in ("'<names_a_b>'", "'<names_a_b 2>'") if text in script}
    assert len(made) == 2
    assert len(runs) == 1


PUBLIC = {
    "an activation": "leaky_relu",
    "a mode of padding": "replicate",
    "a mode of interpolation": "bilinear",
    "an equation": "bij, bjk -> bik",
    "a dtype": "torch.float32",
    "a device": "cuda:0",
    "a short one": "abc",
    "an empty one": "",
    "a literal of the code": "bright",
    "a name of the code": "soften",
    "an attribute": "inner",
}


@pytest.mark.parametrize("value", PUBLIC.values(), ids=PUBLIC)
def test_strings_that_tell_nothing_are_quoted(load: Load, tmp_path: pathlib.Path, runs: list[str], value: str) -> None:
    used = "soften = self.value, self.secret, self.inner, MODES"
    script, log = failed(load(SOURCE.replace("USED", used)).Net(value=value, secret=SECRET), tmp_path)
    assert f"'value': {value!r}" in script
    assert SECRET not in script
    assert "'<secret>'" in script
    assert "secret" not in warned(log)


def test_strings_that_the_script_needs_are_quoted_and_listed(load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the code computes with a string, so the script ends otherwise without it."""
    seen: list[str] = []
    difference = trial.difference
    monkeypatch.setattr(trial, "difference", lambda *given: seen.append(difference(*given)) or seen[-1])
    used = "x = x * int(self.settings.factor.removeprefix('times '))"
    module = load(SOURCE.replace("USED", used))
    settings = module.Settings()
    settings.factor = "times 31"
    script, log = failed(module.Net(settings=settings), tmp_path)
    assert "times 31" in script
    assert "settings.factor" in head(script)
    assert "settings.factor" in warned(log)
    assert [bool(each) for each in seen] == [True, False]


def test_quoted_strings_have_no_folders(load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_LOGIN", "hunter2hunter2")
    monkeypatch.setattr(trial, "difference", lambda script, *_: "It lacks the name." if "soften" not in script else "")
    strings = {"name": "soften", "path": str(tmp_path / "data.bin"), "login": "hunter2hunter2", "raw": b"hunter2hunter2"}
    used = "self.name, self.path, self.login, self.raw"
    script, log = failed(load(SOURCE.replace("USED", used)).Net(**strings), tmp_path)
    assert "'name': 'soften'" in script
    assert str(tmp_path) not in script
    assert "hunter2" not in script
    assert all(name in head(script) and name in warned(log) for name in strings)


def test_strings_are_no_reason_for_a_script_that_never_fails_alike(
    load: Load, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = []
    monkeypatch.setattr(trial, "difference", lambda *_: count.append(1) or "It does something else.")
    script, log = failed(load(SOURCE.replace("USED", "self.secret")).Net(secret=SECRET), tmp_path)
    assert SECRET not in script
    assert "'<secret>'" in script
    assert warned(log) == "It does something else."
    assert len(count) == 2


def test_a_message_and_comments_have_placeholders(load: Load, tmp_path: pathlib.Path, runs: list[str]) -> None:
    source = SOURCE.replace("USED", f'"""Opens {SECRET}."""\n        raise ValueError(self.secret)  # not {SECRET}')
    script, _ = failed(load(source).Net(secret=SECRET), tmp_path)
    assert SECRET not in script
    assert "raise ValueError(self.secret)" in script
    assert "<secret>" in head(script)
