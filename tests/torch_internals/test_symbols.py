"""Private names of torch: which of them the installed torch has, and that an export goes on without each."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
from torch.export import Dim

import onnxplain
from onnxplain import torch_internals
from onnxplain.torch_internals import symbols

for each in pkgutil.iter_modules(torch_internals.__path__):
    importlib.import_module(f"onnxplain.torch_internals.{each.name}")

PATHS = [each.path for each in symbols.known()]
BY_PATH = {each.path: each for each in symbols.known()}


def test_each_is_looked_up_in_one_place() -> None:
    assert len(PATHS) == len(set(PATHS))


@pytest.mark.parametrize("path", PATHS)
def test_the_installed_torch_has_it(path: str) -> None:
    assert BY_PATH[path].is_present, f"torch {torch.__version__} has no {path}: {BY_PATH[path].without}"


HEALTHY = """
    import torch


    class Healthy(torch.nn.Module):
        def forward(self, x):
            y = x.clone()
            y[0] = 1
            return torch.nn.functional.hardswish(y.relu_()) + x.shape[0]
"""
BRANCHING = """
    import torch


    class Branching(torch.nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x
            return -x
"""


def groups(size: int) -> pytest.MarkDecorator:
    """Runs a test for several symbols at once, which takes less time."""
    return pytest.mark.parametrize("paths", [PATHS[start : start + size] for start in range(0, len(PATHS), size)], ids=lambda each: each[0])


@groups(3)
def test_an_export_goes_on_without_them_and_says_so(
    paths: list[str], load: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away(paths, monkeypatch)
    module = load(HEALTHY)
    program = onnxplain.export(module.Healthy(), (torch.ones(3, 4),), dynamic_shapes={"x": {0: Dim("batch")}})
    x = torch.randn(5, 4)
    torch.testing.assert_close(program(x)[0], module.Healthy()(x))
    texts = [event.text for event in program.diagnostics.events]
    for path in paths:
        assert (
            sum(
                BY_PATH[path].without in text and re.search(rf"{re.escape(path.replace(':', '.'))}(?![.\w])", text) is not None
                for text in texts
            )
            == 1
        )


@groups(5)
def test_a_failing_export_is_explained_without_them(
    paths: list[str], load: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away(paths, monkeypatch)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(load(BRANCHING).Branching(), (torch.ones(3),), control_flow="report")
    assert failed.value.findings[0].rule.id in ("OXP1001", "OXP1009")
    assert not any(finding.rule.id == "OXP0001" for finding in failed.value.findings)


def take_away(paths: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the installed torch one without the symbols."""
    for path in paths:
        monkeypatch.setitem(vars(BY_PATH[path]), "is_present", False)
        monkeypatch.setitem(vars(BY_PATH[path]), "value", BY_PATH[path].otherwise)


@pytest.fixture
def scratch_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the symbols that a test makes."""
    monkeypatch.setattr(symbols, "_SYMBOLS", [])


class Made:
    """Stands for a class of torch."""

    def __init__(self, size: int) -> None:
        self.made_here = size

    @property
    def computed(self) -> int:
        return self.made_here + self._in_another_place()

    def _in_another_place(self) -> int:
        self.later: int = 1

        def inside(named: int) -> str:
            return f"text {named}"

        return len(inside(self.later))


@pytest.mark.usefixtures("scratch_symbols")
@pytest.mark.parametrize(("name", "is_present"), [("made_here", True), ("later", True), ("gone", False)])
def test_an_attribute_that_methods_set(name: str, is_present: bool) -> None:
    attribute = symbols.Attribute(f"{__name__}:Made.{name}", without="nothing is lost", otherwise=7)
    assert attribute.is_present is is_present
    made = Made(3)
    assert (attribute.of(made), attribute.of(None)) == (3 if name == "made_here" else 7, 7)
    # An attribute that the class does not have counts as missing, whatever the object has.
    made.gone = 5  # type: ignore[attr-defined]
    assert attribute.of(made) == (3 if name == "made_here" else 7)
    assert not symbols.Attribute("no_such_module:Made.size", without="nothing is lost").is_present


@pytest.mark.usefixtures("scratch_symbols")
@pytest.mark.parametrize(
    ("path", "names", "is_present"),
    [
        ("Made", (), True),
        ("Made", ("size",), False),
        ("Made.__init__", ("size", "made_here"), True),
        ("Made.__init__", ("size", "later"), False),
        ("Made._in_another_place", ("later", "named", "text "), True),
        ("Made._in_another_place.<locals>.inside", ("named", "text "), True),
        ("Made._in_another_place.<locals>.inside", ("later",), False),
        ("Made._in_another_place.<locals>.outside", (), False),
        ("Made.<locals>.inside", (), False),
    ],
)
def test_a_function_without_the_names_in_it_counts_as_missing(path: str, names: tuple[str, ...], is_present: bool) -> None:
    symbol = symbols.Symbol(f"{__name__}:{path}", without="nothing is lost", otherwise=7, names=names)
    assert symbol.is_present is is_present
    assert (symbol.value == 7) is not is_present
    told = list(symbols.told())
    assert bool(told) is not is_present
    assert all(name in text for text in told for name in (path, *names))
