"""A healthy export tells at DEBUG what its stages did, and says nothing of it otherwise."""

from __future__ import annotations

import logging
import pathlib
from typing import Any

import pytest
import torch
from onnxscript import opset20 as op

import onnxplain

DETAILS = ("passes", "dispatch", "build", "optimize", "serialize")


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(self.layers(x).sin()).abs().add_(1)


def _sin(x: Any) -> Any:
    return op.Sin(x)


def exported(level: int, path: pathlib.Path, **options: Any) -> onnxplain.ONNXProgram:
    return onnxplain.export(
        Net().eval(),
        (torch.ones(1, 3, 8, 8),),
        f=path,
        custom_translation_table={torch.ops.aten.sin.default: _sin},
        diagnostic_options=onnxplain.DiagnosticOptions(verbosity_level=level),
        **options,
    )


@pytest.mark.parametrize("external", [True, False])
def test_each_stage_speaks_at_debug(tmp_path: pathlib.Path, *, external: bool) -> None:
    events = exported(logging.DEBUG, tmp_path / "net.onnx", external_data=external).diagnostics.events
    texts = {stage: [each.text for each in events if each.stage == stage and each.level == logging.DEBUG] for stage in DETAILS}
    assert all(texts.values())
    assert any("functionalize" in text and "aten::add_.Tensor" in text for text in texts["passes"])
    served = [text for text in texts["dispatch"] if text.startswith("aten::sin,")]
    assert len(served) == 1
    assert "_sin" in served[0]
    assert "custom_translation_table" in served[0]
    assert any("batch_norm_into_conv" in text and "BatchNormalization" in text for text in texts["optimize"])
    size = (tmp_path / "net.onnx").stat().st_size
    (written,) = texts["serialize"]
    assert f"net.onnx with {size} bytes" in written
    assert ("net.onnx.data with" in written) == external


def test_other_exports_have_no_such_events(tmp_path: pathlib.Path) -> None:
    events = exported(logging.INFO, tmp_path / "net.onnx").diagnostics.events
    assert [each for each in events if each.level == logging.DEBUG] == []
    assert [each for each in events if each.stage in ("passes", "dispatch", "build", "serialize")] == []
