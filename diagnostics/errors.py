"""The base of everything that users catch."""

from __future__ import annotations


class OnnxExporterError(RuntimeError):
    """Base class of everything that onnxplain raises on purpose. A RuntimeError, as the class of this name in torch.onnx is."""


class InvalidArgument(OnnxExporterError, TypeError, ValueError):
    """An argument has the wrong type or value. The text names the argument, what was expected and what came."""
