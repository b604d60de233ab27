"""The corpus of failures: every case fails, warns or exports as it promises, at its line, and its fixes make it export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from corpora import OWN, SHARED, Corpus, found
from packaging.version import Version
from scoreboard.__main__ import right
from scoreboard.case import Case

ELSEWHERE: Mapping[str, str] = {
    "059_svd": "exported, with a warning at the line: the vectors have other signs than LAPACK's",
    "066_grid_sample_5d": "exported and verified: the operator is written with others at this opset, so there is nothing to warn of",
}
"""Cases whose outcome differs from their docstring, and why that is right."""

SINCE: Mapping[str, tuple[str, str]] = {
    "018_numpy_roundtrip": ("2.12", "earlier ones trace np.hanning as an operator of torch"),
    "o42_assert_on_shapes": ("2.12", "earlier ones also ask that the sizes are even"),
}
"""Cases of which an older torch makes something else, and what."""

pytestmark = pytest.mark.slow


def check(case: Case, result: dict[str, Any]) -> None:
    since, why = SINCE.get(case.name, ("0", ""))
    if Version(torch.__version__) < Version(since):
        pytest.skip(f"{why} (torch {torch.__version__})")
    assert result["outcome"] in ("exported", "failed")
    assert not result["internal"]
    assert not result["traceback"]
    assert case.name in ELSEWHERE or right(case, result), result
    assert all(each == "exported" for each in result.get("fixed", ())), result


@pytest.mark.parametrize("name", [case.name for case in found(OWN)])
def test_own(name: str, own_corpus: Corpus) -> None:
    check(*own_corpus.outcomes[name])


@pytest.mark.parametrize("name", [case.name for case in found(SHARED)])
def test_shared(name: str, shared_corpus: Corpus) -> None:
    check(*shared_corpus.outcomes[name])
