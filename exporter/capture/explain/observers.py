"""Observers of quantization-aware training that are still on."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from onnxplain.capture.finding import Finding, module_of
from onnxplain.diagnostics import Confidence, Evidence, Fix
from onnxplain.request import Request
from onnxplain.rules import ObserverOn
from onnxplain.source import locations
from onnxplain.source.fixes import OBSERVERS_OFF
from onnxplain.torch_internals import torch_frames
from onnxplain.torch_internals.modules import named_modules

_BEFORE = Fix("Export the model before `prepare`, and quantize the ONNX model (onnxruntime.quantization).", Confidence.GUESS)


def running(request: Request, error: Exception) -> Iterator[Finding]:
    """A finding about the observer in which `error` was raised."""
    for module in torch_frames.modules_running(error):
        if _is(module, "ObserverBase", "FakeQuantizeBase"):
            at = locations.at_exception(error, module_of(request))
            fix = OBSERVERS_OFF if _is(module, "FakeQuantizeBase") else _BEFORE
            yield Finding(
                ObserverOn(module=_path(request, module)), at if at.location else Evidence(request.caller), fixes=(fix,), final=True
            )
            return


def _path(request: Request, module: torch.nn.Module) -> str:
    model = request.model
    paths = [path for path, each in named_modules(model) if each is module] if isinstance(model, torch.nn.Module) else []
    return next(filter(None, paths), "the model")


def _is(module: torch.nn.Module, *names: str) -> bool:
    # NOTE: by name, because torch.ao.quantization takes half a second to import.
    return any(each.__name__ in names and each.__module__.startswith("torch.ao.quantization") for each in type(module).__mro__)
