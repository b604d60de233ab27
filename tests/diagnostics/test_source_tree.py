"""Which file a log means: only Python files below the root, whatever the log says."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import pytest

from onnxplain.diagnostics import SourceTree, Unreachable

Bases = dict[str, dict[str, Any]]


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder `root` with `net.py` and `inner/net.py`, beside `outside.py`."""
    folder = (tmp_path / "root").resolve()
    (folder / "inner").mkdir(parents=True)
    for path in (folder / "net.py", folder / "inner" / "net.py", tmp_path / "outside.py"):
        path.touch()
    return folder


def located(uri: str, base: str | None = "SRCROOT") -> dict[str, Any]:
    return {"uri": uri} if base is None else {"uri": uri, "uriBaseId": base}


def found(root: pathlib.Path, location: dict[str, Any], uri: str | None) -> str:
    bases: Bases = {"SRCROOT": {} if uri is None else {"uri": uri}}
    return SourceTree.around(root).find(location, bases).relative_to(root).as_posix()


def test_relative_names_are_below_the_base_or_the_root(root: pathlib.Path) -> None:
    inner = (root / "inner").as_uri() + "/"
    assert found(root, located("net.py"), None) == "net.py"
    assert found(root, located("net.py", None), inner) == "net.py"
    assert found(root, located("net.py"), inner) == "inner/net.py"
    assert found(root, located("missing.py"), inner) == "missing.py"
    assert found(root, located((root / "inner" / "net.py").as_uri(), None), None) == "inner/net.py"


@pytest.mark.parametrize("base", ["https://example.com{inner}/", "inner/", "//server{inner}/", "file:inner/", "file://{outside}/"])
def test_bases_that_are_no_folders_below_the_root_do_not_count(root: pathlib.Path, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    assert found(root, located("net.py"), base.format(inner=root / "inner", outside=root.parent)) == "net.py"


def test_files_elsewhere_are_unreachable(root: pathlib.Path) -> None:
    (root / "link.py").symlink_to(root.parent / "outside.py")
    (root / "folder.py").mkdir()
    os.mkfifo(root / "pipe.py")
    with (root / "large.py").open("wb") as file:
        file.truncate(10**9)
    for uri in (
        *("../outside.py", "inner/..%5C..%5Cnet.py", "..\\net.py", "https://example.com/net.py", "file://host/net.py", "net%00.py", ""),
        *("net.txt", "link.py", "folder.py", "pipe.py", "large.py", (root.parent / "outside.py").as_uri()),
    ):
        with pytest.raises(Unreachable):
            found(root, located(uri), None)
    with pytest.raises(Unreachable):
        found(root, located("net.py", "PACKAGES"), None)


def test_only_a_root_that_is_named_may_hold_files_from_elsewhere(root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bases: Bases = {"ELSEWHERE": {}}
    assert SourceTree.around(root).find(located("net.py", "ELSEWHERE"), bases) == root / "net.py"
    monkeypatch.chdir(root)
    assert SourceTree.around().find(located("net.py"), {"SRCROOT": {}}) == root / "net.py"
    with pytest.raises(Unreachable):
        SourceTree.around().find(located("net.py", "ELSEWHERE"), bases)
