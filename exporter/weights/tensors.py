"""Tensors of weights: given by the model, lying in a file, or computed from others when they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import BinaryIO

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import TorchTensor

from onnxplain.torch_internals.fake_tensors import has_no_data

from .stored import Stored

_BLOCK = 2**20
"""Bytes that are written at once of a weight that does not lie in memory as it is written."""


class Weight(TorchTensor):
    """A parameter, a buffer, or a constant of the model's code.

    Args:
        tensor: Its data, or a tensor without: fake, or on the meta device.
        name: What the model calls it; names of tied weights that come later are appended to `names`.
        in_state: Whether it is in state dicts: a parameter or a persistent buffer.
        place: Which of the model's weights it is, in the order of the state dict; -1 for a constant.
    """

    def __init__(self, tensor: torch.Tensor, name: str, *, in_state: bool, place: int = -1) -> None:
        super().__init__(as_real(tensor.detach()), name=name)
        self.names = [name]
        self.in_state = in_state
        self.place = place
        self.stored: Stored | None = None

    @property
    def raw(self) -> torch.Tensor:  # type: ignore[override]
        """The data; mapped from its file if it is in one."""
        return self._raw if self.stored is None else self.stored.tensor()

    @property
    def like(self) -> torch.Tensor:
        """A tensor on the meta device with its shape and dtype."""
        return torch.empty(self._raw.shape, dtype=self._raw.dtype, device="meta")

    @property
    def has_data(self) -> bool:
        """False for a weight that was made in fake mode or on the meta device, until it is given some."""
        return self.stored is not None or not has_no_data(self._raw)

    def give(self, data: torch.Tensor | Stored) -> None:
        """Other data, of the same shape and dtype."""
        if isinstance(data, Stored):
            self.stored = data.as_real()
        else:
            self.stored, self._raw = None, as_real(data.detach())

    def tofile(self, file: BinaryIO) -> None:
        """Writes the data; block by block what comes from another file."""
        if self.stored is not None and self.stored.is_contiguous:
            self.stored.write_to(file)
        else:
            super().tofile(file)


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` as ONNX has it: dense, and with complex numbers as pairs along a last dim."""
    dense = tensor if tensor.layout is torch.strided else tensor.to_dense()
    return torch.view_as_real(dense.resolve_conj()) if dense.is_complex() else dense


class Computed(TorchTensor):
    """A weight that is made of the model's own ones each time that it is asked for its data, such as a transposed view: no copy is kept.

    Args:
        compute: Makes it.
        like: A tensor on the meta device with its shape and dtype.
        sources: What it is made of.
        name: Its name.
        operators: Makes the ONNX operators that would compute it, in order, from values of the model; the last one's output is the weight.
        by_rows: Makes it in blocks of so many rows, where it need not be made whole to be written.
    """

    def __init__(
        self,
        compute: Callable[[], torch.Tensor],
        like: torch.Tensor,
        sources: Sequence[Weight | Computed],
        name: str,
        operators: Callable[[], Sequence[ir.Node]],
        by_rows: Callable[[int], Iterable[torch.Tensor]] | None = None,
    ) -> None:
        super().__init__(like, name=name)
        self.compute = compute
        self.sources = tuple(sources)
        self.operators = operators
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

    @property
    def has_data(self) -> bool:
        """Whether all that it is made of has."""
        return all(source.has_data for source in self.sources)


def is_stored(tensor: Weight | Computed) -> bool:
    """Whether a part of its data lies in a file."""
    return any(map(is_stored, tensor.sources)) if isinstance(tensor, Computed) else tensor.stored is not None
