"""During an export, calls may be nested more deeply; afterwards as before."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from onnxplain.process import deeper_calls


@pytest.fixture(autouse=True)
def limit_stays() -> Iterator[None]:
    before = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize(("before", "within"), [(1_000, 5_000), (6_000, 6_000)])
def test_a_higher_limit_stays(before: int, within: int) -> None:
    sys.setrecursionlimit(before)
    with deeper_calls():
        assert sys.getrecursionlimit() == within
    assert sys.getrecursionlimit() == before


def test_the_limit_is_put_back_if_an_interrupt_comes_right_after_it_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    real = sys.setrecursionlimit

    def interrupted(limit: int) -> None:
        real(limit)
        monkeypatch.undo()
        raise KeyboardInterrupt

    sys.setrecursionlimit(1_000)
    monkeypatch.setattr(sys, "setrecursionlimit", interrupted)
    with pytest.raises(KeyboardInterrupt), deeper_calls():
        pass
    assert sys.getrecursionlimit() == 1_000


@pytest.mark.parametrize("own", [2_000, 7_000])
def test_the_limit_that_a_model_sets_stays(own: int) -> None:
    sys.setrecursionlimit(1_000)
    with deeper_calls():
        sys.setrecursionlimit(own)
    assert sys.getrecursionlimit() == own


def test_a_smaller_limit_of_a_model_does_not_hold() -> None:
    sys.setrecursionlimit(1_000)
    with deeper_calls():
        sys.setrecursionlimit(200)
        assert sys.getrecursionlimit() >= 5_000
        with pytest.raises(ValueError, match="greater or equal"):
            sys.setrecursionlimit(0)
    assert sys.getrecursionlimit() == 1_000
