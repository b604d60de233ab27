"""The edit of `dynamic_shapes` keeps the user's names of dims, and never takes the name of one for another."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
from marks import needs_columns

import onnxplain

Load = Callable[..., ModuleType]

SOURCE = """
import dataclasses

import onnxplain
import torch
from torch.export import Dim


@dataclasses.dataclass
class Held:
    x: torch.Tensor
    y: torch.Tensor


torch.export.register_dataclass(Held)


class Net(torch.nn.Module):
    def forward(self, z, held):
        return (held.x + torch.zeros(4)) * z.view(2, 4).sum() + held.y.sum()


m, n, k = Dim("m", max=9), Dim("n"), Dim("k", max=50)


def go():
    args = (torch.rand(2, 4), Held(torch.rand(3, 4), torch.rand(5, 4)))
    onnxplain.export(Net(), args, strategies=["non-strict"], try_fixes=False, dynamic_shapes=SHAPES)
"""


FULL = '{"z": {}, "held": [{0: torch.export.Dim("n")}, {0: torch.export.Dim("m", max=9)}]}'


@needs_columns
@pytest.mark.parametrize(
    ("shapes", "after"),
    [
        # Only `z` changes.
        ('{"z": {0: k}, "held": [{0: n}, {0: m}]}', '{"z": {}, "held": [{0: n}, {0: m}]}'),
        ("({0: k}, [{0: n}, {0: m}])", '{"z": {}, "held": [{0: n}, {0: m}]}'),
        ("[(k, None), ({0: n}, (m, None))]", '{"z": {}, "held": [{0: n}, {0: m}]}'),
        # `q` is fixed as well, so that the entry of `x` is written anew.
        ('{"z": {0: k}, "held": [{0: n, 1: Dim("q")}, {0: m}]}', '{"z": {}, "held": [{0: n}, {0: m}]}'),
        ("({0: k}, [{0: n, 1: Dim('q')}, {0: m}])", '{"z": {}, "held": [{0: n}, {0: m}]}'),
        # `z` has no dim 5.
        ('{"z": {0: k, 5: "j"}, "held": [{0: n}, {0: m}]}', '{"z": {0: k}, "held": [{0: n}, {0: m}]}'),
        # Entries by field: in the order of the class, or in another.
        ('{"z": {0: k}, "held": {"x": {0: n, 1: Dim("q")}, "y": {0: m}}}', FULL),
        ('{"z": {0: k}, "held": {"y": {0: m}, "x": {0: n, 1: Dim("q")}}}', FULL),
        ('{"z": {0: k}, "held": Held({0: n, 1: Dim("q")}, {0: m})}', FULL),
    ],
)
def test_the_edit_keeps_the_names_of_dims(load: Load, shapes: str, after: str) -> None:
    module = load(SOURCE.replace("SHAPES", shapes))
    with pytest.raises(onnxplain.ExportFailed) as failed:
        module.go()
    texts = {edit.replacement for finding in failed.value.findings for edit in finding.fixes[-1].edits}
    (text,) = texts
    assert text == after
