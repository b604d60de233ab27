"""Graphs for people to read: listings of whole graphs, and pictures of the nodes around one."""

from .excerpts import around
from .listings import of_fx, of_onnx

__all__ = ["around", "of_fx", "of_onnx"]
