"""Models of libraries as targets, by their names, such as `timm:resnet18`. A stub of timm stands in for the library."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from onnxplain.cli import main

STUB = """
import torch

def list_models():
    return ["net_small", "net_large"]

def model_entrypoint(name):
    return create_model

def create_model(name, pretrained):
    assert not pretrained
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 4 * 4, 2))
    model.default_cfg = {"input_size": (3, 4, 4)}
    return model
"""
MODELS = "from ._registry import register_model\n\n@register_model\ndef net_small(pretrained=False, **kwargs): ...\n"


@pytest.fixture(autouse=True)
def library(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "lib" / "timm" / "models").mkdir(parents=True)
    (tmp_path / "lib" / "timm" / "__init__.py").write_text(STUB, encoding="utf-8")
    (tmp_path / "lib" / "timm" / "models" / "nets.py").write_text(MODELS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path / "lib")
    monkeypatch.chdir(tmp_path)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "timm"]:
        del sys.modules[name]


def run(*args: str) -> Result:
    return CliRunner().invoke(main, args)


def test_a_model_of_a_library_needs_no_file(tmp_path: pathlib.Path) -> None:
    result = run("export", "timm:net_small", "-o", "net.onnx")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "net.onnx").is_file()
    assert run("memory", "timm:net_small").exit_code == 0


def test_a_library_s_model_takes_other_inputs() -> None:
    result = run("export", "timm:net_small", "--input", "input=f32[batch,3,4,4]")
    assert (result.exit_code, "batch" in result.stdout) == (0, True)


@pytest.mark.parametrize(
    ("target", "told"), [("timm:net_smal", "'net_small'"), ("timm:net_*", "triage"), ("tim:net_small", "'timm'"), ("timm:", "TARGET")]
)
def test_names_that_are_not_there_are_refused(target: str, told: str) -> None:
    result = run("export", target)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run("export", "torchvision:resnet18")
    assert result.exit_code == 2
    assert "pip install torchvision" in result.stderr


@pytest.mark.parametrize(
    ("words", "found"), [("timm:net", "plain,timm:net_small"), ("tim", "plain,timm:"), ("timm : net", "plain,net_small")]
)
def test_shells_complete_libraries_and_names(words: str, found: str) -> None:
    """The shell splits at colons, as bash does."""
    given = ["onnxplain", "export", *words.split()]
    environment = {"COMP_WORDS": " ".join(given), "COMP_CWORD": str(len(given) - 1), "_ONNXPLAIN_COMPLETE": "bash_complete"}
    result = CliRunner().invoke(main, [], env=environment, prog_name="onnxplain")
    assert found in result.stdout.splitlines()
