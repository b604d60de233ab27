"""Checks and side effects of the user's code that the exported model does not have."""

from __future__ import annotations

import logging
import pathlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from marks import needs_pathlib

import onnxplain

Load = Callable[[str], ModuleType]
Marked = Callable[[str], list[int]]

EFFECTS = """
import json
import logging
import pathlib
import sys
import warnings

import numpy as np
import torch

PATH = pathlib.Path("PLACE")
log = logging.getLogger("user's")


class Net(torch.nn.Module):
    def forward(self, x):
        for count in range(3):
            print("row", count)  # printed
        print("error", file=sys.stderr)  # to stderr
        sys.stdout.write("text\\n")  # written
        log.debug("not shown")
        log.warning("shown")  # logged
        warnings.warn("careful")  # warned
        PATH.write_text("text")  # path
        with open(PATH, "a") as file:  # opened
            json.dump([1], file)
        np.save(PATH, np.ones(2))  # numpy
        torch.save({}, PATH)  # torch
        with open(PATH, "rb") as file:
            file.read()
        if log.isEnabledFor(logging.DEBUG) or torch.compiler.is_exporting() is None:
            print("not reached")
        return x * 2
"""
MARKS = ("printed", "to stderr", "written", "logged", "warned", "path", "opened", "numpy", "torch")


def lines(program: onnxplain.ONNXProgram, rule: str) -> list[int | None]:
    return [each.location.line if each.location else None for each in program.diagnostics.findings if each.rule.id == rule]


@needs_pathlib
def test_each_line_with_a_side_effect_is_one_note(
    load: Load, marked: Marked, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "written"
    model = load(EFFECTS.replace("PLACE", str(path))).Net()
    model(torch.ones(3))  # Python shows a warning once
    for _ in range(2):
        before = sys.stdout
        path.unlink()
        caplog.clear()
        program = onnxplain.export(model, (torch.ones(3),))
        assert lines(program, "OXP1039") == [marked(each)[0] for each in MARKS]
        assert {each.rule.id for each in program.diagnostics.findings if each.level is not onnxplain.Level.NOTE} == set()
        assert sys.stdout is before
        assert (torch.load(path), [each.message for each in caplog.records]) == ({}, ["shown"])


INTERPRETED = """
import logging

import torch

logger = logging.getLogger("user's")


class Net(torch.nn.Module):
    def forward(self, x):
        print(f"mean {x.mean().item():.3f}")  # printed
        logger.info("called")  # logged
        if not torch.compiler.is_exporting():
            print("not reached")
        return x * 2
"""


def test_the_strict_strategy_tells_prints_as_well(load: Load, marked: Marked) -> None:
    program = onnxplain.export(load(INTERPRETED).Net(), (torch.ones(3),), strategies=("strict",))
    assert lines(program, "OXP1039") == [marked(each)[0] for each in ("printed", "logged")]


def test_what_others_print_is_no_note(capsys: pytest.CaptureFixture[str]) -> None:
    class Quiet(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            logging.getLogger("torch.user").isEnabledFor(logging.DEBUG)
            return torch.nn.functional.dropout2d(x, training=False) * 2  # torch warns about the number of dims

    program = onnxplain.export(Quiet(), (torch.ones(3),))
    assert program.diagnostics.findings == ()
    sys.stdout.write("after\n")
    assert capsys.readouterr().out == "after\n"


def test_a_print_within_a_branch_does_not_stop_the_export() -> None:
    def shown(x: torch.Tensor) -> torch.Tensor:
        print("branch")  # noqa: T201  the test is about it
        return x * 2

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, shown, lambda x: x * 3, (x,))  # type: ignore[no-any-return]

    onnxplain.export(Net(), (torch.ones(3),))


@pytest.mark.parametrize(
    ("model", "checks"),
    [
        (lambda x, n: (torch._check(x.shape[0] % 2 == 0), x * n)[1], ["x.shape[0] % 2 == 0"]),
        (lambda x, n: (torch._check_is_size(n.item()), x * n)[1], ["torch._check_is_size(n.item())"]),
        (lambda x, n: (torch._assert((x > -5).all(), "message"), x * n)[1], ["(x > -5).all()"]),
        (lambda x, n: (torch._assert_async((x > -5).all()), x * n)[1], ["(x > -5).all()"]),
        (lambda x, n: (torch._check(x.shape[0] > 0), torch._assert(x.ndim == 2, "message"), x * n)[2], []),
    ],
)
def test_each_written_check_is_one_note(model: Callable[..., Any], checks: list[str]) -> None:
    program = onnxplain.export(model, (torch.ones(4, 4), torch.tensor(2)), dynamic_shapes=({0: "rows"}, None))
    findings = program.diagnostics.findings
    assert [(each.rule.id, vars(each.rule)["check"]) for each in findings] == [("OXP1038", check) for check in checks]
    assert all(each.level is onnxplain.Level.NOTE for each in findings)


ASSERTS = """
import torch


class OnItems(torch.nn.Module):
    def forward(self, x, n):
        count = n.item()
        torch._check(count > 0)  # number
        assert count % 2 == 0  # even
        assert x.ndim == 2
        return x * count


class OnTensors(torch.nn.Module):
    def forward(self, x, n):
        assert (x > -5).all(), "message"  # tensor
        return x * n


class OnDims(torch.nn.Module):
    def forward(self, x, n):
        assert x.shape[0] % 3 == 0  # third
        torch._check(x.shape[0] % 2 == 0)  # half
        torch._check(x.shape[0] > 2)  # least
        return x * n


class OnDim(torch.nn.Module):
    def forward(self, x, n):
        torch._check(x.shape[0] > 2)  # more
        return x * n
"""


@pytest.mark.parametrize(("name", "marks"), [("OnItems", ("number", "even")), ("OnTensors", ("tensor",))])
@pytest.mark.falls_back
def test_an_assert_by_data_is_a_note(load: Load, marked: Marked, name: str, marks: tuple[str, ...]) -> None:
    program = onnxplain.export(getattr(load(ASSERTS), name)(), (torch.ones(3, 2), torch.tensor(2)))
    assert [each.rule.id for each in program.diagnostics.findings] == ["OXP1038"] * len(marks)
    assert lines(program, "OXP1038") == [marked(each)[0] for each in marks]


@pytest.mark.parametrize(
    ("name", "dim", "promised", "checked"),
    [("OnDims", "rows", ["third"], ["half", "least"]), ("OnDim", torch.export.Dim("rows"), [], ["more"])],
)
def test_a_check_of_a_promised_dim_is_told_once(
    load: Load, marked: Marked, name: str, dim: Any, promised: list[str], checked: list[str]
) -> None:
    args = (torch.ones(6, 2), torch.tensor(2))
    program = onnxplain.export(getattr(load(ASSERTS), name)(), args, dynamic_shapes=({0: dim}, None))
    assert set(lines(program, "OXP1011")) == {marked(each)[0] for each in promised}
    assert lines(program, "OXP1038") == [marked(each)[0] for each in checked]
