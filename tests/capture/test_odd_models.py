"""Models that behave in odd ways end in a program or in a finding at the user's line, never in a raw exception or a bug of onnxplain."""

from __future__ import annotations

import pathlib
import random
import subprocess
import sys
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import onnxplain
from onnxplain.repro import minimise

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]

SOURCE = """
import sys
import warnings

import torch
from torch import nn


class Mute(Exception):
    def __str__(self):
        raise ValueError("nothing to say")


class Raises(nn.Module):
    def forward(self, x):
        raise Mute()  # Raises


class Exits(nn.Module):
    def forward(self, x):
        sys.exit(0)  # Exits


class Warns(nn.Module):
    def forward(self, x):
        warnings.warn("look")  # Warns
        return x + 1


class Converts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        self.layer = self.layer.to(x.dtype)
        return self.layer(x)


class HasNoHash(nn.Module):
    __hash__ = None

    def forward(self, x):
        return x + 1


class HoldsNoHash(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = HasNoHash()

    def forward(self, x):
        return self.inner(x)


class HasNoText(nn.Module):
    def __repr__(self):
        raise RuntimeError("no text")

    def forward(self, x):
        return x + 1 if x.sum() > 0 else x  # HasNoText


class HasNoAttributes(nn.Module):
    def __getattr__(self, name):
        if name.startswith("_"):
            return super().__getattr__(name)
        raise RuntimeError(name)

    def forward(self, x):
        return x + 1


class LosesLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        y = self.layer(x)
        del self.layer
        return y


class Wrapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x) + 1


class Unbound:
    @property
    def __class__(self):
        raise RuntimeError("not bound to an object")


class HoldsUnbound(nn.Module):
    def __init__(self):
        super().__init__()
        self.context = [Unbound()]

    def forward(self, x, context=None):
        return x + 1


class BranchesWithUnbound(HoldsUnbound):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x  # BranchesWithUnbound


class Bare(nn.Module):  # Bare
    def __init__(self):
        self.width = 3

    def forward(self, x):
        return x + self.width


class HasUnused(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Bare(), Bare()

    def forward(self, x):
        return x + 1


def deep(number):
    model = nn.Identity()
    for _ in range(number):
        model = Wrapped(model)
    return model
"""


def failed(model: torch.nn.Module) -> list[tuple[str, int | None]]:
    """The rules and lines of the findings of an export that fails."""
    with pytest.raises(onnxplain.ExportFailed) as raised:
        onnxplain.export(model, (torch.ones(2, 2),), control_flow="report")
    return [(finding.rule.id, finding.location.line if finding.location else None) for finding in raised.value.findings]


@pytest.mark.parametrize(("name", "rule"), [("Raises", "OXP1005"), ("Exits", "OXP1005"), ("HasNoText", "OXP1001")])
def test_a_failure_is_at_the_users_line(load: Load, marked: Marked, name: str, rule: str) -> None:
    assert failed(getattr(load(SOURCE), name)()) == [(rule, *marked(name))]


BARE: dict[str, Callable[[ModuleType], Any]] = {
    "model": lambda m: m.Bare(),
    "submodule": lambda m: torch.nn.Sequential(torch.nn.Linear(2, 2), m.Wrapped(m.Bare())),
    "method": lambda m: m.Bare().forward,
}


@pytest.mark.parametrize("make", BARE.values(), ids=BARE)
def test_a_module_that_is_not_set_up_is_a_finding_at_its_class(load: Load, marked: Marked, make: Callable[[ModuleType], Any]) -> None:
    ((rule, line),) = failed(make(load(SOURCE)))
    assert (rule, [line]) == ("OXP1009" if make is BARE["method"] else "OXP1005", marked("Bare"))


def test_a_module_that_is_not_set_up_and_not_called(
    load: Load, marked: Marked, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minimise, "RUNS", 1)
    # Eager mode runs this model.
    with pytest.raises(onnxplain.ExportFailed) as raised:
        onnxplain.export(load(SOURCE).HasUnused(), (torch.ones(2),), repro=tmp_path / "repro.py", sarif=tmp_path / "log.sarif")
    ((rule, place),) = [(finding.rule.id, finding.location) for finding in raised.value.findings]
    assert place is not None
    assert (rule, [place.line], place.module) == ("OXP1009", marked("Bare"), "first")
    assert (tmp_path / "log.sarif").exists()


