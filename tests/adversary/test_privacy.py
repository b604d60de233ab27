"""What an export tells of the machine: no folders above the checkout, no user, no environment values, in any file that it writes."""

from __future__ import annotations

import pathlib
import types
from typing import Any

import pytest
import torch
from click.testing import CliRunner

import onnxplain
from onnxplain.cli import main
from onnxplain.diagnostics import privacy_of
from onnxplain.repro import minimise, trial
from onnxplain.repro.minimise import Minimised

SOURCE = """
import os

import torch

SECRET = os.environ["SERVICE_LOGIN"]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.login = SECRET
        self.weights = __file__ + ".pt"

    def forward(self, x, login=SECRET):
        places = __file__, os.path.expanduser("~/.netrc"), os.path.dirname(os.getcwd()) + "/other", os.environ["SERVICE_LOGIN"]
        escaped = f"\\n{self.login}", f"\\n{__file__}", b"\\x1b" + self.login.encode(), "https://example.com/?a=%20" + self.login
        glued = f"-I{os.getcwd()}/include -L{__file__}", f"s3://bucket{os.getcwd()}", f"FILE://{__file__}", f"/{os.getcwd()}/x"
        raise RuntimeError(f"{self.login} does not open {places}: {self.weights} {os.getcwd()} {escaped} {glued}")
"""
SCRIPTED = """
import os
import pathlib

import torch

SECRET = os.environ["SERVICE_LOGIN"]
FOLDER = pathlib.Path.home()


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.login = SECRET
        self.files = {"weights": __file__ + ".pt", "cache": FOLDER, "again": [SECRET]}
        self.act = "leaky_relu"

    def forward(self, x, login=SECRET, folder=FOLDER):
        '''Trained in HERE.'''
        if SAME:
            if x.sum() > 0:  # see HERE/notes.txt
                return getattr(torch.nn.functional, self.act)(x)
        return -x
"""
SECRETS = ("telling-name", "home-of-alice", "hunter2hunter2", "own-packages", "file:/")


@pytest.fixture
def checkout(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The current folder, a checkout in a folder with a telling name."""
    root = tmp_path / "telling-name" / "checkout"
    (root / ".git").mkdir(parents=True)
    (tmp_path / "home-of-alice").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home-of-alice"))
    monkeypatch.setenv("SERVICE_LOGIN", "hunter2hunter2")
    monkeypatch.chdir(root)
    return root


def module(path: pathlib.Path, source: str = SOURCE) -> types.ModuleType:
    """The user's module."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
    made = types.ModuleType("net")
    made.__file__ = str(path)
    exec(compile(source, str(path), "exec"), vars(made))
    return made


def told(checkout: pathlib.Path) -> str:
    """All that the export wrote, and what a report of its log says."""
    report = CliRunner().invoke(main, ["report", str(checkout / "net.sarif")])
    assert report.exit_code == 0, report.output
    files = [path for path in checkout.rglob("*") if path.is_file() and path.name != "net.py"]
    return report.stdout + "".join(path.read_text(encoding="utf-8") for path in files)


@pytest.mark.parametrize("folder", ["", "deeper", "../elsewhere", "../../home-of-alice", "../../own-packages/site-packages/package"])
def test_a_failed_export_tells_nothing_of_the_machine(checkout: pathlib.Path, folder: str) -> None:
    net = module((checkout / folder / "net.py").resolve()).Net()
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(
            net,
            (torch.ones(2),),
            checkout / "net.onnx",
            sarif="net.sarif",
            report="net.md",
            profile=True,
            _command_line=f"onnxplain export {checkout}/net.py:build -o {checkout.parent}/net.onnx",
        )
    assert [finding.rule.id for finding in failed.value.findings] == ["OXP1005"]
    text = told(checkout)
    assert "does not open" in text
    assert {secret for secret in SECRETS if secret in text} == set()


def test_a_finished_export_tells_nothing_of_the_machine(checkout: pathlib.Path) -> None:
    folder = checkout.parent / "models"
    folder.mkdir()
    onnxplain.export(
        torch.nn.Linear(2, 2),
        (torch.ones(2, 2),),
        folder / "net.onnx",
        sarif="net.sarif",
        report="net.md",
        profile=True,
        external_data=True,
    )
    text = told(checkout)
    assert "net.onnx" in text
    assert {secret for secret in SECRETS if secret in text} == set()


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("", "net.py:6"),
        ("deeper", "deeper/net.py:6"),
        ("../elsewhere", "net.py:6"),
        ("../../home-of-alice", "net.py:6"),
        ("../../own-packages/site-packages/package", "package/net.py:6"),
    ],
)
def test_a_model_tells_nothing_of_the_machine(checkout: pathlib.Path, folder: str, source: str) -> None:
    text = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x.sin()\n"
    net = module((checkout / folder / "net.py").resolve(), text).Net()
    made = onnxplain.export(net, (torch.ones(2),), checkout / "net.onnx")
    assert [node.metadata_props["onnxplain.source"] for node in made.model.graph] == [source]
    written = (checkout / "net.onnx").read_bytes().decode(errors="replace")
    assert source in written
    assert {secret for secret in SECRETS if secret in written} == set()


