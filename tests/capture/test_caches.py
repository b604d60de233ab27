"""Models that keep what they compute for a size, such as a mask, until another size comes: an export is for all sizes all the same."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest
import torch

import onnxplain

Load = Callable[..., types.ModuleType]
Marked = Callable[..., list[int]]

NET = """
    import torch

    ENTRIES = dict()


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.register_buffer("table", torch.zeros(0, 1), persistent=False)
            self.cache, self.entries, self.parts = None, dict(), dict()
            self._cache, self._size, self._first = None, 0, True
            self.size = {size}
            if self.size:
                self._fill(self.size)

        def _make(self, n):
            return torch.arange(n, dtype=torch.float32)[:, None].sin()

        def _fill(self, n):
            self.size = n
            self.cache = self._make(n)

        def _kept(self, n):
            if self.cache is not None and n <= self.size:{kept}
                return self.cache[:n], -self.cache[:n]
            self.cache = self._make(n)
            self.size = n
            return self.cache, -self.cache

        def _privately_kept(self, n):
            if self._cache is not None and n <= self._size:
                return self._cache[:n], -self._cache[:n]
            self._cache, self._size = self._make(n), n
            return self._cache, -self._cache

        def forward(self, x):
            n = x.shape[1]
            {forward}
"""

FORWARDS = {
    "another size": """
        if self.cache is None or self.cache.shape[0] != n:  # HERE
            self.cache = self._make(n)
        return self.linear(x) + self.cache
    """,
    "a longer size": """
        if self.cache is None or self.cache.size(0) < n:  # HERE
            self.cache = self._make(n)
        return self.linear(x) + self.cache[:n]
    """,
    "a number beside it": """
        if self.size != n:  # HERE
            self.cache = self._make(n)
            self.size = n
        return self.linear(x) + self.cache
    """,
    "a method that fills it": """
        if n > self.size:  # HERE
            self._fill(n)
        return self.linear(x) + self.cache[:n]
    """,
    "a buffer": """
        if self.table.shape[0] < n:  # HERE
            self.table = self._make(n)
        return self.linear(x) + self.table[:n]
    """,
    "a new attribute": """
        if not hasattr(self, "mask") or self.mask.shape[0] != n:  # HERE
            self.mask = torch.ones(n, n).tril()
        return self.mask @ self.linear(x)
    """,
    "the other way": """
        if self.cache is not None and self.cache.size(0) == n:  # HERE
            mask = self.cache
        else:
            mask = self._make(n)
            self.cache = mask
        return self.linear(x) + mask
    """,
    "a dict by size": """
        if n not in self.entries:  # HERE
            self.entries[n] = self._make(n)
        return self.linear(x) + self.entries[n]
    """,
    "a dict by size and dtype": """
        key = (n, x.dtype)
        if key not in self.entries:  # HERE
            mask = self._make(n)
            self.entries[key] = mask.to(x)
        return self.linear(x) * self.entries[key] + self.entries[key]
    """,
    "a dict that is asked": """
        mask = self.entries.get(n)  # HERE
        if mask is None:
            mask = self._make(n)
            self.entries[n] = mask
        return self.linear(x) + mask
    """,
    "a dict of the module": """
        if n not in ENTRIES:  # HERE
            ENTRIES[n] = self._make(n)
        return self.linear(x) + ENTRIES[n]
    """,
    "a dict of parts": """
        if self.parts.get("size") != n:  # HERE
            self.parts["size"] = n
            self.parts["mask"] = self._make(n)
        return self.linear(x) + self.parts["mask"]
    """,
    "a size that grows by doubling": """
        if self.cache is None or n > self.cache.size(0):  # HERE
            self.cache = self._make(2 * n)
        return self.linear(x) + self.cache[:n]
    """,
    "a method that returns it": """
        one, other = self._kept(n)
        return self.linear(x) * one + other
    """,
}


def written(body: str, size: int = 0) -> str:
    kept = "  # HERE" if "_kept" in body else ""
    return NET.format(forward=body.strip().replace("\n        ", "\n            "), size=size, kept=kept)


@pytest.mark.parametrize("forward", FORWARDS)
@pytest.mark.parametrize("ran", [False, True])
def test_a_model_is_exported_for_all_sizes(forward: str, ran: bool, load: Load, marked: Marked) -> None:
    """Also after a run, as a model is exported most often, which has left the cache for one size."""
    model = load(written(FORWARDS[forward])).Net().eval()
    x = torch.randn(2, 5, 4)
    if ran:
        model(x)
    before, entries = {name: value for name, value in vars(model).items() if not name.startswith("_")}, dict(model.entries)
    program = onnxplain.export(model, (x,), dynamic_shapes=({1: "n"},))
    assert {name: value for name, value in vars(model).items() if not name.startswith("_")} == before
    assert model.entries == entries
    rewritten = [each.location.line for each in program.diagnostics.findings if each.rule.id == "OXP1037"]
    # NOTE: a symbolic size is no key of a dict, not even of an empty one.
    assert set(rewritten) == set(marked("HERE") if ran or "a dict" in forward.replace("a dict of parts", "") else [])
    assert not {"OXP1003", "OXP1011"} & {each.rule.id for each in program.diagnostics.findings}
    for n in (2, 5, 9):
        x = torch.randn(2, n, 4)
        torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dim", [torch.export.Dim("n", max=64), torch.export.Dim("n"), torch.export.Dim.DYNAMIC], ids=str)
@pytest.mark.parametrize("forward", ["another size", "a longer size", "a dict by size"])
def test_dims_in_each_form(forward: str, dim: object, load: Load) -> None:
    model = load(written(FORWARDS[forward])).Net().eval()
    x = torch.randn(2, 5, 4)
    model(x)
    program = onnxplain.export(model, (x,), dynamic_shapes=({1: dim},))
    assert not {"OXP1003", "OXP1011"} & {each.rule.id for each in program.diagnostics.findings}
    for n in (2, 9):
        x = torch.randn(2, n, 4)
        torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)


def test_a_cache_that_was_filled_for_many_sizes_is_kept(load: Load) -> None:
    """A table may cost more than its place in the model, so it limits the sizes, which is told."""
    model = load(written(FORWARDS["a method that fills it"], size=64)).Net().eval()
    program = onnxplain.export(model, (torch.randn(2, 5, 4),), dynamic_shapes=({1: "n"},))
    assert [each.rule.id for each in program.diagnostics.findings] == ["OXP1011"]
    assert "Range" not in [node.op_type for node in program.model.graph]


PRIVATE = {
    "a cache": (FORWARDS["another size"].replace("self.cache", "self._cache"), 0),
    "a cache with its size": (FORWARDS["a number beside it"].replace("self.size", "self._size").replace("self.cache", "self._cache"), 0),
    "a method": (FORWARDS["a method that returns it"].replace("_kept", "_privately_kept"), 0),
    "a state that a branch begins": (
        """
        if self._cache is None or self._cache.shape[0] != n:
            self._cache = torch.zeros(n, 4)
        self._cache = self._cache + self.linear(x).sum(0)
        return self._cache
        """,
        1,
    ),
    "the first run": (
        """
        if self._first:
            self._first = False
            x = x * 2
        return self.linear(x)
        """,
        1,
    ),
}


@pytest.mark.parametrize("name", PRIVATE)
def test_caches_with_private_names_are_not_reported_as_state(name: str, load: Load) -> None:
    forward, count = PRIVATE[name]
    program = onnxplain.export(load(written(forward)).Net().eval(), (torch.randn(2, 5, 4),), dynamic_shapes=({1: "n"},))
    assert [each.rule.id for each in program.diagnostics.findings] == ["OXP1018"] * count


STATES = {
    "a state": """
        if self.cache is None or self.cache.shape[0] != n:
            self.cache = torch.zeros(n, 4)
        self.cache = torch.tanh(self.linear(x).sum(0) + self.cache)
        return self.cache
    """,
    "the first data": """
        if self.size != n:
            self.cache = x.mean()
            self.size = n
        return self.linear(x) - self.cache
    """,
    "a dict that is used otherwise": """
        if n not in self.entries:
            self.entries[n] = self._make(n)
        return self.linear(x) + self.entries[n] + len(self.entries)
    """,
    "another result": """
        if self.size == n:
            return self.linear(x) * 2
        self.size = n
        return self.linear(x)
    """,
}


@pytest.mark.parametrize("forward", STATES)
def test_what_is_no_cache_stays(forward: str, load: Load) -> None:
    model = load(written(STATES[forward])).Net().eval()
    x = torch.randn(2, 5, 4)
    model(x)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(model, (x,), dynamic_shapes=({1: "n"},))
    assert "OXP1003" in [each.rule.id for each in failed.value.findings]
