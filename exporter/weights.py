"""The weights of an ONNX model: which initializers they are, how large, and a model without them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import BinaryIO

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import TorchTensor

PROTOBUF_LIMIT = 2**31 - 1
"""Bytes that one protobuf message can have."""


_BLOCK = 2**20
"""Bytes that are written at once of a weight that does not lie in memory as it is written."""


class Computed(TorchTensor):
    """A weight that is made of the model's own ones each time that it is asked for its data, such as a transposed view: no copy is kept.

    Args:
        compute: Makes it.
        like: A tensor on the meta device with its shape and dtype.
        sources: What it is made of.
        name: Its name.
        by_rows: Makes it in blocks of so many rows, where it need not be made whole to be written.
    """

    def __init__(
        self,
        compute: Callable[[], torch.Tensor],
        like: torch.Tensor,
        sources: Sequence[TorchTensor],
        name: str,
        by_rows: Callable[[int], Iterable[torch.Tensor]] | None = None,
    ) -> None:
        super().__init__(like, name=name)
        self.compute = compute
        self.sources = tuple(sources)
        self.by_rows = by_rows

    @property
    def raw(self) -> torch.Tensor:  # type: ignore[override]
        """The data, made anew."""
        with torch.no_grad():
            return self.compute()

    def tofile(self, file: BinaryIO) -> None:
        """Writes the data in blocks of rows: a transposed weight, which has to be copied into order, is never copied whole."""
        with torch.no_grad():
            for block in self._blocks():
                TorchTensor(block.contiguous()).tofile(file)

    def _blocks(self) -> Iterable[torch.Tensor]:
        length = len(self.like) if self.like.ndim else 0
        rows = max(1, _BLOCK * length // max(1, self.nbytes))
        if self.by_rows is not None:
            return self.by_rows(rows)
        data = self.raw
        return [data] if data.is_contiguous() or not length else data.split(rows)

    @property
    def like(self) -> torch.Tensor:
        """A tensor on the meta device with its shape and dtype."""
        like: torch.Tensor = self._raw
        return like


def of(model: ir.Model) -> list[ir.Value]:
    """The initializers that are parameters and buffers; the others are constants that the graph needs."""
    return [value for value in model.graph.initializers.values() if isinstance(value.const_value, TorchTensor)]


def has_data(value: ir.Value) -> bool:
    """False for a weight that was made in fake mode or on the meta device."""
    return isinstance(value.const_value, TorchTensor) and _has_data(value.const_value)


def _has_data(tensor: TorchTensor) -> bool:
    if isinstance(tensor, Computed):
        return all(map(_has_data, tensor.sources))
    return not tensor.raw.is_meta and not hasattr(tensor.raw, "fake_mode")


def size_of(value: ir.Value) -> int:
    """Bytes of one initializer."""
    return value.const_value.nbytes if value.const_value is not None else 0


def total_bytes(model: ir.Model) -> int:
    """Bytes of all weights together."""
    return sum(map(size_of, of(model)))


@contextlib.contextmanager
def apart(model: ir.Model, weights: list[ir.Value], *, as_inputs: bool) -> Iterator[None]:
    """The model without these weights for a while; as graph inputs if asked."""
    graph = model.graph
    inputs = len(graph.inputs)
    initializers = dict(graph.initializers)
    try:
        for value in weights:
            graph.initializers.pop(value.name)  # type: ignore[arg-type]
        if as_inputs:
            graph.inputs.extend(weights)
        yield
    finally:
        while len(graph.inputs) > inputs:
            graph.inputs.pop()
        graph.initializers.clear()
        for value in initializers.values():
            graph.register_initializer(value)
