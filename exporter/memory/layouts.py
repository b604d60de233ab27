"""The copies in another layout that ONNX Runtime makes around convolutions: blocks of channels, which its kernels read faster."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import onnx_ir as ir

from .execution import Kernel, Kernels
from .kernels import VIEWS

_BLOCK = 16
"""Channels of a block with AVX-512 and on ARM. With AVX2 it is 8, which pads less."""
_CONVOLUTIONS = frozenset({"Conv", "FusedConv"})
_POOLS = frozenset({"AveragePool", "MaxPool"})
_KEEPING = frozenset({"Add", "Concat", "Gelu", "GlobalAveragePool", "GlobalMaxPool", "Mul", "Relu", "Sigmoid", "Sum", "Tanh"})
_ACTIVATED = {"Conv": "FusedConv", "SumConv": "SumConv"}
_JOINING = {"Add": {"Conv": "SumConv"}, "Relu": _ACTIVATED, "Sigmoid": _ACTIVATED, "Tanh": _ACTIVATED}
"""What a convolution becomes with an operator behind it."""
_CHANNELS_FIRST = ([0, 3, 1, 2], [0, 2, 1])


def block(kernels: Kernels) -> None:
    """Gives convolutions and what is around them blocked tensors, in place, with the kernels that copy from and to other layouts."""
    blocks = _Blocks(kernels)
    for kernel in kernels.in_order():
        if kernel.operator in _CONVOLUTIONS:
            blocks.convolve(kernel)
        elif kernel.operator in _POOLS:
            blocks.pool(kernel)
        elif kernel.operator in _KEEPING:
            blocks.keep(kernel)
    blocks.restore()


@dataclasses.dataclass(frozen=True)
class _Blocks:
    # NOTE: read in ONNX Runtime 1.31, core/optimizer/nchwc_transformer.cc, and compared with the graphs that it writes.
    kernels: Kernels
    _blocked: dict[ir.Value, ir.Value] = dataclasses.field(default_factory=dict)
    _copied: dict[ir.Value, ir.Value] = dataclasses.field(default_factory=dict)

    def convolve(self, kernel: Kernel) -> None:
        """A convolution of images whose channels fill blocks, or are fewer than a block."""
        data, weight = kernel.inputs[:2]
        shape = self.kernels.shapes.sizes(weight) if weight in self.kernels.constants else None
        if shape is None or len(shape) != 4 or weight.dtype is not ir.DataType.FLOAT:
            return
        output, given = shape[:2]
        group = kernel.node.attributes.get_int("group", 1)
        if group == 1:
            fits = given < _BLOCK or given % _BLOCK == 0
        else:
            fits = output % _BLOCK == 0 and ((given == 1 and output == group) or given % _BLOCK == output // group % _BLOCK == 0)
        if fits:
            self._replace(kernel, [] if group == 1 and given < _BLOCK else [data])

    def pool(self, kernel: Kernel) -> None:
        """A pooling of images whose channels fill blocks."""
        shape = self.kernels.shapes.sizes(kernel.inputs[0])
        if shape is not None and len(shape) == 4 and shape[1] % _BLOCK == 0 and len(kernel.outputs) == 1:
            self._replace(kernel, kernel.inputs)

    def keep(self, kernel: Kernel) -> None:
        """An operator that blocks do not matter to, if all that it reads is blocked."""
        if not all(value in self._blocked for value in kernel.inputs):
            return
        shapes = [self.kernels.shapes.sizes(value) or () for value in kernel.inputs]
        if kernel.operator == "Concat":
            fits = kernel.node.attributes.get_int("axis", 0) == 1 and all(shape[1] % _BLOCK == 0 for shape in shapes)
        else:
            fits = len(set(shapes)) == 1
        if fits and not any(self._joins(value, kernel) for value in kernel.inputs):
            self._replace(kernel, kernel.inputs)

    def _joins(self, value: ir.Value, kernel: Kernel) -> bool:
        """Makes the convolution that makes `value` compute the sum or the activation `kernel` at once, if it can."""
        maker = self.kernels.maker(self._blocked[value])
        others = [self._blocked[each] for each in kernel.inputs if each is not value]
        after = _JOINING.get(kernel.operator, {})
        if maker is None or maker.operator not in after or self.kernels.only_reader(value) is not kernel:
            return False
        self.kernels.remove(kernel)
        self.kernels.remove(maker)
        maker.inputs += others
        maker.operator = after[maker.operator]
        self.kernels.add(maker)
        self._blocked[kernel.outputs[0]] = self._blocked[value]
        return True

    def _as_blocks(self, kernel: Kernel, value: ir.Value) -> ir.Value:
        """The blocked copy of a tensor."""
        if value in self._blocked:
            return self._blocked[value]
        if value not in self._copied:
            self._copied[value] = self._padded(value)
            self.kernels.new(kernel.node, "ReorderInput", [self._before_transpose(value, kernel)], [self._copied[value]])
        return self._copied[value]

    def _before_transpose(self, value: ir.Value, reader: Kernel) -> ir.Value:
        """A tensor with channels last, if `value` is that tensor with channels first: the copy transposes as well."""
        chain: list[Kernel] = []
        while (maker := self.kernels.maker(value)) is not None and self.kernels.only_reader(value) is (chain[-1] if chain else reader):
            chain.append(maker)
            value = maker.inputs[0]
            if maker.operator == "Transpose" and list(maker.node.attributes.get_ints("perm", ())) in _CHANNELS_FIRST:
                for each in chain:
                    self.kernels.remove(each)
                return value
            if maker.operator not in VIEWS:
                break
        return chain[0].outputs[0] if chain else value

    def _padded(self, value: ir.Value) -> ir.Value:
        """A tensor of whole blocks."""
        batch, channels, *others = self.kernels.shapes.sizes(value) or (0, 0)
        return self.kernels.shapes.like(value, (batch, -(-channels // _BLOCK) * _BLOCK, *others))

    def _replace(self, kernel: Kernel, inputs: Sequence[ir.Value]) -> None:
        """Makes a kernel read blocked copies of `inputs`, and make a blocked tensor."""
        (output,) = kernel.outputs
        if self.kernels.shapes.sizes(output) is None or any(self.kernels.shapes.sizes(value) is None for value in inputs):
            return
        blocked = {value: self._as_blocks(kernel, value) for value in inputs}
        self.kernels.remove(kernel)
        kernel.inputs = [blocked.get(value, value) for value in kernel.inputs]
        self._blocked[output] = self._padded(output)
        kernel.outputs = [self._blocked[output]]
        self.kernels.add(kernel)

    def restore(self) -> None:
        """Copies back what kernels read that know no blocks."""
        for value, blocked in self._blocked.items():
            maker = self.kernels.maker(blocked)
            if maker is not None and (self.kernels.readers(value) or value in self.kernels.outputs):
                self.kernels.new(maker.node, "ReorderOutput", [blocked], [value])
