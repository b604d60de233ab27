"""Random numbers of the caller go on as if nobody else had drawn any."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from onnxplain.process import random_numbers_kept


def drawn() -> list[float]:
    return [random.random(), float(np.random.rand()), float(torch.rand(()))]


@pytest.mark.parametrize("seed", [None, 5])
def test_the_caller_draws_what_it_would_have_drawn(seed: int | None) -> None:
    for _ in range(2):
        with random_numbers_kept():
            expected = drawn()
        with random_numbers_kept(seed):
            within = drawn()
        assert drawn() == expected
        assert [one == other for one, other in zip(within, expected, strict=True)] == [seed is None] * 3


def test_the_same_seed_draws_the_same() -> None:
    results = []
    for seed in (5, 5, 6):
        with random_numbers_kept(seed):
            results.append(drawn())
    assert results[0] == results[1]
    assert not set(results[0]) & set(results[2])


class Accelerator:
    """A GPU's generators, as `torch.cuda` offers them."""

    def __init__(self, is_initialized: bool) -> None:
        self.is_initialized = lambda: is_initialized
        self.states = [torch.tensor([1]), torch.tensor([2])]

    def get_rng_state_all(self) -> list[torch.Tensor]:
        return [each.clone() for each in self.states]

    def set_rng_state_all(self, states: list[torch.Tensor]) -> None:
        self.states = states

    def manual_seed_all(self, seed: int) -> None:
        self.states = [torch.tensor([seed])] * 2


@pytest.mark.parametrize(("started", "within"), [(True, [5, 5]), (False, [1, 2])])
def test_generators_of_gpus_are_put_back_where_there_are_any(monkeypatch: pytest.MonkeyPatch, started: bool, within: list[int]) -> None:
    gpu = Accelerator(started)
    monkeypatch.setattr(torch, "cuda", gpu)
    with random_numbers_kept(5):
        assert list(map(int, gpu.states)) == within
        gpu.states[0] += 10 * started
    assert list(map(int, gpu.states)) == [1, 2]


def test_a_gpu_that_nobody_has_used_is_not_seeded() -> None:
    """torch.manual_seed would seed it as soon as somebody uses it."""
    calls = len(torch.cuda._queued_calls)
    with random_numbers_kept(5):
        pass
    assert len(torch.cuda._queued_calls) == calls
