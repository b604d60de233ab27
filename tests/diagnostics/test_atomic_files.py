"""New content of files that exist: on the disk before it is in place, and nothing stays open."""

from __future__ import annotations

import os
import pathlib
import stat
import sys

import pytest
from marks import needs_pathlib

from onnxplain.diagnostics import Prepared, replace_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows opens no folders")


def open_files() -> int:
    return sum(1 for _ in pathlib.Path("/dev/fd").iterdir())


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done to the disk."""
    steps, real = list[str](), os.replace

    def sync(handle: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else f"{os.fstat(handle).st_size} bytes")

    def replace(*args: str, **folders: int) -> None:
        steps.append("replace")
        real(*args, **folders)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    return steps


def test_content_and_name_are_on_the_disk(tmp_path: pathlib.Path, steps: list[str]) -> None:
    path = tmp_path / "model.py"
    path.write_text("before", encoding="utf-8")
    Prepared(path, b"behind it").replace()
    assert steps == ["9 bytes", "replace", "folder"]
    assert path.read_bytes() == b"behind it"


@needs_pathlib
@pytest.mark.parametrize(("durable", "expected"), [(True, ["9 bytes", "replace", "folder"]), (False, ["replace"])])
def test_only_durable_content_has_to_reach_the_disk(tmp_path: pathlib.Path, durable: bool, expected: list[str], steps: list[str]) -> None:
    replace_file(tmp_path / "log.sarif", b"behind it", durable=durable)
    assert steps == expected
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("log.sarif", b"behind it")]


def test_only_files_are_replaced(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(OSError, match=name) as refused:
            replace_file(tmp_path / name, b"text")
        assert refused.value.filename == str(tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe"]


def test_a_folder_that_is_moved_meanwhile_gets_the_content(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "folder" / "model.py"
    path.parent.mkdir()
    path.write_text("before", encoding="utf-8")
    prepared = Prepared(path, b"new")
    path.parent.rename(tmp_path / "moved")
    path.parent.mkdir()
    path.write_text("another file", encoding="utf-8")
    prepared.replace()
    assert path.read_text(encoding="utf-8") == "another file"
    assert [(each.name, each.read_bytes()) for each in (tmp_path / "moved").iterdir()] == [("model.py", b"new")]


@pytest.mark.parametrize("ends", [Prepared.replace, Prepared.discard], ids=["replaced", "discarded"])
def test_no_file_stays_open(tmp_path: pathlib.Path, ends: object) -> None:
    path = tmp_path / "deeper" / "model.py"
    path.parent.mkdir()
    path.touch()
    before = open_files()
    prepared = Prepared(path, b"x = 1")
    assert callable(ends)
    ends(prepared)
    with pytest.raises(OSError, match="missing"):
        Prepared(path.parent / "missing" / "model.py", b"x = 1")
    assert open_files() == before


def test_it_may_end_twice(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.py"
    path.touch()
    prepared = Prepared(path, b"x = 1")
    prepared.replace()
    before = open_files()
    prepared.discard()
    assert open_files() == before
    assert path.read_bytes() == b"x = 1"
