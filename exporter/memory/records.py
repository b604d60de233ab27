"""What a memory analysis finds: a timeline of the execution, and the tensors that make its peak."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

_PATH = 40
"""The longest path that is shown as a whole, in characters."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """Where an ONNX node comes from; texts are empty where that is unknown.

    Attributes:
        operator: The ONNX operator, such as `MatMul`.
        source: The user's line, such as `model.py:12`.
        module: The path of the module, such as `encoder.layers.3`.
        aten: The operator of PyTorch, such as `aten::add.Tensor`.
    """

    operator: str
    source: str = ""
    module: str = ""
    aten: str = ""

    @property
    def place(self) -> str:
        """The line and the module, as far as they are known, or else the operator. Of a long path, the end counts."""
        source = self.source if len(self.source) <= _PATH else f"...{self.source[-_PATH:]}"
        return " in ".join(filter(None, (source, self.module))) or self.operator


@dataclasses.dataclass(frozen=True, slots=True)
class TensorSize:
    """A tensor that a node makes.

    Attributes:
        name: Its name in the graph.
        dtype: Its dtype, such as `FLOAT`.
        shape: Its shape with the names of dynamic dims, such as `[batch, 4, sequence]`.
        size: Its bytes for the sizes of the analysis.
        growth: How its bytes grow with dynamic dims, such as `n*d**2`; empty if they are constant.
        origin: The node that makes it.
    """

    name: str
    dtype: str
    shape: str
    size: int
    growth: str
    origin: Origin


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """An operator of the main graph that ONNX Runtime runs, in its order. It merges some nodes to one operator.

    Attributes:
        live: The bytes of all tensors in memory while it runs, without weights and the inputs of the model.
        origin: The node, or the one of several that the operator is named after.
    """

    live: int
    origin: Origin


@dataclasses.dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """The memory that the activations of a model take, by the shapes alone.

    Attributes:
        peak: The most bytes at a time, without weights and the inputs of the model.
        at: The index in `steps` of the operator that runs then.
        tensors: The tensors in memory then, the largest first.
        steps: The operators in the order of execution.
        sizes: The sizes of dynamic dims that the bytes are for.
        weights: The bytes of the weights.
        inputs: The bytes of the inputs.
        unknown: The names of tensors whose size only a run tells. They count as empty.
    """

    peak: int
    at: int
    tensors: tuple[TensorSize, ...]
    steps: tuple[Step, ...]
    sizes: Mapping[str, int]
    weights: int
    inputs: int
    unknown: tuple[str, ...]


def readable(count: int) -> str:
    """Bytes as people read them, such as `3.81 GiB`."""
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    decimals = 0 if unit == 0 or size >= 100 else 1 if size >= 10 else 2
    return f"{size:.{decimals}f} {_UNITS[unit]}"
