"""One run lists all problems: those before and those behind a line that stops the capture, each at its line."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch.export import Dim

import onnxplain

SHARED = """
    import numpy as np
    import torch

    library = torch.library.Library("{library}", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: torch.from_numpy(np.array(x.detach().numpy()) * 2), "CPU")
    CALLS = []

    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.last = None

        def forward(self, x):
            self.last = x  # OXP1018
            print("part")  # OXP1039
            return x

    def limited(x):
        return x + (1 if x.shape[0] < 32 else 2)  # OXP1011
"""

DIMS = """
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()

        def forward(self, x):
            x = limited(self.part(x))
            CALLS.append(1)  # OXP1018
            x = x + torch.rand(8)  # OXP1015
            x = torch.nextafter(x, x + 1)  # OXP3001
            x = x.reshape(4, 8)  # OXP1003
            x = {1: x, 9: x + 1}.get(int(x.sum()), x)  # OXP1002
            return torch.linalg.eigvals(x.T @ x).real  # OXP3001
"""

DATA = """
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()

        def forward(self, data):
            x = torch.ops.{library}.twice(data["x"])  # OXP1027 OXP3001
            if x.sum() > 0:  # OXP1001
                return self.rest(x)
            return x

        def rest(self, x):
            scale = torch.from_numpy(np.interp(x.detach().numpy(), [0, 1], [0, 2])).float()  # OXP1033
            x = limited(self.part(scale * x))
            assert bool(x.isfinite().all())  # OXP1038
            x = x.view(4, 2, 4).flatten(1)  # OXP1003
            return torch.nextafter(x, x + 1)  # OXP3001
"""

N = Dim("n")


def found(model: Any, args: Any, **options: Any) -> tuple[onnxplain.diagnostics.Log, set[tuple[str, int | None]]]:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(model, args, **options)
    log = failed.value.log
    return log, {(finding.rule.id, finding.location.line) for finding in log.findings if finding.location is not None}


@pytest.mark.parametrize(
    ("source", "shapes", "wrong"),
    [
        (DIMS, {"x": {0: N}}, False),
        (DIMS, {"y": {0: N}}, True),
        (DATA, {"data": {"x": {0: N}}}, False),
        (DATA, {"data": {"y": {0: N}}}, True),
    ],
    ids=["dims", "a wrong parameter", "data", "a wrong key"],
)
def test_all_problems_in_one_run(
    load: Callable[..., ModuleType], source: str, shapes: Any, wrong: bool, request: pytest.FixtureRequest, tmp_path: Any
) -> None:
    library = f"behind_{abs(hash(request.node.name))}"
    module = load((SHARED + source).replace("{library}", library))
    lines = (tmp_path / "model.py").read_text().splitlines()
    planted = {(rule, number) for number, line in enumerate(lines, 1) for rule in line.partition("# ")[2].split() if rule.startswith("OXP")}
    model, x = module.Net(), torch.rand(4, 8) + 1
    log, told = found(model, ({"x": x},) if source is DATA else (x,), dynamic_shapes=shapes)
    mine = {(rule, line) for rule, line in told if rule != "OXP1004"}
    assert mine == planted
    assert wrong == (log.findings[0].rule.id == "OXP1004")
    by_rule = {finding.rule.id: finding.level.value for finding in log.findings}
    assert by_rule["OXP1011"] == "warning"
    assert model.part.last is None
    assert module.CALLS == []


def test_what_was_not_looked_at(load: Callable[..., ModuleType]) -> None:
    """Without the strategy that looks further, the log says so."""
    source = (SHARED + DATA).replace("{library}", "behind_unseen")
    options = {"dynamic_shapes": {"data": {"x": {0: N}}}, "strategies": ["non-strict"], "try_fixes": False}
    log, _ = found(load(source).Net(), ({"x": torch.rand(4, 8)},), **options)
    assert any("draft" in event.text for event in log.events)


def test_a_decomposition_that_looks_at_the_data_of_the_example(load: Callable[..., ModuleType]) -> None:
    """`one_hot` checks its data in C++ where there are any."""
    source = """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                chosen = torch.nn.functional.one_hot(x.long().abs() % 4, num_classes=4)
                if int(chosen.sum()) > 3:  # OXP1002
                    x = x + 1
                return x.unsqueeze(-1) * chosen
    """
    _, told = found(load(source).Net(), (torch.randn(5, 8) * 3,), dynamic_shapes={"x": {0: N}}, control_flow="report")
    assert {rule for rule, _ in told} <= {"OXP1001", "OXP1002"}
    assert {line for _, line in told} == {7}
