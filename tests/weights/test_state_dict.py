"""Weights from a state dict: all of them fit, or nothing changes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from weighted_net import IDS, close, exported, real

import onnxplain


@pytest.mark.parametrize("spoil", ["missing", "unexpected", "shape", "dtype", "fake", "tied", "tied and fake"])
def test_weights_that_do_not_fit_change_nothing(spoil: str) -> None:
    program, net = exported(), real()
    program.apply_weights(net.state_dict())
    state: dict[str, Any] = dict(real(1).state_dict())
    match spoil:
        case "missing":
            del state["conv.bias"]
        case "unexpected":
            state["conv.bais"] = state["conv.bias"]
        case "shape":
            state["conv.bias"] = torch.zeros(9)
        case "dtype":
            state["conv.bias"] = state["conv.bias"].double()
        case "fake":
            state["conv.bias"] = torch.zeros(8, device="meta")
        case "tied":
            state["out.weight"] = state["out.weight"] + 1
        case "tied and fake":
            state["out.weight"] = state["table.weight"] = state["out.weight"].to("meta")
    with pytest.raises(onnxplain.InvalidArgument, match=r"out\.weight" if spoil.startswith("tied") else r"conv\.b(ia|ai)s") as caught:
        program.apply_weights(state)
    # NOTE: what has no data is not said to differ as well.
    assert str(caught.value).count("out.weight") == spoil.startswith("tied")
    close(program(IDS)[0], net(IDS))
    if spoil in ("missing", "unexpected"):
        program.apply_weights(state, strict=False)
        if spoil == "missing":
            state["conv.bias"] = net.conv.bias
        other = real(1)
        other.load_state_dict({name: each for name, each in state.items() if name != "conv.bais"})
        close(program(IDS)[0], other(IDS))


@pytest.mark.parametrize("value", [None, 3, ["weight"], {"weight": 1.0}, {1: torch.ones(1)}])
def test_no_weights(value: Any) -> None:
    with pytest.raises(onnxplain.InvalidArgument, match="state_dict"):
        exported().apply_weights(value)


class Derived(torch.nn.Module):
    """Two buffers that are in no state dict: one is computed from a parameter, one is plain."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("twice", torch.zeros(3), persistent=False)
        self.register_buffer("steps", torch.arange(3.0), persistent=False)
        self.twice.copy_(self.weight.detach() * 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.twice + self.weight + self.steps


def test_what_is_in_no_state_dict_needs_data_only_if_it_has_none() -> None:
    with onnxplain.enable_fake_mode():
        model = Derived()
    program = onnxplain.export(model, (torch.ones(3),))
    with pytest.raises(onnxplain.InvalidArgument, match="twice"):
        program.apply_weights({"weight": torch.ones(3)})
    program.apply_weights({"weight": torch.ones(3), "twice": torch.full((3,), 2.0), "steps": torch.zeros(3)})
    close(program(torch.ones(3))[0], torch.full((3,), 3.0))
    program.apply_weights({"weight": torch.zeros(3)})
    close(program(torch.ones(3))[0], torch.full((3,), 2.0))


def test_a_message_lists_five_problems_and_counts_the_rest() -> None:
    model = torch.nn.Sequential(*(torch.nn.Linear(1, 1) for _ in range(4)))
    program = onnxplain.export(model, (torch.ones(1, 1),))
    with pytest.raises(onnxplain.InvalidArgument) as refused:
        program.apply_weights({})
    assert [name in str(refused.value) for name in model.state_dict()] == [True] * 5 + [False] * 3
    assert "3 more" in str(refused.value)
    with pytest.raises(onnxplain.InvalidArgument) as refused:
        program.apply_weights({name: tensor for name, tensor in model.state_dict().items() if name[0] in "0"} | {"3.bias": torch.ones(1)})
    assert "more" not in str(refused.value)


def test_tied_weights_that_are_equal_fit() -> None:
    program, net = exported(), real(1)
    state = dict(net.state_dict())
    state["out.weight"] = state["out.weight"].clone()
    program.apply_weights(state)
    close(program(IDS)[0], net(IDS))
    del state["table.weight"]
    program.apply_weights(state)
    close(program(IDS)[0], net(IDS))
