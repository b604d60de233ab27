"""Tells where the memory of a model's activations goes, from the shapes alone."""

from .estimate import estimate
from .records import MemoryEstimate, Origin, Step, TensorSize, readable
from .review import review
from .shapes import bound

__all__ = ["MemoryEstimate", "Origin", "Step", "TensorSize", "bound", "estimate", "readable", "review"]
