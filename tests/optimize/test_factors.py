"""Two factors before a matrix product become one: ONNX Runtime removes the first although another operator reads its result."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import onnxplain


def a_similarity(x: torch.Tensor) -> torch.Tensor:
    y = x.cos() / 4
    return (y * 0.5) @ y.T + y


def attention_to_itself(x: torch.Tensor) -> torch.Tensor:
    y = (x / 4)[None, None]
    return torch.nn.functional.scaled_dot_product_attention(y, y, y, is_causal=True)


def a_factor_in_front(x: torch.Tensor) -> torch.Tensor:
    y = 3 * x.cos()
    return y @ (y / 2).T @ y


@pytest.mark.parametrize("function", [a_similarity, attention_to_itself, a_factor_in_front])
def test_a_factor_that_others_read(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.randn(4, 4)
    program = onnxplain.export(function, (x,))
    torch.testing.assert_close(program(x)[0], function(x), rtol=1e-5, atol=1e-5)
    products = [node for node in program.model.graph if node.op_type == "MatMul"]
    scaled = [each.producer() for node in products for each in node.inputs if each is not None]
    assert not any(
        node is not None
        and node.op_type in ("Mul", "Div")
        and (before := node.inputs[0]) is not None
        and (producer := before.producer()) is not None
        and producer.op_type in ("Mul", "Div")
        for node in scaled
    )
