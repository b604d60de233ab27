"""The cores and the memory that a triage takes where no option tells them."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping

import pytest

from onnxplain.triage import cores, memory

PROCESS, NEW, OLD = "/proc/self/statm", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"


def test_the_cores_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 4, 6}, raising=False)
    assert cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert cores() == 8
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, None),
        ({PROCESS: ""}, 4_000_000),
        ({PROCESS: "", NEW: "3000000\n"}, 3_000_000),
        ({PROCESS: "", NEW: "5000000\n"}, 4_000_000),
        ({PROCESS: "", NEW: "max\n", OLD: "2000000\n"}, 2_000_000),
        ({PROCESS: "", OLD: f"{2**63 - 4096}\n"}, 4_000_000),
    ],
)
def test_the_memory_is_the_least_that_limits_this_process(
    files: Mapping[str, str], found: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: pathlib.Path, **_: object) -> str:
        if str(path) not in files:
            raise FileNotFoundError
        return files[str(path)]

    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4000, "SC_PHYS_PAGES": 1000}.__getitem__)
    monkeypatch.setattr(pathlib.Path, "exists", lambda path: str(path) in files)
    monkeypatch.setattr(pathlib.Path, "read_text", read)
    assert memory() == found
