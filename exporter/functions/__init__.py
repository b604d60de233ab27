"""Turns the nodes of each module call into a call of an ONNX function."""

from .outline import outline

__all__ = ["outline"]
