"""The hash of a file, with the function that newer Pythons have for it and without."""

from __future__ import annotations

import hashlib
import pathlib

import pytest

from onnxplain.diagnostics import sha256


@pytest.mark.parametrize("has_function", [True, False], ids=["newer", "Python 3.10"])
@pytest.mark.parametrize("size", [0, 1, 2**20, 2**20 + 1, 3 * 2**20 - 1])
def test_the_whole_file_is_hashed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, size: int, has_function: bool) -> None:
    if not has_function:
        monkeypatch.delattr(hashlib, "file_digest", raising=False)
    data = bytes(each % 251 for each in range(1024)) * (size // 1024) + b"\x07" * (size % 1024)
    path = tmp_path / "file"
    path.write_bytes(data)
    assert sha256(path) == hashlib.sha256(data).hexdigest()


def test_a_file_that_is_gone_has_no_hash(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        sha256(tmp_path / "file")
