"""Values that become constants are reported at their line: Python inputs, random numbers, constant and missing outputs."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import torch

import onnxplain

CASES: dict[str, tuple[str, str, str]] = {
    "number": ("OXP1012", "(torch.ones(3), 2)", "def forward(self, x, k):\n    return x * k  # here"),
    "text": (
        "OXP1012",
        "(torch.ones(3), 'up')",
        "def forward(self, x, mode):\n    if mode == 'up':  # here\n        x = x + 1\n    return x",
    ),
    "number-in-a-dict": ("OXP1012", "(torch.ones(3), {'k': 2.0})", "def forward(self, x, options):\n    return x * options['k']  # here"),
    "none": ("OXP1013", "(torch.ones(3), None)", "def forward(self, x, mask=None):\n    return x if mask is None else x * mask  # here"),
    "random": ("OXP1014", "(torch.ones(3),)", "def forward(self, x):\n    return x * random.random()  # here"),
    "numpy": ("OXP1014", "(torch.ones(3),)", "def forward(self, x):\n    return x * float(np.random.rand())  # here"),
    "noise": ("OXP1015", "(torch.ones(3),)", "def forward(self, x):\n    return x + torch.randn_like(x)  # here"),
    "sample": ("OXP1015", "(torch.ones(3),)", "def forward(self, x):\n    return torch.multinomial(x, 1)  # here"),
    "loop": ("OXP1016", "(torch.ones(3),)", "def forward(self, x):\n    for _ in range(120):\n        x = x * 0.9  # here\n    return x"),
    "constant": ("OXP4004", "(torch.ones(3),)", "def forward(self, x):\n    return x + 1, torch.ones(2) * 3  # here"),
    "text-output": ("OXP4005", "(torch.ones(3),)", "def forward(self, x):\n    y = x * 2\n    return y, None, 'label'  # here"),
}


@pytest.mark.parametrize("name", CASES)
def test_is_said_at_its_line(name: str, load: Callable[..., ModuleType], marked: Callable[[str], list[int]]) -> None:
    rule, args, forward = CASES[name]
    body = forward.replace("\n", "\n    ")
    module = load(f"import random, time\nimport numpy as np\nimport torch\n\nclass Net(torch.nn.Module):\n    {body}\n\nargs = {args}\n")
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(0)
    program = onnxplain.export(module.Net(), module.args, verify=True)
    finding, *others = program.diagnostics.findings
    assert finding.rule.id == rule
    assert finding.location is not None
    assert finding.location.line == marked("here")[0]
    # Random outputs are not compared, either.
    assert [each.rule.id for each in others] == ["OXP6006"] * (rule in ("OXP1014", "OXP1015"))


def test_a_tensor_that_is_passed_twice_is_two_inputs() -> None:
    x = torch.ones(3)
    program = onnxplain.export(lambda a, b: a - 2 * b, (x, x))
    assert program.diagnostics.findings == ()
    torch.testing.assert_close(program(torch.ones(3), torch.full((3,), 5.0))[0], torch.full((3,), -9.0))


def test_many_results_of_one_operator_are_no_loop(load: Callable[..., ModuleType]) -> None:
    module = load("""
        def parts(x):
            return x.exp().unbind()
    """)
    assert onnxplain.export(module.parts, (torch.ones(120, 2),)).diagnostics.findings == ()


def test_a_healthy_model_draws_nothing() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, x: torch.Tensor, k: int, *, scale: torch.Tensor | float = 2.0) -> torch.Tensor:
            return self.drop(x) * k * scale + torch.nn.functional.scaled_dot_product_attention(x, x, x)

    shapes = {"x": None, "k": torch.export.Dim.DYNAMIC}
    program = onnxplain.export(Net().eval(), (torch.randn(2, 3, 4), 3), dynamic_shapes=shapes, verify=True)
    assert program.diagnostics.findings == ()


CLOCKS = """\
import time

import torch

import onnxplain

BEGAN = time.time()


class Net(torch.nn.Module):
    made = time.monotonic()

    def forward(self, x):
        return x * {factor}


def since():
    return time.time() - BEGAN


def benchmark():
    began = time.perf_counter()
    program = onnxplain.export(Net(), (torch.ones(3),))
    return program, time.perf_counter() - began
"""


@pytest.mark.parametrize(("factor", "captures", "rules"), [("2", 1, []), ("BEGAN", 1, []), ("since()", 2, ["OXP1014"])])
def test_a_clock_that_no_model_calls_costs_no_second_capture(
    factor: str, captures: int, rules: list[str], load: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = CLOCKS.format(factor=factor)
    module = load(source if "since" in factor else source.replace("    return time.time() - BEGAN", "    return BEGAN"))
    made, export = [], torch.export.export
    monkeypatch.setattr(torch.export, "export", lambda *args, **kwargs: made.append(1) or export(*args, **kwargs))
    program, _ = module.benchmark()
    assert len(made) == captures
    assert [finding.rule.id for finding in program.diagnostics.findings] == rules
