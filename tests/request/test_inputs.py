"""Copies of example inputs: new containers and tensors, the same structure."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import onnxplain
from onnxplain.request import copied, inputs


@dataclasses.dataclass
class Batch:
    x: torch.Tensor


pytree.register_pytree_node(Batch, lambda batch: ([batch.x], None), lambda parts, _: Batch(*parts))


def test_copies_share_nothing_with_the_inputs() -> None:
    x, parameter = torch.ones(2, 3), torch.ones(2, requires_grad=True)
    computed = parameter * 2
    args: tuple[Any, ...] = (x, [x.t(), {"a": computed}], Batch(x), 3, None)
    kwargs = {"again": computed, "named": OrderedDict(x=x, text="a")}
    (first, (second, inner), batch, number, nothing), keywords = copied(args, kwargs)
    assert first is batch.x
    assert first is keywords["named"]["x"]
    assert keywords["again"] is inner["a"]
    assert (number, nothing, type(keywords["named"]), keywords["named"]["text"]) == (3, None, OrderedDict, "a")
    assert second.stride() == (1, 3)
    for copy, given in ((first, x), (second, x), (inner["a"], computed)):
        assert copy is not given
        with torch.no_grad():
            copy.add_(5)
    assert x.eq(1).all()
    assert computed.eq(2).all()


def test_a_tensor_that_is_passed_several_times_becomes_several() -> None:
    x, y = torch.ones(2), torch.ones(3)
    (first, (other, second)), keywords = inputs.distinct((x, [y, x]), {"again": x, "number": 3})
    assert (first is x, other is y, keywords["number"]) == (True, True, 3)
    assert len({id(x), id(second), id(keywords["again"])}) == 3
    assert second.equal(x)


def test_the_containers_of_copies_are_new() -> None:
    x = torch.ones(2)
    given = {"x": [x]}
    (copy,), keywords = copied((given,), given)
    copy["x"].append(x)
    keywords["y"] = x
    assert (list(given), len(given["x"])) == (["x"], 1)
    assert len(keywords["x"]) == 1


class Choice(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: Any = None, table: Any = None, **others: Any) -> Any:
        parts = [
            each for given in (y, table, others) for each in (given.values() if isinstance(given, dict) else [given]) if each is not None
        ]
        return x + sum(parts, torch.zeros(3))


@pytest.mark.parametrize(
    ("last", "inputs"),
    [
        ({}, ["x"]),
        ({"y": 2}, ["x", "y"]),
        ({"y": 2, "table": {"k": 3}}, ["x", "y", "table_k"]),
        ({"z": 2}, ["x", "y_z"]),
        ({"x": 2}, ["x", "y_x"]),
        ({1: 2}, ["x", "y_1"]),
    ],
)
def test_a_dict_at_the_end_of_args(last: dict[Any, Any], inputs: list[str]) -> None:
    """It stands for `kwargs` if it could be that, as in torch.onnx."""
    values = pytree.tree_map(lambda value: torch.full((3,), float(value)), last)
    program = onnxplain.export(Choice(), (torch.ones(3), values))
    assert [value.name for value in program.model.graph.inputs] == inputs
    given = ((torch.ones(3),), values) if {*last} <= {"y", "table"} else ((torch.ones(3), values), {})
    torch.testing.assert_close(program(*given[0], **given[1])[0], Choice()(*given[0], **given[1]))
