"""The order of what a capture tries: its steps, as the log tells them, and with which inputs it runs the model meanwhile."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.export import Dim

import onnxplain
from onnxplain.process import Budget

Load = Callable[..., ModuleType]

N = Dim("n")
SURVEY_LAST = {"strategies": ("non-strict", "draft")}
BELOW = "with torch.enable_grad():\n    x = x.detach().requires_grad_()\n    (y,) = torch.autograd.grad((x * x).sum(), x)\n"
ONE = {"dynamic_shapes": ({0: N},), "rows": 1}
BRANCH = "if x.sum() > 0:\n    x = x + 1\nreturn x"
FAILED = "if torch.compiler.is_exporting():\n    raise RuntimeError\nreturn x"
LARGER = "A dynamic dim has size 1 in the example; another capture takes size 2."
COPY = "Capturing a copy of the model with rewritten loops and branches."
LATE = "The strategy strict was not tried: the problem that stopped the first one (N s) stops it as well."

# The statements of `forward(self, x)`, the options of the export, its steps, and the rules of its findings.
BEHIND = ["A capture looks for further problems, as if no line before had fixed a dim.", "non-strict", "captured"]
BY_EXAMPLE = "A capture looks for further problems, with the decisions that the example's data make."
DRAFT = 'Later lines may have further problems. The strategy draft looks for them: strategies=["non-strict", "strict", "draft"].'
FINAL = "What is behind this problem cannot be looked at before it is solved."

SEARCHES: dict[str, tuple[str, dict[str, Any], list[str], list[str]]] = {
    "healthy": ("return x * 2", {}, ["non-strict", "captured"], []),
    "a survey of a healthy model": ("return x * 2", {"strategies": ("draft",)}, ["draft", "captured", "non-strict", "captured"], []),
    "a survey without time": (
        "return x * 2",
        {"strategies": ("draft",), "seconds": 0.0},
        ["draft", "captured", "non-strict", "captured"],
        [],
    ),
    "data": (BRANCH, {}, ["non-strict", "failed", "strict", "failed", "draft", "captured"], ["OXP1001"]),
    "data, a survey first": (BRANCH, {"strategies": ("draft", "non-strict")}, ["draft", "captured", "non-strict", "failed"], ["OXP1001"]),
    "data without time": (
        BRANCH,
        {"seconds": 0.0},
        ["non-strict", "failed", LATE, "The strategy draft was not tried: the capture takes long."],
        ["OXP1001"],
    ),
    "a failure": (FAILED, {}, ["non-strict", "failed", "strict", "failed", BY_EXAMPLE, "draft", "failed"], ["OXP1009"]),
    "a failure without time": (FAILED, {"seconds": 0.0}, ["non-strict", "failed", "strict", "failed"], ["OXP1009"]),
    "a fault": ("return x @ x", {"try_fixes": True}, ["non-strict", "failed", FINAL], ["OXP1005"]),
    "a fixed dim": (
        "return x.view(3, 4)",
        {"dynamic_shapes": ({0: N},)},
        ["non-strict", "failed", "strict", "failed", *BEHIND],
        ["OXP1003"],
    ),
    "a fixed dim and a survey": (
        "return x.view(3, 4)",
        {"dynamic_shapes": ({0: N},), **SURVEY_LAST},
        ["non-strict", "failed", *BEHIND],
        ["OXP1003"],
    ),
    "a fixed dim without time": (
        "return x.view(3, 4)",
        {"dynamic_shapes": ({0: N},), "seconds": 0.0},
        ["non-strict", "failed", LATE],
        ["OXP1003"],
    ),
    "a dim that may be fixed": (
        "return x.view(3, 4)",
        {"dynamic_shapes": True},
        ["non-strict", "captured", "non-strict", "captured"],
        ["OXP1034"],
    ),
    "size 1": (
        "return x * 2 if x.shape[0] == 1 else x + x",
        ONE,
        [
            "non-strict",
            "failed",
            LARGER,
            "non-strict",
            "captured",
            "The way for all other sizes equals the model for 1 of 1 certain sizes.",
        ],
        ["OXP1025"],
    ),
    "size 1 without runs": (
        "return x * 2 if x.shape[0] == 1 else x + x",
        {**ONE, "try_fixes": False, "strategies": ("non-strict",)},
        ["non-strict", "failed", LARGER, "non-strict", "captured", *BEHIND],
        ["OXP1003"],
    ),
    "size 1 that computes something else": (
        "return x * 2 if x.shape[0] == 1 else x * 3",
        {**ONE, "strategies": ("non-strict",)},
        ["non-strict", "failed", LARGER, "non-strict", "captured", *BEHIND],
        ["OXP1003"],
    ),
    "size 1 that size 2 cannot replace": (
        "if x.shape[0] == 1:\n    return x * 2\nreturn x * 2 if x.sum() > 0 else x",
        {**ONE, "strategies": ("non-strict",)},
        ["non-strict", "failed", LARGER, "non-strict", "failed", *BEHIND],
        ["OXP1003"],
    ),
    "size 1 whose program refuses it": (
        "return x * 2 if x.shape[0] == 1 else x[1:2] + torch.zeros(1, 4)[: x.shape[0] - 1].view(-1, 4)",
        {**ONE, "strategies": ("non-strict",)},
        ["non-strict", "failed", LARGER, "non-strict", "captured", *BEHIND],
        ["OXP1003"],
    ),
    "a rewritten branch": (
        BRANCH,
        {"control_flow": "rewrite", "strategies": ("non-strict",)},
        ["non-strict", "failed", COPY, "non-strict", "captured", "Loops and branches that were rewritten: 1 as cond."],
        ["OXP1037"],
    ),
    "branches that are rewritten one after the other": (
        "if x.sum() > 0:\n    x = x + 1\nif x.max() > 3:\n    x = x - 1\nreturn x",
        {"control_flow": "rewrite", "strategies": ("non-strict",)},
        [
            *("non-strict", "failed", COPY, "non-strict", "failed", COPY, "non-strict", "captured"),
            "Loops and branches that were rewritten: 2 as cond.",
        ],
        ["OXP1037", "OXP1037"],
    ),
    "a rewritten branch and another problem": (
        "if x.sum() > 0:\n    x = x + 1\nreturn {2: x}[int(x.max())]",
        {"control_flow": "rewrite", "strategies": ("non-strict",)},
        ["non-strict", "failed", COPY, "non-strict", "failed", DRAFT],
        ["OXP1001", "OXP1002"],
    ),
    "a copy that differs for negated inputs": (
        "if x.sum() > 0:\n    x = x + 1\nreturn x if type(self).__mro__[1] is torch.nn.Module else x.relu()",
        {"control_flow": "rewrite", "strategies": ("non-strict",)},
        [
            *("non-strict", "failed", COPY, "non-strict", "captured"),
            "The rewritten copy computes something else for other inputs, so it is not exported.",
            DRAFT,
        ],
        ["OXP1001"],
    ),
    "gradients": (f"{BELOW}return y", {}, ["non-strict", "captured"], ["OXP1022"]),
}


def steps(log: Any) -> list[str]:
    """The strategies, what became of them, and the other events."""
    texts = [re.sub(r"\(\d+ s\)", "(N s)", event.text) for event in log.events if "ONNX nodes" not in event.text]
    texts = [re.sub(r"^Capturing with the strategy (.*)\.$", r"\1", text) for text in texts]
    return [re.sub(r"^The strategy [a-z-]+( below autograd)? (failed|captured)\b.*", r"\2", text, flags=re.DOTALL) for text in texts]


@pytest.mark.parametrize("case", SEARCHES)
def test_what_is_tried(case: str, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    statements, options, expected, rules = SEARCHES[case]
    seconds, rows = options.get("seconds"), options.get("rows", 3)
    options = {"try_fixes": "control_flow" in options or rows == 1, **options}
    options = {name: value for name, value in options.items() if name not in ("seconds", "rows")}
    if seconds is not None:
        monkeypatch.setattr("onnxplain.api.Budget", lambda runs=12: Budget(runs, seconds=seconds))
    body = textwrap.indent(statements, " " * 8)
    model = load(f"import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n{body}\n").Net()
    try:
        log = onnxplain.export(model, (torch.ones(rows, 4),), **{"control_flow": "report", **options}).diagnostics
    except onnxplain.ExportFailed as failed:
        log = failed.log
    assert steps(log) == expected
    assert [finding.rule.id for finding in log.findings] == rules
