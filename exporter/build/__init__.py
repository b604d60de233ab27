"""Builds the onnx_ir model from the plan: inputs, weights, nodes with their origin, control flow, names of dims."""

from .builder import METADATA, build

__all__ = ["METADATA", "build"]
