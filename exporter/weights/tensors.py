"""The tensors of weights: given by the model, stored in a file, or computed from other weights when they are written."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, BinaryIO

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import TorchTensor

from onnxplain.torch_internals.fake_tensors import has_no_data

from .stored import Stored

_BLOCK = 2**20
"""How many bytes of a weight are written at a time if memory does not hold them as they are written."""


class Weight(TorchTensor):
    """A parameter, a buffer, or a constant in the model's code.

    Args:
        tensor: The data, or a tensor without data: fake, or on the meta device.
        name: The name in the model. The later names of a tied weight are appended to `names`.
        in_state: Whether state dicts contain it: a parameter or a persistent buffer.
        place: The position among the model's parameters, which come first, and buffers; -1 for a constant.

    Attributes:
        names: Every name that the weight has in the model.
        in_state: As above.
        place: As above.
        stored: Where the data lies, if it lies in a file.
    """

    def __init__(self, tensor: torch.Tensor, name: str, *, in_state: bool, place: int = -1) -> None:
        super().__init__(as_real(tensor.detach()), name=name)
        self.names = [name]
        self.in_state = in_state
        self.place = place
        self.stored: Stored | None = None

    @property
    def raw(self) -> torch.Tensor:  # type: ignore[override]  # the base class has an attribute there
        """The data, mapped from its file if it lies in one."""
        return self._raw if self.stored is None else self.stored.tensor()

    @property
    def like(self) -> torch.Tensor:
        """A tensor on the meta device with the same shape and dtype."""
        return torch.empty(self._raw.shape, dtype=self._raw.dtype, device="meta")

    @property
    def has_data(self) -> bool:
        """False for a weight that was made in fake mode or on the meta device and has not been given data yet."""
        return self.stored is not None or not has_no_data(self._raw)

    def give(self, data: torch.Tensor | Stored) -> None:
        """Sets the data, which must have the same shape and dtype."""
        if isinstance(data, Stored):
            self.stored = data.as_real()
        else:
            self.stored, self._raw = None, as_real(data.detach())

    def tofile(self, file: BinaryIO) -> None:
        """Writes the data. Data from another file is copied block by block."""
        if self.stored is not None and self.stored.is_contiguous:
            self.stored.write_to(file)
        else:
            super().tofile(file)


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` as ONNX represents it: dense, and complex numbers as pairs along a last dim of size 2."""
    dense = tensor if tensor.layout is torch.strided else tensor.to_dense()
    return torch.view_as_real(dense.resolve_conj()) if dense.is_complex() else dense


@dataclasses.dataclass(frozen=True, slots=True)
class Formula:
    """How weights are computed from values. Weights that are computed alike share it.

    Attributes:
        key: Equal for formulas that compute the same from the same values.
        compute: Computes the data from the tensors of the values.
        operators: Makes the ONNX operators that would compute it from the values, in order. The last output is the weight.
        name: Makes the name from the weights among the tensors.
        by_rows: Computes the data in blocks of so many rows, for a weight that need not be whole in memory to be written.
    """

    key: Hashable
    compute: Callable[[Sequence[Any]], torch.Tensor]
    operators: Callable[[Sequence[ir.Value | None]], Sequence[ir.Node]]
    name: Callable[[Sequence[Weight | Computed]], str]
    by_rows: Callable[[Sequence[Any], int], Iterable[torch.Tensor]] | None = None


class Computed(TorchTensor):
    """A weight that is computed from the model's weights whenever its data is asked for, such as a transposed view. No copy is kept.

    Args:
        formula: How it is computed.
        values: What it is computed from: weights, computed weights and constants.
        like: A tensor on the meta device with the same shape and dtype.
    """

    def __init__(self, formula: Formula, values: Sequence[ir.Value | None], like: torch.Tensor) -> None:
        self.formula = formula
        self.values = values
        self._tensors = [value.const_value for value in values if value is not None]
        super().__init__(like, name=formula.name(self.sources))

    def alike(self, values: Sequence[ir.Value | None]) -> Computed:
        """A weight that is computed alike from other values of the same dtypes and shapes."""
        # NOTE: equal layers have many. A copy shares the shape, which takes half of the time to make.
        made = copy.copy(self)
        made.values = values
        made._tensors = [value.const_value for value in values if value is not None]  # noqa: SLF001  it is of this class
        made.name = self.formula.name(made.sources)
        return made

    @property
    def sources(self) -> list[Weight | Computed]:
        """The weights that it is computed from."""
        return [tensor for tensor in self._tensors if isinstance(tensor, _KINDS)]

    @property
    def raw(self) -> torch.Tensor:  # type: ignore[override]  # the base class has an attribute there
        """The data, computed anew."""
        with torch.no_grad():
            return self.formula.compute(self._tensors)

    def operators(self) -> Sequence[ir.Node]:
        """The ONNX operators that would compute it from values of the model, in order. The last output is the weight."""
        return self.formula.operators(self.values)

    def tofile(self, file: BinaryIO) -> None:
        """Writes the data in blocks of rows: a transposed weight is copied into order, but never as a whole."""
        with torch.no_grad():
            for block in self._blocks():
                TorchTensor(block.contiguous()).tofile(file)

    def _blocks(self) -> Iterable[torch.Tensor]:
        rows = max(1, _BLOCK * self.like.shape[:1].numel() // max(1, self.nbytes))
        if self.formula.by_rows is not None:
            return self.formula.by_rows(self._tensors, rows)
        data = self.raw
        return [data] if data.is_contiguous() else data.split(rows)

    @property
    def like(self) -> torch.Tensor:
        """A tensor on the meta device with the same shape and dtype."""
        like: torch.Tensor = self._raw
        return like

    @property
    def has_data(self) -> bool:
        """Whether all weights that it is computed from have data."""
        return all(source.has_data for source in self.sources)


_KINDS = (Weight, Computed)


def is_stored(tensor: Weight | Computed) -> bool:
    """Whether at least a part of the data lies in a file."""
    return any(map(is_stored, tensor.sources)) if isinstance(tensor, Computed) else tensor.stored is not None
