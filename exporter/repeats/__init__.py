"""Repeated layers: found in the graph of operators, translated and cleaned up a few times, and copied for all others.

The graph is cut short before the build: of a run of equal blocks, the first three and the last one are built. Two of them, with equal blocks
around both, show what a block in the middle becomes. If these two became the same ONNX nodes, the blocks that were left out do as well.
"""

from .copying import copy_blocks
from .run import Run
from .search import find

__all__ = ["Run", "copy_blocks", "find"]
