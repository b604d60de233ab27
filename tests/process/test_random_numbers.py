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
