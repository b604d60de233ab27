"""Temporary files that a killed process left: the next export removes them, and nothing else."""

from __future__ import annotations

import os
import pathlib
import sys

import pytest

from onnxplain.diagnostics import Temporary, make_folder, remove_abandoned

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no marks of files in use")


def test_only_abandoned_files_are_removed(tmp_path: pathlib.Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept.txt").touch()
    abandoned = tmp_path / ".onnxplain-0a.tmp"
    abandoned.mkdir()
    (abandoned / "model.onnx").touch()
    (tmp_path / ".onnxplain-0b.tmp").touch()
    os.mkfifo(tmp_path / ".onnxplain-0c.tmp")
    (tmp_path / ".onnxplain-0d.tmp").symlink_to(elsewhere, target_is_directory=True)
    (tmp_path / ".onnxplain-0e.tmp").symlink_to(elsewhere / "kept.txt")
    for name in ("onnxplain-0f.tmp", ".onnxplain-0f.tmp.onnx", ".onnxplain-.tmp"):
        (tmp_path / name).touch()
    held = Temporary(tmp_path, make_folder)
    assert held.path.stat().st_mode & 0o777 == 0o700
    remove_abandoned(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    links = {".onnxplain-0d.tmp", ".onnxplain-0e.tmp"}
    assert left == {"elsewhere", "onnxplain-0f.tmp", ".onnxplain-0f.tmp.onnx", ".onnxplain-.tmp", held.path.name, *links}
    assert [path.name for path in elsewhere.iterdir()] == ["kept.txt"]
    held.release()
    held.release()
    remove_abandoned(tmp_path)
    assert not held.path.exists()


def test_a_folder_that_is_not_there_is_no_failure(tmp_path: pathlib.Path) -> None:
    remove_abandoned(tmp_path / "missing")


def open_files() -> int:
    return sum(1 for _ in pathlib.Path("/dev/fd").iterdir())


def test_no_file_stays_open(tmp_path: pathlib.Path) -> None:
    held = Temporary(tmp_path, make_folder)
    (tmp_path / ".onnxplain-0a.tmp").touch()
    before = open_files()
    remove_abandoned(tmp_path)
    assert open_files() == before
    held.release()
    assert open_files() == before - 1


def test_a_forked_process_leaves_its_parents_folder(tmp_path: pathlib.Path) -> None:
    held = Temporary(tmp_path, make_folder)
    if (child := os.fork()) == 0:
        held.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert held.path.exists()
    remove_abandoned(tmp_path)
    assert held.path.exists(), "the child's end does not release it"
    held.remove()
    assert not held.path.exists()
