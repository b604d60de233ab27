"""Calls that would fail in a kernel on a GPU, and end its use for the process, raise exceptions. The CPU stands in for a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from onnxplain.process import gpu_assertions, gpu_assertions_raised

INDEX, X = torch.tensor([0, 7]), torch.randn(4, 3)


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process uses a GPU, which is the CPU."""
    monkeypatch.setattr(gpu_assertions, "_may_assert", lambda: True)
    monkeypatch.setattr(gpu_assertions, "_GPUS", {"cpu"})


FAILING: dict[str, Callable[[], Any]] = {
    "embedding": lambda: functional.embedding(INDEX, X),
    "bag": lambda: functional.embedding_bag(INDEX[None], X),
    "index": lambda: X[INDEX],
    "index_select": lambda: X.index_select(0, INDEX),
    "gather": lambda: X.gather(0, INDEX[:, None]),
    "take": lambda: X.take(INDEX * 9),
    "written": lambda: X.clone().index_put_((INDEX,), X[:2]),
    "scatter": lambda: X.scatter(0, INDEX[:, None], 1.0),
    "added": lambda: X.clone().index_add_(0, INDEX, X[:2]),
    "loss": lambda: functional.cross_entropy(X[:2], INDEX),
    "masked": lambda: X.clone().masked_scatter_(X < 9, X[:1]),
    "drawn": lambda: torch.multinomial(-X[0].abs(), 1),
    "coin": lambda: torch.bernoulli(X.abs() + 2),
    "asserted": lambda: torch._assert_async(torch.tensor(False)),
}


@pytest.mark.parametrize("kind", FAILING)
def test_the_operator_is_not_called(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    real = gpu_assertions._try_on_cpu

    def tried(operator: Any, *args: Any) -> None:
        ran.append(f"before {operator}")
        real(operator, *args)
        ran.append(f"after {operator}")

    monkeypatch.setattr(gpu_assertions, "_try_on_cpu", tried)
    with gpu_assertions_raised(), pytest.raises((IndexError, RuntimeError)):
        FAILING[kind]()
    assert ran[-1].startswith("before")


def test_results_are_those_of_the_device() -> None:
    index, table = torch.tensor([3, 0]), torch.randn(5_000_000, 1)
    expected = (table[index], functional.embedding(index, table))
    with gpu_assertions_raised():
        found = (table[index], functional.embedding(index, table))
        written = X.clone().index_put_((index,), X[:2])
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(written, X.clone().index_put_((index,), X[:2]))


def test_operators_of_other_code_run_once() -> None:
    runs: list[int] = []
    with torch.library._scoped_library("gpu_assertions", "FRAGMENT") as library, gpu_assertions_raised():
        library.define("gather(Tensor x) -> Tensor")
        library.impl("gather", lambda x: runs.append(1) or x * 2, "CompositeExplicitAutograd")
        assert torch.equal(torch.ops.gpu_assertions.gather(X), X * 2)
    assert runs == [1]


def test_the_generator_of_the_caller_is_for_the_device() -> None:
    def drawn() -> torch.Tensor:
        return torch.bernoulli(X.abs().clamp(max=1), generator=torch.Generator().manual_seed(3))

    expected = drawn()
    with gpu_assertions_raised():
        assert torch.equal(drawn(), expected)


def test_without_a_gpu_nothing_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    seen: list[object] = []
    monkeypatch.setattr(gpu_assertions, "_try_on_cpu", lambda *call: seen.append(call))
    with gpu_assertions_raised():
        X[torch.tensor([0])]
    assert not seen
