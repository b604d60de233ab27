"""Exports PyTorch models to ONNX and explains every export.

These names are imported at first use, so that `import onnxplain` and the commands that only read rules or logs never import torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import export as export
    from .diagnostics import DiagnosticOptions as DiagnosticOptions
    from .diagnostics import ExportFailed as ExportFailed
    from .diagnostics import InvalidArgument as InvalidArgument
    from .diagnostics import Level as Level
    from .diagnostics import OnnxExporterError as OnnxExporterError
    from .dynamo import ExportOptions as ExportOptions
    from .dynamo import dynamo_export as dynamo_export
    from .fake import ONNXFakeContext as ONNXFakeContext
    from .fake import enable_fake_mode as enable_fake_mode
    from .process import is_in_onnx_export as is_in_onnx_export
    from .program import ONNXProgram as ONNXProgram
    from .registry import OnnxRegistry as OnnxRegistry
    from .request import FXGraphExtractor as FXGraphExtractor
    from .runtime import ONNXRuntimeOptions as ONNXRuntimeOptions

_HOMES = {
    "DiagnosticOptions": "diagnostics",
    "ExportFailed": "diagnostics",
    "ExportOptions": "dynamo",
    "FXGraphExtractor": "request",
    "InvalidArgument": "diagnostics",
    "Level": "diagnostics",
    "ONNXFakeContext": "fake",
    "ONNXProgram": "program",
    "ONNXRuntimeOptions": "runtime",
    "OnnxExporterError": "diagnostics",
    "OnnxRegistry": "registry",
    "dynamo_export": "dynamo",
    "enable_fake_mode": "fake",
    "export": "api",
    "is_in_onnx_export": "process",
}

__all__ = [
    "DiagnosticOptions",
    "ExportFailed",
    "ExportOptions",
    "FXGraphExtractor",
    "InvalidArgument",
    "Level",
    "ONNXFakeContext",
    "ONNXProgram",
    "ONNXRuntimeOptions",
    "OnnxExporterError",
    "OnnxRegistry",
    "dynamo_export",
    "enable_fake_mode",
    "export",
    "is_in_onnx_export",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .process import without_collection

    with without_collection():
        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
