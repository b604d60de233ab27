"""Builds the onnx_ir model from the plan: inputs, weights, nodes with their origin, outputs, and the names of all of them."""

from .builder import Built, build

__all__ = ["Built", "build"]
