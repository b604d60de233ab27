"""Fixes that several stages offer."""

from __future__ import annotations

from onnxplain.diagnostics import Confidence, Fix

OBSERVERS_OFF = Fix(
    "Turn the observers off: the exported model then has the ranges that they have found.",
    Confidence.CHANGES_BEHAVIOUR,
    snippet="model.apply(torch.ao.quantization.disable_observer)",
)
