"""The base of everything that users catch."""

from __future__ import annotations


class OnnxExporterError(Exception):
    """Base class of everything that onnxplain raises on purpose."""


class InvalidArgument(OnnxExporterError, TypeError, ValueError):
    """An argument has the wrong type or value. The text names the argument, what was expected and what came."""
