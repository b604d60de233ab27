"""Normalizations of tensors that may be empty, at sizes for which ONNX Runtime's kernel ends the process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from packaging.version import Version
from torch.nn import functional

import onnxplain

MODELS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "groups": lambda x: functional.group_norm(x[:, :, 1:], 2, torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([1.0, 0.0, -1.0, 3.0])),
    "groups without weights": lambda x: functional.group_norm(x[:, :, 1:, None], 1, eps=0.1),
    "instances": lambda x: functional.instance_norm(x[:, :, 1:], weight=torch.tensor([1.0, 2.0, 3.0, 4.0])),
    "instances of images": lambda x: functional.instance_norm(x[:, :, None, 1:]),
}


@pytest.mark.parametrize("name", MODELS)
def test_of_a_part_that_may_be_empty(name: str) -> None:
    if name.startswith("groups") and Version(torch.__version__) >= Version("2.14"):
        pytest.skip("this torch refuses to normalize groups of no elements")
    program = onnxplain.export(MODELS[name], (torch.randn(2, 4, 6),), dynamic_shapes=({0: "batch", 2: "length"},))
    assert "InstanceNormalization" not in {node.op_type for node in program.model.graph}
    for shape in ((2, 4, 6), (3, 4, 4)):
        x = torch.randn(shape)
        torch.testing.assert_close(program(x)[0], MODELS[name](x), rtol=1e-4, atol=1e-5)
    assert program(torch.randn(3, 4, 1))[0].shape[:2] == (3, 4)
    assert program(torch.randn(3, 4, 1))[0].numel() == 0


def test_of_a_whole_that_is_never_empty() -> None:
    program = onnxplain.export(torch.nn.InstanceNorm1d(4), (torch.randn(2, 4, 6),), dynamic_shapes=({0: "batch", 2: "length"},))
    assert "InstanceNormalization" in {node.op_type for node in program.model.graph}