def test_warnings_that_are_errors_are_the_models(load: Load, marked: Marked) -> None:
    module = load(SOURCE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert failed(module.Warns()) == [("OXP1005", *marked("Warns"))]
        assert onnxplain.export(torch.nn.Linear(2, 2), (torch.ones(2, 2),)).diagnostics.succeeded


@pytest.mark.parametrize("name", ["HasNoHash", "HoldsNoHash"])
def test_torch_export_refuses_modules_without_a_hash(load: Load, name: str) -> None:
    ((rule, _),) = failed(getattr(load(SOURCE), name)())
    assert rule == "OXP1009"


def test_attributes_that_cannot_be_read(load: Load) -> None:
    assert onnxplain.export(load(SOURCE).HasNoAttributes(), (torch.ones(2),)).diagnostics.succeeded


def test_a_layer_that_forward_deletes(load: Load) -> None:
    program = onnxplain.export(load(SOURCE).LosesLayer(), (torch.ones(2, 2),))
    assert [weight.name for weight in program.model.graph.initializers.values()] == ["layer.weight", "layer.bias"]


def test_a_model_that_changes_itself_and_reads_a_clock(load: Load) -> None:
    module = load(
        """
        import time

        import torch


        class LosesLayer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(2, 2)

            def forward(self, x):
                time.time()
                y = self.layer(x)
                del self.layer
                return y
        """
    )
    assert onnxplain.export(module.LosesLayer(), (torch.ones(2, 2),)).diagnostics.succeeded


def test_a_layer_that_has_the_dtype_already(load: Load) -> None:
    model, x = load(SOURCE).Converts(), torch.ones(2, 2)
    program = onnxplain.export(model, (x,))
    torch.testing.assert_close(program(x)[0], model(x).detach())
    assert [weight.name for weight in program.model.graph.initializers.values()] == ["layer.weight", "layer.bias"]


def test_a_branch_without_asserts(tmp_path: pathlib.Path) -> None:
    """With `python -O`, torch looks for an `assert` in a function that has none any more."""
    (tmp_path / "odd.py").write_text(SOURCE, encoding="utf-8")
    program = """
import onnxplain, torch, odd
try:
    onnxplain.export(odd.HasNoText(), (torch.ones(2, 2),), try_fixes=False)
except onnxplain.ExportFailed as error:
    print([finding.rule.id for finding in error.findings])
"""
    ran = subprocess.run([sys.executable, "-O", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["['OXP1001']"]


@pytest.mark.parametrize("number", [150, 300])
def test_modules_inside_each_other(load: Load, number: int) -> None:
    before = sys.getrecursionlimit()
    program = onnxplain.export(load(SOURCE).deep(number), (torch.zeros(2),))
    assert sys.getrecursionlimit() == before
    assert torch.equal(program(torch.zeros(2))[0], torch.full((2,), float(number)))


@pytest.mark.parametrize("options", [{"levels": None}, {"levels": [1]}, {"select": [None]}, {"ignore": [3]}, {"select": 3}], ids=str)
def test_odd_options_are_invalid_arguments(options: dict[str, Any]) -> None:
    with pytest.raises(onnxplain.InvalidArgument):
        onnxplain.DiagnosticOptions(**options)


def test_random_numbers_go_on_as_before(load: Load) -> None:
    random.seed(1)
    expected = random.random()
    random.seed(1)
    failed(load(SOURCE).Raises())
    assert random.random() == expected


@pytest.mark.parametrize("verify", [False, True])
def test_random_numbers_that_a_model_draws_are_drawn_again(verify: bool) -> None:
    def draw() -> tuple[float, float, float]:
        return random.random(), np.random.rand(), torch.rand(()).item()

    def seed() -> None:
        random.seed(1)
        np.random.seed(1)
        torch.manual_seed(1)

    seed()
    expected = draw()
    seed()
    program = onnxplain.export(lambda x: x + sum(draw()[:2]) + torch.rand(()), (torch.ones(2),), verify=verify)
    assert {finding.rule.id for finding in program.diagnostics.findings} >= {"OXP1014", "OXP1015"}
    assert draw() == expected


def test_proxies_without_an_object(load: Load, marked: Marked, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimise, "RUNS", 1)
    # Web frameworks have such proxies: `isinstance` asks them for their class, which fails outside of a request.
    module = load(SOURCE)
    model, x = module.HoldsUnbound(), torch.ones(2, 2)
    assert torch.equal(onnxplain.export(model, (x,), verify=True)(x)[0], x + 1)
    with pytest.raises(onnxplain.ExportFailed) as raised:
        onnxplain.export(model, (x,), kwargs={"context": module.Unbound()})
    assert [finding.rule.id for finding in raised.value.findings] == ["OXP1008"]
    with pytest.raises(onnxplain.ExportFailed) as raised:
        onnxplain.export(module.BranchesWithUnbound(), (x,), repro=tmp_path / "repro.py", control_flow="report")
    (finding,) = raised.value.findings
    assert (finding.rule.id, finding.location and finding.location.line) == ("OXP1001", *marked("BranchesWithUnbound"))
    assert (tmp_path / "repro.py").exists()


CACHED = """
import functools
import time

import torch


@functools.lru_cache
def places(count):
    return torch.arange(count).float()


@functools.lru_cache(maxsize=None)
def settings():
    return {"scale": 2.0}


def around():
    @functools.lru_cache(maxsize=2)
    def inside(count):
        return [torch.ones(count)]

    class Net(torch.nn.Module):
        @functools.lru_cache(maxsize=None)
        def own(self, count):
            return {"table": torch.zeros(count)}

        def forward(self, x):
            return x * settings()["scale"] + places(4) + inside(4)[0] + self.own(4)["table"]

    return Net()
"""


def test_functions_with_a_cache_keep_nothing_of_a_capture(load: Load) -> None:
    module = load(CACHED)
    model, known, x = module.around(), module.settings(), torch.rand(3, 4)
    program = onnxplain.export(model, (torch.rand(2, 4),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    assert program.diagnostics.findings == ()
    torch.testing.assert_close(program(x)[0], model(x))
    assert module.settings() is known
