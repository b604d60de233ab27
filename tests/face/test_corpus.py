"""The corpus of failures: every case fails, warns or exports as it promises, at its line, and its fixes make it export."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from corpora import OWN, SHARED, Corpus, found
from marks import skip_if_old_runtime
from packaging.version import Version
from scoreboard.__main__ import right
from scoreboard.case import Case


@dataclasses.dataclass(frozen=True)
class Other:
    """The findings of a case whose docstring expects another outcome.

    Attributes:
        why: Why these are right.
        findings: The rules and lines of each set of findings that may come.
        before: The first torch with the outcome of the docstring, if there is one.
    """

    why: str
    findings: Sequence[set[tuple[str, int]]]
    before: str = ""


ELSEWHERE: Mapping[str, Other] = {
    "059_svd": Other(
        "the vectors may have other signs than LAPACK's: a warning says so, and another one if they differ for the example",
        [{("OXP1036", 13)}, *({("OXP1036", 13), (rule, line)} for line in (12, 13) for rule in ("OXP6002", "OXP6006"))],
    ),
    "066_grid_sample_5d": Other("the operator is written with others at this opset, so there is nothing to warn of", [set()]),
    "o42_assert_on_shapes": Other("torch asks for even sizes instead", [{("OXP1011", 16), ("OXP4001", 12)}], before="2.12"),
    "o100_module_dict_by_data": Other("the fixed model does not export", [{("OXP1002", 18)}], before="2.12"),
    "o105_healthy_print": Other("torch formats no symbolic number", [{("OXP1009", 19)}], before="2.12"),
}
"""Cases whose outcome differs from their docstring."""

pytestmark = pytest.mark.slow


def check(case: Case, result: dict[str, Any]) -> None:
    skip_if_old_runtime(case.name, "059_svd")
    assert result["outcome"] in ("exported", "failed")
    assert not result["internal"]
    assert not result["traceback"]
    other = ELSEWHERE.get(case.name)
    old = other is not None and bool(other.before) and Version(torch.__version__) < Version(other.before)
    if other and (old or not other.before):
        assert {tuple(finding) for finding in result["findings"]} in other.findings, result
    else:
        assert right(case, result), result
    # NOTE: an older torch may not export what a fix makes of the model.
    assert old or all(each == "exported" for each in result.get("fixed", ())), result


@pytest.mark.parametrize("name", [case.name for case in found(OWN)])
def test_own(name: str, own_corpus: Corpus) -> None:
    check(*own_corpus.outcomes[name])


@pytest.mark.parametrize("name", [case.name for case in found(SHARED)])
def test_shared(name: str, shared_corpus: Corpus) -> None:
    check(*shared_corpus.outcomes[name])
