"""Tells where the memory of a model's activations goes, from the shapes alone."""

from .dims import size_of
from .estimate import estimate, origin_of
from .listing import headline, listing
from .plot import plot as draw
from .records import MemoryEstimate, Origin, Step, TensorSize, readable
from .review import review
from .shapes import bound, dims_of

__all__ = [
    "MemoryEstimate",
    "Origin",
    "Step",
    "TensorSize",
    "bound",
    "dims_of",
    "draw",
    "estimate",
    "headline",
    "listing",
    "origin_of",
    "readable",
    "review",
    "size_of",
]
