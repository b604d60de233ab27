"""Graphs for people to read: listings of whole graphs, pictures of the nodes around one, and pictures of whole models."""

from .excerpts import around
from .listings import of_fx, of_onnx
from .modules import Box, of_model
from .pictures import chart, page, svg
from .signatures import signature

__all__ = ["Box", "around", "chart", "of_fx", "of_model", "of_onnx", "page", "signature", "svg"]
