"""Python code around the operators, operators written in Python, and the places of an export's arguments."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

import onnxplain

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]


def found(log: Any) -> list[tuple[str, int | None]]:
    return [(finding.rule.id, finding.location.line if finding.location else None) for finding in log.findings]


def failed(model: Any, args: tuple[Any, ...], **options: Any) -> Any:
    with pytest.raises(onnxplain.ExportFailed) as failure:
        onnxplain.export(model, args, **options)
    return failure.value.log


# Attributes

STATE = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen, self.names, self.last = [], {}, None

    def forward(self, x):
        self.seen.append(x)  # list
        self.names["x"] = x  # dict
        self.last = x * 2  # assigned
        self.fresh = x + 1  # new
        if x.sum() > 0 and FAILS:
            x = x + 1
        return x * 3
"""


@pytest.mark.parametrize("fails", [False, True])
def test_attributes_are_reported_and_put_back(fails: bool, load: Load, marked: Marked) -> None:
    module = load(STATE.replace("x.sum() > 0 and FAILS", "x.sum() > 0" if fails else "False"))
    model = module.Net()
    before = {name: value for name, value in vars(model).items() if not name.startswith("_")}
    if fails:
        assert failed(model, (torch.ones(3),), strategies=("non-strict",)).findings[0].rule.id == "OXP1001"
    else:
        log = onnxplain.export(model, (torch.ones(3),)).diagnostics
        lines = [marked(mark)[0] for mark in ("list", "dict", "assigned", "new")]
        assert {line for rule, line in found(log) if rule == "OXP1018"} >= set(lines[:3])
    assert {name: value for name, value in vars(model).items() if not name.startswith("_")} == before
    assert (model.seen, model.names, model.last) == ([], {}, None)


# Hooks


def scaled(factor: float, module: Any, args: Any, output: Any) -> Any:
    return output * factor  # partial


class Doubling:
    def __call__(self, module: Any, args: Any, output: Any) -> Any:
        return output * 2  # object


@pytest.mark.parametrize(
    ("hook", "mark"),
    [(functools.partial(scaled, 3.0), "partial"), (Doubling(), "object"), (lambda module, args, output: output + 1, "lambda")],  # lambda
)
def test_hooks_of_all_kinds(hook: Callable[..., Any], mark: str) -> None:
    model = torch.nn.Linear(3, 2).eval()
    model.register_forward_hook(hook)
    log = onnxplain.export(model, (torch.ones(1, 3),), verify=True).diagnostics
    lines = pathlib.Path(__file__).read_text(encoding="utf-8").splitlines()
    assert found(log) == [("OXP1019", next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}")))]


def test_hooks_of_torch_are_none_of_the_users_business() -> None:
    model = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2)).eval()
    assert onnxplain.export(model, (torch.ones(1, 3),), verify=True).diagnostics.findings == ()


# Operators written in Python

OPERATORS = """
import numpy as np
import torch


@torch.library.custom_op("around::inner", mutates_args=())
def inner(x: torch.Tensor) -> torch.Tensor:
    return x.clamp(min=0) + 1


@inner.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("around::outer", mutates_args=())
def outer(x: torch.Tensor, k: int) -> torch.Tensor:
    return inner(x) * k


@outer.register_fake
def _(x, k):
    return torch.empty_like(x)


@torch.library.custom_op("around::host", mutates_args=())
def host(x: torch.Tensor) -> torch.Tensor:
    return torch.full_like(x, float(np.abs(x.numpy()).max()))


@host.register_fake
def _(x):
    return torch.empty_like(x)


class Nested(torch.nn.Module):
    def forward(self, x):
        return outer(x, 3)  # nested


class Host(torch.nn.Module):
    def forward(self, x):
        return host(x)  # host


class Both(torch.nn.Module):
    def forward(self, x):
        y = torch.special.airy_ai(x)  # operator
        if y.sum() > 0:  # branch
            y = y * 2
        return y
"""


@pytest.fixture(scope="module")
def operators(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("operators") / "operators.py"
    path.write_text(OPERATORS, encoding="utf-8")
    scope: dict[str, Any] = {"__name__": "operators"}
    exec(compile(OPERATORS, str(path), "exec"), scope)
    return scope


def line_of(mark: str) -> int:
    return next(number for number, line in enumerate(OPERATORS.splitlines(), 1) if line.endswith(f"# {mark}"))


def test_operators_written_in_python_are_inlined(operators: Any) -> None:
    program = onnxplain.export(operators["Nested"](), (torch.ones(2, 3),), dynamic_shapes={"x": {0: "n"}}, verify=True)
    assert set(found(program.diagnostics)) == {("OXP2004", line_of("nested"))}
    x = torch.randn(5, 3)
    torch.testing.assert_close(program(x)[0], (x.clamp(min=0) + 1) * 3)


def test_what_looks_at_data_is_not_inlined(operators: Any) -> None:
    assert found(failed(operators["Host"](), (torch.ones(3),))) == [("OXP3001", line_of("host"))]


def test_after_a_failed_capture_operators_are_listed_too(operators: Any) -> None:
    assert set(found(failed(operators["Both"](), (torch.ones(3),)))) == {("OXP1001", line_of("branch")), ("OXP3001", line_of("operator"))}


# Where arguments were written


def export_with(load: Load, call: str) -> Any:
    module = load(
        f"""
import onnxplain
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return x * 2


settings = {{"opset_version": 99}}  # dict


def go(**options):
    number = 99  # name
    {call}
"""
    )
    with pytest.raises(onnxplain.ExportFailed) as failure:
        module.go()
    return failure.value.log


@pytest.mark.parametrize(
    ("call", "mark"),
    [
        ("onnxplain.export(Net(), (torch.ones(3),), opset_version=99)  # keyword", "keyword"),
        ("onnxplain.export(Net(), (torch.ones(3),), opset_version=number)", "name"),
        ("onnxplain.export(Net(), (torch.ones(3),), **settings)", "dict"),
        ("onnxplain.export(Net(), (torch.ones(3),), **{'opset_version': 99}, **options)  # ambiguous", "ambiguous"),
    ],
)
def test_an_argument_is_found_where_it_was_written(call: str, mark: str, load: Load, marked: Marked) -> None:
    assert found(export_with(load, call)) == [("OXP5005", marked(mark)[0])]
