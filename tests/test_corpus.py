"""The corpus of failures: every case fails, warns or exports as it promises, at its line, and its fixes make it export."""

from __future__ import annotations

import concurrent.futures
import pathlib
from collections.abc import Mapping
from typing import Any

import pytest
from scoreboard import case as cases
from scoreboard.__main__ import right
from scoreboard.case import Case
from scoreboard.run import run

OWN = pathlib.Path(__file__).parent / "corpus"
SHARED = pathlib.Path(__file__).parent.parent.parent / "shared" / "corpus"

ELSEWHERE: Mapping[str, str] = {
    "066_grid_sample_5d": "exported and verified: the operator is written with others at this opset, so there is nothing to warn of",
}
"""Cases that do not end as their docstring says, and why that is right."""

pytestmark = pytest.mark.slow


def found(folder: pathlib.Path) -> list[Case]:
    return [cases.read(path) for path in sorted(folder.glob("case_*.py"))]


def outcomes(folder: pathlib.Path) -> dict[str, tuple[Case, dict[str, Any]]]:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = {case.name: (case, pool.submit(run, "ours", case)) for case in found(folder)}
        return {name: (case, future.result()) for name, (case, future) in runs.items()}


@pytest.fixture(scope="module")
def own() -> dict[str, tuple[Case, dict[str, Any]]]:
    return outcomes(OWN)


@pytest.fixture(scope="module")
def shared() -> dict[str, tuple[Case, dict[str, Any]]]:
    if not SHARED.exists():
        pytest.skip(f"the shared corpus is not there: {SHARED.name}")
    return outcomes(SHARED)


def check(case: Case, result: dict[str, Any]) -> None:
    assert result["outcome"] in ("exported", "failed")
    assert not result["internal"]
    assert not result["traceback"]
    assert case.name in ELSEWHERE or right(case, result), result
    assert all(each == "exported" for each in result.get("fixed", ())), result


@pytest.mark.parametrize("name", [case.name for case in found(OWN)])
def test_own(name: str, own: dict[str, tuple[Case, dict[str, Any]]]) -> None:
    check(*own[name])


@pytest.mark.parametrize("name", [case.name for case in found(SHARED)])
def test_shared(name: str, shared: dict[str, tuple[Case, dict[str, Any]]]) -> None:
    check(*shared[name])
