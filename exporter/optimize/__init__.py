"""Cleans up the ONNX graph in time linear in its size."""

from .optimizer import clean_up, optimize

__all__ = ["clean_up", "optimize"]
