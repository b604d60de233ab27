"""Branches that spare work where nothing is selected: an export runs the code all the same, and keeps its results where something is."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest
import torch

import onnxplain
from onnxplain.diagnostics import Confidence

Load = Callable[..., types.ModuleType]
Marked = Callable[..., list[int]]

EXPERTS = """
    import torch
    from torch.nn import functional as F


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.router = torch.nn.Linear(3, 4)
            self.experts = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(4)])
            self.up = torch.nn.Parameter(torch.randn(4, 3, 3))
            self.scale = 0.2

        def forward(self, x):
            weights, chosen = self.router(x).softmax(-1).topk(2)
            total = torch.zeros_like(x)
            {}
            return total
"""

LOOPS = {
    "no rows": """
        mask = F.one_hot(chosen, 4).permute(2, 1, 0)
        for number in range(4):
            way, token = torch.where(mask[number])
            if token.shape[0] == 0:  # HERE
                continue
            total.index_add_(0, token, self.experts[number](x[token]) * weights[token, way, None])
    """,
    "any row": """
        for number, expert in enumerate(self.experts):
            mask = (chosen == number).any(-1)
            if mask.any():  # HERE
                weight = (weights * (chosen == number)).sum(-1)[mask]
                total[mask] += expert(x[mask]) * weight[:, None]
    """,
    "a number of rows": """
        for way in range(2):
            for number in range(4):
                mask = chosen[:, way] == number
                if mask.sum() == 0:  # HERE
                    continue
                total[mask] = total[mask] + weights[mask, way : way + 1] * self.experts[number](x[mask])
    """,
    "a name for the number": """
        for number in range(4):
            token, way = (chosen == number).nonzero(as_tuple=True)
            count = len(token)
            if not count > 0:  # HERE
                continue
            total = total.index_add(0, token, self.experts[number](x[token]) * weights[token, way, None])
    """,
    "another tensor of that name": """
        for number in range(4):
            mask = (chosen == number).any(-1)
            if mask.any():  # HERE
                total = total.clone()
                total[mask] = total[mask] + self.experts[number](x[mask])
    """,
    "places that data choose": """
        mask = F.one_hot(chosen, 4).permute(2, 1, 0)
        with torch.no_grad():
            hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero(as_tuple=False)
        for place in hit:  # HERE
            number = int(place.item())
            with torch.no_grad():
                way, token = torch.where(mask[number].squeeze(0))
            if token.numel() == 0:
                continue
            if number >= 3:
                y = x[token]
            else:
                y = F.linear(x[token], self.up[number])
            total.index_add_(0, token, y * weights[token, way, None])
    """,
    "a place more than experts": """
        mask = F.one_hot(chosen, num_classes=len(self.experts) + 1).permute(2, 1, 0)
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        for place in hit:  # HERE
            place = place[0]
            way, token = torch.where(mask[place])
            y = F.linear(x[token], self.up[place]) * weights[token, way, None]
            total.index_add_(0, token, y)
        total = total.view(-1, 3)
    """,
    "a view of the result, and the last dim": """
        mask = F.one_hot(chosen, 4).permute(2, 1, 0)
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        for place in hit:  # HERE
            way, token = torch.where(mask[place].squeeze(0))
            y = x[None, token].reshape(-1, x.shape[-1])
            y = self.experts[place[0]](y) * weights[token, way, None]
            if self.scale > 0:
                y *= 1 - self.scale
            total.index_add_(0, token, y.to(x.dtype))
        total = total.view(x.shape[0], -1)
    """,
}


SHAPES = {
    "another shape": "total = x[0] * 0\nmask = x[:, 0] > 2\nif mask.any():\n    total = x[mask].sum()",
    "another dtype": "total = (x[0] * 0).long()\nmask = x[:, 0] > 2\nif mask.any():\n    total = x[mask].sum(0)",
}


def loaded(load: Load, body: str) -> torch.nn.Module:
    lines = [line[8:] for line in body.strip("\n").splitlines()]
    torch.manual_seed(0)
    model: torch.nn.Module = load(EXPERTS.format("\n".join(lines).strip().replace("\n", "\n            "))).Net()
    return model.eval()


@pytest.mark.parametrize("loop", LOOPS)
def test_mixtures_of_experts(loop: str, load: Load, marked: Marked) -> None:
    """For few rows, most experts get none."""
    model = loaded(load, LOOPS[loop])
    program = onnxplain.export(model, (torch.randn(6, 3),), dynamic_shapes=({0: "n"},))
    findings = {(each.rule.id, each.location.line) for each in program.diagnostics.findings}
    assert findings == {("OXP1037", marked("HERE")[0])}
    for rows in (1, 2, 3, 6, 11):
        for _ in range(3):
            x = torch.randn(rows, 3)
            with torch.no_grad():
                torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-5)


OTHERS = {
    "a sum of values": "if x.sum() == 0:\n    total = total + 1",
    "a first row": "mask = x[:, 0] > 0\nif mask.any():\n    total = total + x[mask][0]",
    "a maximum": "mask = x[:, 0] > 0\nif mask.any():\n    total = total + x[mask].max()",
    "a view that changes": "mask = x[:, 0] > 0\nrow = total[0]\nif mask.any():\n    row.add_(x[mask].sum(0))",
    "a check": "mask = x[:, 0] > 0\nif mask.any():\n    assert x[mask].shape[0] < 100\n    total = total + x[mask].sum()",
    "a first item": "places = torch.nonzero(x[:, 0] > 0)\nif places.shape[0] > 0:\n    total = total + x[0] * places[0, 0]",
    "as many values as the example selects": "mask = x[:, 0] > 0\nif mask.any():\n    total[mask] = weights[:6] * x",
    "values by a method": "mask = x[:, 0] > 0\nif mask.any():\n    total = total.index_put((mask,), weights[:6] * x)",
    "something else": "mask = x[:, 0] > 0\nif mask.sum() > 2:\n    total = total + x[mask].sum()",
}


# NOTE: the copy with a torch.cond is captured strictly.
@pytest.mark.falls_back
@pytest.mark.parametrize("body", OTHERS)
def test_code_that_may_do_more_is_not_run_where_nothing_is_selected(body: str, load: Load) -> None:
    model = loaded(load, "\n".join(" " * 8 + line for line in OTHERS[body].splitlines()))
    try:
        findings = onnxplain.export(model, (torch.ones(6, 3),), dynamic_shapes=({0: "n"},)).diagnostics.findings
    except onnxplain.ExportFailed as failed:
        findings = failed.findings
    edits = [edit for each in findings for fix in each.fixes if fix.confidence is Confidence.SAFE for edit in fix.edits]
    assert [edit for edit in edits if "is_taken" in edit.replacement] == []


@pytest.mark.parametrize("body", SHAPES)
def test_results_of_another_kind_are_not_converted(body: str, load: Load) -> None:
    """The example selects nothing, so that only the source tells what the branch would do."""
    model = loaded(load, "\n".join(" " * 8 + line for line in SHAPES[body].splitlines()))
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(model, (torch.ones(6, 3),), dynamic_shapes=({0: "n"},))
    assert [each.rule.id for each in failed.value.findings][:1] == ["OXP1001"]
