"""Fake quantization with observers that are off and on."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.ao.quantization import fake_quantize

import onnxplain
from onnxplain.testing import assert_exports

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

LAYERS = {
    "plain": fake_quantize.default_fake_quant,
    "fused": fake_quantize.default_fused_act_fake_quant,
    "channels": fake_quantize.default_fused_per_channel_wt_fake_quant,
}


def _model(name: str) -> tuple[nn.Module, torch.Tensor]:
    model, x = nn.Sequential(nn.Linear(6, 3), nn.Unflatten(1, (3, 1)), nn.Flatten(0, 1)), torch.randn(2, 6)
    layer = LAYERS[name]()
    layer(model(x))
    return model.append(layer).append(nn.Sigmoid()).eval(), x


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "channels"])
def test_an_observer_that_is_off_leaves_only_the_rounding(name: str) -> None:
    model, x = _model(name)
    model.apply(fake_quantize.disable_observer)
    program = assert_exports(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    other = torch.randn(5, 6)
    torch.testing.assert_close(program(other)[0], model(other))
    assert not program.diagnostics.findings
    kinds = [node.op_type for node in program.model.graph]
    assert kinds.count("QuantizeLinear") == kinds.count("DequantizeLinear") == 1


@pytest.mark.parametrize("name", LAYERS)
def test_an_observer_that_is_on_is_the_only_finding(name: str) -> None:
    model, x = _model(name)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(model, (x,))
    assert [finding.rule.id for finding in failed.value.log.findings] == ["OXP1035"]


def test_fake_quantization_that_is_off_leaves_nothing() -> None:
    model, x = _model("fused")
    model.apply(fake_quantize.disable_observer).apply(fake_quantize.disable_fake_quant)
    program = assert_exports(model, (x,))
    assert "QuantizeLinear" not in {node.op_type for node in program.model.graph}
