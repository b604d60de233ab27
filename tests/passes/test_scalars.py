"""Scalars along a dim, and tensors without elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from parity import check

import onnxplain

ALONG_A_DIM: dict[str, Callable[[torch.Tensor], Any]] = {
    "amax": lambda x: x.amax(0, keepdim=True),
    "amin": lambda x: x.amin(-1),
    "gather": lambda x: x.gather(0, torch.tensor(0)),
    "any": lambda x: (x > 0).any(-1),
    "both results of max": lambda x: x.max(0),
    "index_select": lambda x: x.index_select(0, torch.tensor([0])),
}


@pytest.mark.parametrize("name", ALONG_A_DIM)
def test_a_scalar_is_a_vector_of_one_element(name: str) -> None:
    function, x = ALONG_A_DIM[name], torch.tensor(1.5)
    check(function, onnxplain.export(function, (x,)), (x,))


def test_a_scalar_without_a_dim_stays_one() -> None:
    program = onnxplain.export(lambda x: torch.nn.functional.hardswish(x.sum()), (torch.ones(3),))
    assert [node.op_type for node in program.model.graph] == ["ReduceSum", "HardSwish"]


WITHOUT_ELEMENTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "sum": lambda x: x.sum(-1),
    "softmax": lambda x: x.softmax(1),
    "complex": lambda x: torch.complex(x, x),
}


@pytest.mark.parametrize("name", WITHOUT_ELEMENTS)
def test_a_tensor_without_elements_is_a_constant(name: str) -> None:
    function, x = WITHOUT_ELEMENTS[name], torch.ones(2, 0, 4)
    program = onnxplain.export(function, (x,))
    check(lambda x: torch.view_as_real(function(x)) if name == "complex" else function(x), program, (x,))
    assert all(node.op_type in ("Identity", "Expand", "Constant") for node in program.model.graph)


def test_a_dynamic_dim_is_never_empty() -> None:
    x = torch.ones(2, 3)
    program = onnxplain.export(lambda x: x.sum(1), (x,), dynamic_shapes=({0: "n"},))
    assert [node.op_type for node in program.model.graph] == ["ReduceSum"]
