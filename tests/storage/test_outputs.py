"""No output of an export replaces another one, and all of them are where the user was when the export began."""

from __future__ import annotations

import os
import pathlib
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

import onnxplain


class Wanderer(torch.nn.Module):
    """Changes the current folder while it runs."""

    def __init__(self, folder: pathlib.Path) -> None:
        super().__init__()
        self.folder = str(folder)
        self.layer = torch.nn.Linear(3, 999)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.chdir(self.folder)
        result: torch.Tensor = self.layer(x)
        return result


@pytest.fixture
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    folder = tmp_path / "here"
    (folder / "d").mkdir(parents=True)
    (folder / "link").symlink_to(folder / "d", target_is_directory=True)
    (folder / "log.sarif").symlink_to(folder / "b.onnx")
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    "outputs",
    [
        {"f": "a.onnx", "sarif": "a.onnx.data"},
        {"f": "b.onnx", "sarif": "d/../b.onnx"},
        {"f": "b.onnx", "sarif": "log.sarif"},
        {"f": "d/b.onnx", "report": "link/b.onnx"},
        {"f": "d/b.onnx", "repro": "link/b.onnx.data"},
        {"sarif": "d/log", "report": "link/log"},
        {"report": "x", "repro": "./x"},
        {"f": "a.onnx", "sarif": __file__},
        {"f": __file__},
        {"report": __file__},
        {"f": "Wanderer.pt2", "dump_exported_program": True},
        {"f": "art/profile.txt", "artifacts_dir": "art", "profile": True},
        {"sarif": "art/profile.txt", "artifacts_dir": "art"},
        {"report": "art/prepared-graph.txt", "artifacts_dir": "art"},
        {"f": "a.graphs/captured.txt", "sarif": "a.sarif"},
        {"report": "a.graphs/onnx.txt", "sarif": "a.sarif"},
        {"report": "link/a.graphs/onnx.txt", "sarif": "d/a.sarif"},
        {"f": "a.graphs", "sarif": "a.sarif"},
        {"artifacts_dir": "a.graphs", "sarif": "a.sarif"},
        {"f": "new", "sarif": "new/a.sarif"},
        {"f": "a.graphs/b.onnx", "sarif": "a.sarif"},
        {"report": "d/a.graphs/deeper/b.md", "sarif": "link/a.sarif"},
        {"f": "a.onnx", "sarif": f"{'b' * 249}.sarif"},
        {"f": f"{'b' * 246}.onnx", "external_data": True},
    ],
    ids=str,
)
def test_no_output_replaces_another(here: pathlib.Path, outputs: dict[str, Any]) -> None:
    before = pathlib.Path(__file__).read_bytes()
    with pytest.raises(onnxplain.InvalidArgument):
        onnxplain.export(Wanderer(here / "d"), (torch.ones(2, 3),), **outputs)
    assert pathlib.Path(__file__).read_bytes() == before
    assert [path.name for path in here.rglob("*") if path.is_file()] == []


NET = """
import torch

from helper import double


class Net(torch.nn.Module):
    def forward(self, x):
        return double(x)
"""
HELPER = """
def double(x):
    return x * 2
"""


