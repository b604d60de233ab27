"""Advice that is followed to the letter: each step is the fix of the first finding, and at the end the model exports."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import textwrap
import types
from collections.abc import Mapping

import pytest
import torch
from click.testing import CliRunner
from marks import needs_columns
from packaging.version import Version

import onnxplain
from onnxplain.cli import main


@dataclasses.dataclass(frozen=True)
class Advised:
    """A model that does not export.

    Attributes:
        body: What its `forward` does.
        expected: The first findings of the exports on the way.
        by_hand: For a rule whose fix is not an edit: what the advice says to replace in the file, and by what.
    """

    body: str
    expected: tuple[str, ...]
    by_hand: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)


MODELS = {
    "a chain": Advised(
        """
        top = torch.sort(x, 0, descending=x.shape[0] > 3).values
        if x.sum() > 0:
            top = top + 1
        return {top}
        """,
        ("OXP1009", "OXP1001", "OXP1009"),
        {
            "make a plain value": ("x.shape[0] > 3", "bool(x.shape[0] > 3)"),
            "choose by element": (
                "if x.sum() > 0:\n            top = top + 1",
                "top = torch.where(x.sum() > 0, top + 1, top)",
            ),
            "Return tensors": ("{top}", "[top]"),
        },
    ),
    "a size for a number": Advised("return x.topk(2, 0, largest=x.shape[0] > 3).values", ("OXP1009",)),
    "an object as result": Advised(
        "return torch.distributions.Normal(x, 1.0)",
        ("OXP1009",),
        {"what the object": ("torch.distributions.Normal(x, 1.0)", "(x, 1.0 + 0 * x)")},
    ),
    "memory": Advised("return torch.from_dlpack(x) * 2", ("OXP1009",), {"Use the tensor itself": ("torch.from_dlpack(x)", "x")}),
    "elements": Advised(
        "return x.clone().map_(x, lambda a, b: b * 2)",
        ("OXP1009",),
        {"the whole tensor": ("x.clone().map_(x, lambda a, b: b * 2)", "x * 2")},
    ),
    "resized": Advised(
        "return x.clone().resize_(2, 3)",
        # NOTE: torch 2.15 captures it, and 2.13 does not.
        ("OXP1009",) if Version(torch.__version__) < Version("2.14") else ("OXP2001",),
        {"a slice": (".clone().resize_(2, 3)", "[:2]")},
    ),
}


def first_finding(log: pathlib.Path) -> tuple[str, str]:
    """The rule and the fix of the first finding that fails the export."""
    results = json.loads(log.read_text(encoding="utf-8"))["runs"][0]["results"]
    result = next(each for each in results if each["level"] == "error")
    return result["ruleId"], " ".join(each["description"]["text"] for each in result.get("fixes", ())) + json.dumps(result)


@pytest.mark.parametrize("advised", MODELS.values(), ids=MODELS)
def test_a_followed_advice_leads_to_a_model(advised: Advised, folder: pathlib.Path) -> None:
    body = textwrap.indent(textwrap.dedent(advised.body).strip(), " " * 8)
    net = folder / "net.py"
    net.write_text(f"import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n{body}\n", encoding="utf-8")
    seen = []
    command = ["export", f"{net}:Net", "--input", "x=f32[rows=4,columns=3]", "--dynamic", "all", "-o", "net.onnx", "--sarif", "net.sarif"]
    while CliRunner().invoke(main, command).exit_code == 1:
        rule, advice = first_finding(folder / "net.sarif")
        seen.append(rule)
        before = net.read_text(encoding="utf-8")
        CliRunner().invoke(main, ["fix", "net.sarif", "--unsafe"])
        if net.read_text(encoding="utf-8") == before:
            old, new = next(edit for words, edit in advised.by_hand.items() if words in advice)
            assert old in before
            net.write_text(before.replace(old, new), encoding="utf-8")
        assert len(seen) <= len(advised.expected), seen
    assert (folder / "net.onnx").exists()
    assert tuple(seen) == advised.expected


class Decoder(torch.nn.Module):
    """A model that reads a flag from its configuration where the argument does not tell, as those of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.config = types.SimpleNamespace(use_cache=True)

    def forward(self, x: torch.Tensor, use_cache: bool | None = None) -> tuple[torch.Tensor, ...]:
        return (x * 2, x + 1) if (self.config.use_cache if use_cache is None else use_cache) else (x * 2,)


@needs_columns
def test_a_flag_is_set_where_it_keeps_the_model_the_same() -> None:
    decoder = Decoder()
    program = onnxplain.export(decoder, (torch.ones(3),), kwargs={"use_cache": False})
    (finding,) = program.diagnostics.findings
    assert finding.rule.id == "OXP1013"
    (fix,) = finding.fixes
    exec(fix.snippet, {"decoder": decoder})
    followed = onnxplain.export(decoder, (torch.ones(3),))
    assert followed.diagnostics.findings == ()
    assert len(followed.model.graph.outputs) == len(program.model.graph.outputs) == 1


def test_a_default_is_left_out() -> None:
    def scale(x: torch.Tensor, twice: bool = True, shift: bool = False) -> torch.Tensor:
        return x * (2 if twice else 1) + shift

    program = onnxplain.export(scale, (torch.ones(3),), kwargs={"twice": True, "shift": True})
    advice = [finding.fixes[0].description.split()[0] for finding in program.diagnostics.findings]
    assert advice == ["Leave", "If"]
