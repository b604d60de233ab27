"""What a strategy of the user makes of dims that may vary, and which faults let no further strategy try."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.export import Dim

import onnxplain
from onnxplain.diagnostics import Confidence

Load = Callable[..., ModuleType]


class Own(onnxplain.FXGraphExtractor):
    """Asks torch to let those dims vary, and no others."""

    name = "own"

    def __init__(self, *varying: int) -> None:
        self.varying = varying

    def generate_fx(
        self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
    ) -> torch.export.ExportedProgram:
        return torch.export.export(model, args, kwargs, dynamic_shapes=[dict.fromkeys(self.varying, Dim.AUTO)])


def told(program: onnxplain.ONNXProgram) -> dict[str, Any]:
    return {
        each.rule.id: dict(zip(each.rule.arguments(), each.rule.argument_texts(), strict=True)) for each in program.diagnostics.findings
    }


@pytest.mark.parametrize(
    ("varying", "body", "rules"),
    [
        ((0, 1), "x * 2", set()),
        ((0,), "x * 2", {"OXP1010"}),
        ((), "x * 2", {"OXP1010"}),
        ((0, 1), "x.view(3, -1)", {"OXP1034"}),
        ((0, 1), "x.view(3, 4)", {"OXP1034"}),
        ((1,), "x.view(3, -1)", {"OXP1010"}),
        ((0,), "x.view(3, -1)", {"OXP1010", "OXP1034"}),
    ],
)
def test_dims_that_a_strategy_leaves_static(load: Load, varying: tuple[int, ...], body: str, rules: set[str]) -> None:
    model = load(f"import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return {body}\n").Net()
    program = onnxplain.export(model, (torch.rand(3, 4),), dynamic_shapes=True, strategies=[Own(*varying)])
    assert set(told(program)) == rules
    static = {f"x.shape[{axis}]" for axis in {0, 1}.difference(varying)}
    assert {each for each in static if each in told(program).get("OXP1010", {}).get("reason", "")} == static


class Counting:
    """Counts how often it is asked, and captures with torch."""

    name = "counting"
    asked = 0

    def generate_fx(
        self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
    ) -> torch.export.ExportedProgram:
        self.asked += 1
        return torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes)


PLAIN = (
    "class Net(torch.nn.Module):\n    def forward(self, x):\n        return {}\n\n\nMODEL, ARGS, SHAPES = Net(), (torch.ones(3, 4),), {}\n"
)
HELD = "class Held:\n    def __reduce__(self):\n        raise TypeError\n\n\n"
OPERATOR = (
    'LIBRARY = torch.library.Library("onnxplain_own", "FRAGMENT")\nLIBRARY.define("one(Tensor x) -> Tensor")\n'
    'LIBRARY.impl("one", lambda x: x * 2, "CPU")\n\n\n'
)

# Programs, the rule that an export reports, and whether a second strategy could do better.
FAULTS = {
    "TorchScript": (PLAIN.format("x * 2", None) + "MODEL = torch.jit.script(Net())\n", "OXP1026", False),
    "unknown class": (HELD + PLAIN.format("torch.ones(3)", None) + "ARGS = (Held(),)\n", "OXP1008", False),
    "structure": (PLAIN.format("x * 2", "{'y': {0: 'n'}}"), "OXP1004", False),
    "rank": (PLAIN.format("x * 2", "{'x': {2: 'n'}}"), "OXP1004", False),
    "two sizes": (PLAIN.format("x * 2", "{'x': dict.fromkeys((0, 1), torch.export.Dim('n'))}"), "OXP1004", False),
    "range": (PLAIN.format("x * 2", "{'x': {0: torch.export.Dim('n', min=5)}}"), "OXP1004", False),
    "range of another name": (
        PLAIN.format("x * 2", "{'x': {0: make('n', min=5)}}").replace("\n\n\nMODEL", "\n\n\nmake = torch.export.Dim\nMODEL"),
        "OXP1004",
        False,
    ),
    "exception": (PLAIN.format("x @ x", None), "OXP1005", False),
    "missing argument": (PLAIN.format("x * 2", None) + "ARGS = ()\n", "OXP1005", False),
    "no fake kernel": (OPERATOR + PLAIN.format("torch.ops.onnxplain_own.one(x)", None), "OXP1027", False),
    "branch on data": (PLAIN.format("x if x.sum() > 0 else -x", None), "OXP1001", True),
    "fixed dim": (PLAIN.format("x.view(3, 4)", "{'x': {0: torch.export.Dim('n')}}"), "OXP1003", True),
    "other capture": (PLAIN.format("x * (1 / 0 if torch.compiler.is_exporting() else 1)", None), "OXP1009", True),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("fault", FAULTS)
def test_only_some_faults_leave_hope(load: Load, fault: str) -> None:
    source, rule, hope = FAULTS[fault]
    module = load(f"import torch\n\n\n{source}")
    second = Counting()
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(module.MODEL, module.ARGS, dynamic_shapes=module.SHAPES, strategies=["non-strict", second], control_flow="report")
    assert [each.rule.id for each in failed.value.findings] == [rule]
    assert bool(second.asked) == hope


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("made", "replacement"),
    [
        ("torch.jit.script(Part())", "Part()"),
        ("torch.jit.trace(Part(), torch.ones(3))", "Part()"),
        ("script(Part())", "Part()"),
        ("torch.jit.script(obj=Part())", None),
        ("torch.jit.load(saved(Part()))", None),
    ],
)
def test_the_fix_for_torchscript(load: Load, made: str, replacement: str | None) -> None:
    """It is final, so that nothing tries it, and an edit where the source has the module."""
    module = load(
        f"""
        import io

        import onnxplain
        import torch
        from torch.jit import script


        def saved(part):
            file = io.BytesIO()
            torch.jit.save(getattr(torch.jit, "script")(part), file)
            file.seek(0)
            return file


        class Part(torch.nn.Module):
            def forward(self, x):
                return x * 2


        def go():
            onnxplain.export({made}, (torch.ones(3),))
        """
    )
    with pytest.raises(onnxplain.ExportFailed) as failed:
        module.go()
    (finding,) = failed.value.findings
    (fix,) = finding.fixes
    assert (finding.rule.id, fix.confidence) == ("OXP1026", Confidence.SAFE)
    assert [each.replacement for each in fix.edits] == ([] if replacement is None else [replacement])
