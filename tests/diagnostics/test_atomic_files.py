"""New content of files that exist: on the disk before it is in place, and nothing stays open."""

from __future__ import annotations

import os
import pathlib
import stat
import sys

import pytest

from onnxplain.diagnostics import Prepared

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows opens no folders")


def open_files() -> int:
    return sum(1 for _ in pathlib.Path("/dev/fd").iterdir())


def test_content_and_name_are_on_the_disk(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, steps, real = tmp_path / "model.py", list[str](), os.replace
    path.write_text("before", encoding="utf-8")

    def sync(handle: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else f"{os.fstat(handle).st_size} bytes")

    def replace(*args: str, **folders: int) -> None:
        steps.append("replace")
        real(*args, **folders)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    Prepared(path, b"behind it").replace()
    assert steps == ["9 bytes", "replace", "folder"]
    assert path.read_bytes() == b"behind it"


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
