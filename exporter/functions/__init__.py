"""Turns the nodes of each module call into a call of an ONNX function."""

from .outline import Outlining, begin, outline, wanted

__all__ = ["Outlining", "begin", "outline", "wanted"]
