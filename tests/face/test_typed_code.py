"""Code without a file, which `exec`, `python -c` or a prompt ran, has the findings of the same code in a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

import onnxplain
from onnxplain.diagnostics import Diagnostic

Load = Callable[..., ModuleType]

MODEL = """
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        {}
"""

STATEMENTS = {
    "branch": "return x * (2 if x.sum() > 0 else 1)",
    "size": "return x * 2 if x.shape[0] > 2 else x",
    "text": "return x * {4: 2}.get(x.shape[1], 1)",
    "operator": "return torch.linalg.eigvals(x[:, :3])",
    "failure": "return x * x.shape[0].item()",
}


def found(model: torch.nn.Module) -> list[Diagnostic]:
    try:
        program = onnxplain.export(model, (torch.ones(3, 4),), dynamic_shapes=True, control_flow="report")
    except onnxplain.ExportFailed as failed:
        return list(failed.findings)
    return list(program.diagnostics.findings)


def executed(code: str, file: str = "<string>") -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "typed"}
    exec(compile(code, file, "exec"), names)
    return names


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_rules_and_lines_are_those_of_a_file(load: Load, name: str) -> None:
    code = MODEL.format(STATEMENTS[name])
    typed, filed = found(executed(code)["Net"]()), found(load(code).Net())
    assert [(each.rule.id, each.location and each.location.line) for each in typed] == [(each.rule.id, 7) for each in filed]
    assert filed
    assert {each.location.file for each in typed if each.location} == {"<string>"}
    assert all(all(each.rule.argument_texts()) for each in typed)


def test_a_number_that_fixes_a_size_is_told() -> None:
    (finding,) = found(executed(MODEL.format("return x * int(x.shape[1] == 4)"))["Net"]())
    assert (finding.rule.id, finding.location and finding.location.line) == ("OXP1034", 7)


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    second: int


def test_functions_that_dataclasses_make_are_nobodys(load: Load) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if Pair(x.sum(), 1) == Pair(x.sum() * 1, 1) else x

    for finding in found(Net()):
        assert finding.location is not None
        assert finding.location.file == __file__
