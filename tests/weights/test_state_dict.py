"""Weights from a state dict: all of them fit, or nothing changes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from weighted_net import IDS, close, exported, real

import onnxplain


@pytest.mark.parametrize("spoil", ["missing", "unexpected", "shape", "dtype", "fake", "tied"])
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
    with pytest.raises(onnxplain.InvalidArgument, match=r"out\.weight" if spoil == "tied" else r"conv\.b(ia|ai)s"):
        program.apply_weights(state)
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
