"""Repeated layers: found in the graph of operators, translated and cleaned up a few times, and copied for all others.

Of a run of equal blocks, the first three and the last one are translated. The second and the third have equal blocks around them. If both
became the same ONNX nodes, so would all blocks in the middle.

Most runs are in the graph of the program, and FX passes see it without the blocks that are left out. If passes change the operators of the
blocks, runs are found in the graph that they make.
"""

from .calls import enclosing
from .copying import copy_blocks
from .part import within
from .run import Run
from .search import find

__all__ = ["Run", "copy_blocks", "enclosing", "find", "within"]
