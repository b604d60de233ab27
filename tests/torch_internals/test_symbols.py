"""Private names of torch: which of them the installed torch has, and that an export goes on without each."""

from __future__ import annotations

import importlib
import pathlib
import pkgutil
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


@pytest.mark.parametrize("path", PATHS)
def test_the_installed_torch_has_it(path: str) -> None:
    assert BY_PATH[path].is_present, f"torch {torch.__version__} has no {path}: {BY_PATH[path].without}"


@pytest.mark.parametrize("path", PATHS)
def test_an_export_goes_on_without_it_and_says_so(
    path: str, load: Callable[..., ModuleType], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    symbol = BY_PATH[path]
    monkeypatch.setitem(vars(symbol), "is_present", False)
    monkeypatch.setitem(vars(symbol), "value", symbol.otherwise)
    module = load(
        """
        import torch


        class Healthy(torch.nn.Module):
            def forward(self, x):
                y = x.clone()
                y[0] = 1
                return torch.nn.functional.hardswish(y.relu_()) + x.shape[0]


        class Branching(torch.nn.Module):
            def forward(self, x):
                if x.sum() > 0:
                    return x
                return -x
        """
    )
    program = onnxplain.export(module.Healthy(), (torch.ones(3, 4),), dynamic_shapes={"x": {0: Dim("batch")}}, verify=True)
    torch.testing.assert_close(program(torch.randn(5, 4))[0].shape, torch.Size((5, 4)))
    told = [event.text for event in program.diagnostics.events if path.replace(":", ".") in event.text]
    assert len(told) == 1
    assert symbol.without in told[0]
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(module.Branching(), (torch.ones(3),))
    assert failed.value.findings[0].rule.id in ("OXP1001", "OXP1009")
    assert not any(finding.rule.id == "OXP0001" for finding in failed.value.findings)
