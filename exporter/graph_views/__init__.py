"""Graphs for people: whole listings as text, and the neighbourhood of a node as a picture."""

from .excerpts import around
from .listings import of_fx, of_onnx

__all__ = ["around", "of_fx", "of_onnx"]