@pytest.mark.parametrize(
    "outputs",
    [
        {"f": "../net.py"},
        {"sarif": "../net.py"},
        {"report": "../net.py"},
        {"report": "link.md"},
        {"f": "../helper.py"},
        {"sarif": "net", "report": "../helper.py"},
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [lambda m: m.Net(), lambda m: torch.nn.Sequential(m.Net()), lambda m: m.Net().forward, lambda m: m.double])
def test_no_output_replaces_a_source(
    here: pathlib.Path, outputs: dict[str, Any], make: Callable[[ModuleType], Any], load: Callable[..., ModuleType]
) -> None:
    helper = load(HELPER, "helper")
    module = load(NET.replace("helper", helper.__name__), "net")
    (here / "link.md").symlink_to("../net.py")
    before = [(here.parent / name).read_bytes() for name in ("net.py", "helper.py")]
    with pytest.raises(onnxplain.InvalidArgument):
        onnxplain.export(make(module), (torch.ones(2, 3),), **outputs)
    assert [(here.parent / name).read_bytes() for name in ("net.py", "helper.py")] == before
    assert not (here / "net").exists()


def test_no_output_replaces_a_source_that_is_no_module(here: pathlib.Path) -> None:
    (here / "net.txt").write_text(NET.replace("from helper import double", "double = torch.sin"), encoding="utf-8")
    scope: dict[str, Any] = {"__name__": "nowhere"}
    exec(compile((here / "net.txt").read_text(encoding="utf-8"), str(here / "net.txt"), "exec"), scope)
    with pytest.raises(onnxplain.InvalidArgument):
        onnxplain.export(scope["Net"](), (torch.ones(2, 3),), report="net.txt")


@pytest.mark.parametrize("name", ["a.onnx", "a.onnx.data", "a.sarif", "a.graphs/onnx.txt", "art/profile.txt", "a.graphs"])
def test_a_pipe_is_no_output(here: pathlib.Path, name: str) -> None:
    for folder in {"a.graphs", "art"} - {name}:
        (here / folder).mkdir()
    os.mkfifo(here / name)
    with pytest.raises(onnxplain.InvalidArgument, match=re.escape(name)):
        onnxplain.export(Wanderer(here / "d"), (torch.ones(2, 3),), "a.onnx", sarif="a.sarif", artifacts_dir="art")
    assert (here / name).is_fifo()


def test_a_program_is_not_saved_over_a_pipe(here: pathlib.Path) -> None:
    program = onnxplain.export(torch.nn.Linear(3, 3), (torch.ones(2, 3),))
    os.mkfifo(here / "a.onnx.data")
    with pytest.raises(onnxplain.InvalidArgument, match=r"a\.onnx\.data"):
        program.save("a.onnx", external_data=True)
    assert (here / "a.onnx.data").is_fifo()


def test_a_name_of_a_class_is_no_path(here: pathlib.Path) -> None:
    for name in ("../../evil", str(here.parent / "evil"), "..\\evil", "..", "", "a\nb"):
        model = type(name, (torch.nn.Linear,), {})(3, 3)
        program = onnxplain.export(model, (torch.ones(2, 3),), report=True)
        (report,) = here.glob("*.md")
        report.unlink()
        assert not set(program.diagnostics.subject) & set("/\\\n"), name
    assert [path.name for path in here.parent.iterdir()] == ["here"]


def test_weights_inside_the_model_leave_the_name_free(here: pathlib.Path) -> None:
    onnxplain.export(torch.nn.Linear(3, 3), (torch.ones(2, 3),), "a.onnx", sarif="a.onnx.data", external_data=False)
    assert (here / "a.onnx").exists()
    assert (here / "a.onnx.data").read_bytes().startswith(b"{")


def test_outputs_are_where_the_export_began(here: pathlib.Path) -> None:
    model = Wanderer(here / "d")
    onnxplain.export(model, (torch.ones(2, 3),), "m.onnx", sarif="m.sarif", report=True, external_data=True, artifacts_dir="art")
    assert pathlib.Path.cwd() == here / "d"
    assert sorted(path.name for path in here.iterdir() if path.is_file()) == ["m.md", "m.onnx", "m.onnx.data", "m.sarif"]
    assert list((here / "d").iterdir()) == []


def test_a_folder_that_is_gone(here: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    ran = list[int]()

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            ran.append(1)
            return x + 1

    for outputs in ({"f": "a.onnx"}, {"sarif": here / "a.sarif"}, {"report": True}):
        with pytest.raises(onnxplain.OnnxExporterError, match="current folder"):
            onnxplain.export(Model(), (torch.ones(2),), **outputs)
    assert ran == []
    monkeypatch.chdir(here)
