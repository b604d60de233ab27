"""Several targets in one process: each has its own files, and the exit code is the worst."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import pytest
from cli_models import MODELS
from click.testing import CliRunner, Result

from onnxplain.cli import main


def run(*args: str) -> Result:
    """The result of `onnxplain export ARGS`."""
    return CliRunner().invoke(main, ["export", *args])


def test_each_target_has_its_model_and_log(folder: pathlib.Path) -> None:
    result = run("models.py:double", "models.py:flip", "models:model", "-o", "out/", "--control-flow", "report")
    assert result.exit_code == 1
    names = {path.name for path in (folder / "out").iterdir() if path.is_file()}
    assert names == {"Double.onnx", "Double.sarif", "Flip.sarif", "Constant.onnx", "Constant.sarif"}
    summary = result.stdout.splitlines()[-3:]
    assert [line.split()[:2] for line in summary] == [
        ["exported", "models.py:double"],
        ["failed", "models.py:flip"],
        ["exported", "models:model"],
    ]


def test_a_target_that_is_none_keeps_none_of_the_others_from_it(calls: list[Any]) -> None:
    result = run("models.py:duble", "models.py:double", "nothing", "models.py:raises", "models.py:drop")
    assert result.exit_code == 2
    assert len(calls) == 2
    assert [line.split()[0] for line in result.stdout.splitlines()[-5:]] == ["error", "exported", "error", "error", "exported"]


def test_no_model_replaces_another(folder: pathlib.Path, calls: list[Any]) -> None:
    result = run("models.py:double", "models.py:with_all")
    assert (result.exit_code, len(calls)) == (2, 1)
    assert "models.py:double" in result.stderr
    (folder / "other").mkdir()
    (folder / "other" / "models.py").write_text(MODELS, encoding="utf-8")
    profile = "[[tool.onnxplain.profiles]]\npaths = ['other/*']\nname = 'other'\n"
    (folder / "pyproject.toml").write_text(profile, encoding="utf-8")
    assert run("models.py:double", "other/models.py:double").exit_code == 0
    assert [str(kwargs["f"]) for _, kwargs in calls] == ["Double.onnx", "Double.onnx", "other.onnx"]


@pytest.mark.parametrize(
    "option", [("-o", "a.onnx"), ("--sarif", "a.sarif"), ("--report", "a.md"), ("--repro", "a.py"), ("--name", "a"), ("-o", "folder")]
)
def test_options_that_name_one_file(option: tuple[str, str], folder: pathlib.Path, calls: list[Any]) -> None:
    (folder / "folder").mkdir()
    assert run("models.py:double", "models.py:drop", *option).exit_code == 2
    assert not calls


@pytest.mark.usefixtures("folder")
def test_paths_that_end_with_a_slash_are_folders(calls: list[Any]) -> None:
    assert run("--report", "models.py:double", "models.py:drop", "-o", "a/", "--sarif", "b/", "--repro", "c/").exit_code == 0
    files = [[pathlib.PurePath(kwargs[name]).as_posix() for name in ("f", "sarif", "report", "repro")] for _, kwargs in calls]
    assert files == [
        ["a/Double.onnx", "b/Double.sarif", "a/Double.md", "c/Double.repro.py"],
        ["a/Drop.onnx", "b/Drop.sarif", "a/Drop.md", "c/Drop.repro.py"],
    ]


def test_targets_import_what_lies_beside_them(folder: pathlib.Path, calls: list[Any]) -> None:
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "parts").mkdir()
        (folder / name / "parts" / "names.py").write_text(f"NAME = {name!r}\n", encoding="utf-8")
        (folder / name / "sizes.py").write_text("from parts.names import NAME\n", encoding="utf-8")
        code = f"{MODELS}\nimport sizes\nDouble.__name__ = Drop.__name__ = sizes.NAME\n"
        (folder / name / "net.py").write_text(code, encoding="utf-8")
    # The other package has no such file.
    (folder / "two" / "parts" / "__init__.py").touch()
    before, path = {*sys.modules}, [*sys.path]
    assert run("one/net.py:double", "two/net.py:double").exit_code == 0
    assert [str(kwargs["f"]) for _, kwargs in calls] == ["one.onnx", "two.onnx"]
    assert not {"net", "sizes", "parts", "parts.names"} & ({*sys.modules} - before)
    assert sys.path == path


def test_a_module_of_the_current_folder_comes_before_others(
    folder: pathlib.Path, calls: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "net_of_folder.py").write_text("raise LookupError\n", encoding="utf-8")
    (folder / "net_of_folder.py").write_text(MODELS, encoding="utf-8")
    monkeypatch.syspath_prepend(folder / "other")
    assert run("net_of_folder:double").exit_code == 0
    assert len(calls) == 1


def test_installed_packages_stay(folder: pathlib.Path, calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual environment may lie in the folder of the target."""
    package = folder / ".venv" / "lib" / "installed_for_test"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    # A package without that file has folders in several places, and may be the folder of the target.
    (package.parent / "spread_for_test").mkdir()
    (folder / "spread_for_test").mkdir()
    (folder / "around_for_test").mkdir()
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.syspath_prepend(folder)
    names = ("installed_for_test", "spread_for_test", "around_for_test")
    (folder / "around_for_test" / "net.py").write_text(f"{MODELS}\nimport {', '.join(names)}\n", encoding="utf-8")
    made = "import sys, types\nsys.modules['made_for_test'] = types.ModuleType('made_for_test')\n"
    (folder / "net.py").write_text(f"{MODELS}\nimport {', '.join(names[:2])}\n{made}", encoding="utf-8")
    for place, kept in (("", names[:2]), ("around_for_test/", names)):
        assert run(f"{place}net.py:double").exit_code == 0
        assert {*kept} <= sys.modules.keys()
    assert sys.modules.pop("made_for_test")
    assert calls