@pytest.mark.parametrize(("same", "ends"), [("self.login == self.files['again'][0]", [True]), ("login == self.login", [False, False])])
def test_a_script_tells_nothing_of_the_machine(
    checkout: pathlib.Path, monkeypatch: pytest.MonkeyPatch, same: str, ends: list[bool]
) -> None:
    """The second model compares with the environment: no script without the secret fails alike."""
    runs: list[bool] = []
    difference = trial.difference

    def run(*given: Any) -> str:
        found = difference(*given)
        runs.append(not found)
        return found

    monkeypatch.setattr(trial, "difference", run)
    # NOTE: a shorter script has less to tell.
    monkeypatch.setattr(minimise, "minimised", lambda script, *_: Minimised(script))
    net = module(checkout / "net.py", SCRIPTED.replace("HERE", str(checkout.parent)).replace("SAME", same)).Net()
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(net, (torch.ones(2),), checkout / "net.onnx", repro=True, control_flow="report")
    assert [finding.rule.id for finding in failed.value.findings] == ["OXP1001"]
    assert runs == ends
    text = (checkout / "net.repro.py").read_text(encoding="utf-8")
    assert "x.sum() > 0" in text
    assert "'leaky_relu'" in text
    assert {secret for secret in SECRETS if secret in text} == set()


@pytest.mark.parametrize(
    ("name", "value", "is_hidden"),
    [
        ("DB_PASSWORD", "pear", True),
        ("api_key", "zq7!x", True),
        ("PGPASSWORD", "correct horse", True),
        ("ANYTHING", "a1b2c3d4", True),
        ("DATABASE_URL", "postgres://reader:pear@host/base", True),
        ("DB_PASSWORD", "abc", False),
        ("USE_PASSWORD", "True", False),
        ("MAX_TOKENS", "4096", False),
        ("TOKENIZERS_PARALLELISM", "false", False),
        ("XDG_SESSION_CLASS", "user", False),
        ("LC_NUMERIC", "C", False),
        ("EDITOR", "some-editor", False),
        ("DB_PWD", "correcthorse", True),
        ("NUM_PIN", "48213377", True),
        ("PIN", "4821", True),
        ("OLDPWD", "some-folder", False),
        ("PWD", "some-folder", False),
    ],
)
def test_secrets_of_the_environment_are_hidden_by_name_and_by_look(
    checkout: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, is_hidden: bool
) -> None:
    monkeypatch.setenv(name, value)
    shown = privacy_of(checkout).text(f"it got {value!r} and ({value})")
    assert (value not in shown, f"${name}" in shown) == (is_hidden, is_hidden)


def test_the_password_in_a_url_is_hidden_without_the_url(checkout: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://reader:pear@host/base")
    assert privacy_of(checkout).text("refused pear") == "refused $DATABASE_URL"
