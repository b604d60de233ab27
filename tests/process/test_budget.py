"""How often and how long a model may run to explain a failure."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import pytest

from onnxplain.process import Budget, BudgetSpent, Stopped


class Clock:
    """A clock that moves only when it is told to, in seconds."""

    def __init__(self) -> None:
        self.now = 100.0
        self.waited = 0.0

    def run(self, seconds: int) -> None:
        """Works for some seconds, a line for each."""
        for _ in range(seconds):
            self.now += 1.0

    def wait(self, seconds: int) -> None:
        """Sleeps for some seconds, or lets other programs work."""
        for _ in range(seconds):
            self.now += 1.0
            self.waited += 1.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    monkeypatch.setattr(time, "thread_time", lambda: made.now - made.waited)
    return made


def here(file: str) -> bool:
    return file == __file__


@pytest.mark.parametrize(
    ("most", "share", "runs", "left"),
    [
        *((math.inf, 0.5, 10, 10.0), (math.inf, 0.5, 11, 9.0), (math.inf, 0.5, 50, 9.0)),
        *((3.0, 0.5, 3, 17.0), (3.0, 0.5, 50, 16.0), (15.0, 0.5, 50, 9.0)),
        *((math.inf, 1.0, 20, 0.0), (math.inf, 1.0, 50, -1.0), (15.0, 1.0, 50, 4.0)),
    ],
)
def test_a_run_is_stopped_after_its_time(clock: Clock, most: float, share: float, runs: int, left: float) -> None:
    budget = Budget(runs=2, seconds=20.0)
    stopped = False
    try:
        with budget.one(here, most, share=share):
            clock.run(runs)
    except Stopped:
        stopped = True
    assert stopped == (runs > min(most, 20 * share))
    assert (budget.runs, budget.seconds) == (1, left)


@pytest.mark.parametrize(("seconds", "left"), [(10, 20.0), (13, 19.0), (40, 10.0), (60, 20.0 - 31 / 3)])
def test_waiting_counts_a_third_after_a_pause(clock: Clock, seconds: int, left: float) -> None:
    budget = Budget(seconds=20.0)
    stopped = False
    try:
        with budget.one(here):
            clock.wait(seconds)
    except Stopped:
        stopped = True
    assert stopped == (seconds > 40)
    assert budget.seconds == pytest.approx(left)


def test_a_run_that_returns_late_is_not_stopped(clock: Clock) -> None:
    def late() -> None:
        clock.now += 50.0

    budget = Budget(runs=2, seconds=20.0)
    with budget.one(here):
        late()
    assert budget.seconds == -30.0
    assert not budget.is_open


def test_only_some_files_are_stopped(clock: Clock) -> None:
    budget = Budget(runs=2, seconds=20.0)
    with budget.one(lambda file: False):
        clock.run(15)
    assert budget.seconds == 5.0


def test_a_model_does_not_catch_the_stop(clock: Clock) -> None:
    def tries() -> None:
        try:
            clock.run(50)
        except Exception:  # noqa: BLE001  as a model may write
            pytest.fail("the model caught it")

    with pytest.raises(Stopped), Budget(seconds=20.0).one(here):
        tries()


@pytest.mark.parametrize(("runs", "seconds", "is_open"), [(1, 1.0, True), (0, 1.0, False), (1, 0.0, False), (1, -1.0, False)])
def test_nothing_runs_without_a_budget(runs: int, seconds: float, is_open: bool) -> None:
    budget, ran = Budget(runs, seconds), []
    assert budget.is_open == is_open

    def run() -> None:
        with budget.one(here):
            ran.append(1)

    if is_open:
        run()
        assert budget.runs == 0
    else:
        with pytest.raises(BudgetSpent):
            run()
    assert len(ran) == is_open


def test_the_first_limit_grows_with_the_capture() -> None:
    budget = Budget(runs=5, seconds=20.0)
    seconds: list[float] = []
    steps: list[Callable[[], None]] = [
        lambda: budget.grow(10.0),
        lambda: budget.grow(30.0),
        lambda: budget.grow(25.0),
        lambda: budget.spend(5.0),
        lambda: budget.grow(40.0),
    ]
    for step in steps:
        step()
        seconds.append(budget.seconds)
    assert seconds == [20.0, 30.0, 30.0, 25.0, 35.0]
    assert budget.runs == 4
    assert (budget.has(34.9), budget.has(35.0)) == (True, False)


def test_the_usual_budget() -> None:
    budget = Budget()
    assert (budget.runs, budget.seconds) == (12, 20.0)
