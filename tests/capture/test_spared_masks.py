"""Branches that take None for a mask which leaves nothing out: an export uses the mask."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest
import torch

import onnxplain

Load = Callable[..., types.ModuleType]
Marked = Callable[..., list[int]]

SOURCE = """
    import torch


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(9, 4)
            self.out = torch.nn.Linear(4, 4)

        def attend(self, x, mask):
            scores = x @ x.transpose(1, 2)
            if mask is not None:
                scores = scores.masked_fill(mask[:, None], -1e4)
            return scores.softmax(-1) @ x

        def forward(self, ids):
            mask = ids.eq(1)
            x = self.embed(ids)
            {}
            return self.out(x)
"""
RIGHT = {
    "any": """
        if not mask.any():  # HERE
            mask = None
        x = self.attend(x, mask)""",
    "all": """
        kept = ~mask
        x = self.attend(x, None if kept.all() else mask)  # HERE""",
    "a name for the test": """
        has_pads = mask.any()
        x = self.attend(x, mask if has_pads else None)  # HERE""",
    "a sum": """
        if mask is not None and mask.sum() == 0:  # HERE
            mask = None
        x = self.attend(x, mask)""",
    "another variable": """
        if torch.any(mask):  # HERE
            used = mask
        else:
            used = None
        x = self.attend(x, used)""",
}
WRONG = {
    "another result": """
        if not mask.any():
            mask = None
        x = x * 2 if mask is None else self.attend(x, mask)""",
    "more than a mask": """
        if not mask.any():
            mask = None
            x = x + 1
        x = self.attend(x, mask)""",
    "a value of the data": """
        mask = mask if x[0, 0, 0] > 100 else None
        x = self.attend(x, mask)""",
}


def loaded(load: Load, body: str) -> torch.nn.Module:
    lines = [line[8:] for line in body.strip("\n").splitlines()]
    torch.manual_seed(0)
    model: torch.nn.Module = load(SOURCE.format("\n".join(lines).strip().replace("\n", "\n            "))).Net()
    return model.eval()


def exported(model: torch.nn.Module, ids: torch.Tensor) -> onnxplain.ONNXProgram:
    return onnxplain.export(model, (ids,), dynamic_shapes=({0: "n", 1: "length"},), strategies=("non-strict",))


@pytest.mark.parametrize("body", RIGHT)
def test_the_mask_is_used_for_all_data(body: str, load: Load, marked: Marked) -> None:
    model = loaded(load, RIGHT[body])
    program = exported(model, torch.randint(2, 9, (2, 5)))
    assert {(each.rule.id, each.location.line) for each in program.diagnostics.findings} == {("OXP1037", marked("HERE")[0])}
    for size in ((2, 5), (1, 3), (4, 8)):
        for least in (0, 2):
            ids = torch.randint(least, 9, size)
            with torch.no_grad():
                torch.testing.assert_close(program(ids)[0], model(ids), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("body", WRONG)
def test_other_branches_are_told(body: str, load: Load) -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        exported(loaded(load, WRONG[body]), torch.randint(2, 9, (2, 5)))
    assert {each.rule.id for each in failed.value.findings} == {"OXP1001"}


def test_an_example_that_uses_the_mask_shows_nothing_of_the_other_way(load: Load) -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        exported(loaded(load, RIGHT["any"]), torch.ones(2, 5, dtype=torch.long))
    assert {each.rule.id for each in failed.value.findings} == {"OXP1001"}
