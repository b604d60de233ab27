"""The sizes of a model's tensors where dynamic dims have given sizes, and how they grow with these dims."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import onnx_ir as ir
from onnx_ir.passes import common

from .dims import names_in, product, size_of

_Shape = Sequence[int | ir.SymbolicDim]


class Shapes:
    """The shapes of a model's tensors.

    Args:
        model: The model, which does not change.
        sizes: The size of each dynamic dim, by its name.
        hidden: Tensors that count as empty.

    Attributes:
        unknown: Tensors whose number of elements only a run tells, as far as somebody asked for their bytes.
    """

    def __init__(self, model: ir.Model, sizes: Mapping[str, int], hidden: Collection[ir.Value] = ()) -> None:
        self.unknown: dict[ir.Value, None] = {}
        self._model = model
        self._hidden = hidden
        self._made: set[ir.Value] = set()
        self._is_dynamic = any(isinstance(dim, ir.SymbolicDim) for value in model.graph.inputs for dim in value.shape or ())
        self._found = dict(zip(_values(model), _inferred(model, sizes), strict=True))
        self._found.update(
            (value, (value.shape.dims, value.dtype)) for value in model.graph.initializers.values() if value.shape is not None
        )

    def bytes_of(self, value: ir.Value) -> int | None:
        """The bytes of a tensor; None if only a run tells them."""
        if value in self._hidden:
            return 0
        shape, dtype = self._found.get(value, (None, None))
        if shape is None or dtype is None or not all(isinstance(size, int) for size in shape):
            self.unknown[value] = None
            return None
        return math.ceil(math.prod(size for size in shape if isinstance(size, int)) * dtype.bitwidth / 8)

    def width(self, value: ir.Value) -> int:
        """The bytes of an element; 0 if the dtype is unknown."""
        dtype = self._found.get(value, (None, None))[1]
        return 0 if dtype is None else math.ceil(dtype.bitwidth / 8)

    def sizes(self, value: ir.Value) -> tuple[int, ...] | None:
        """The shape of a tensor; None if only a run tells it."""
        shape = self._found.get(value, (None, None))[0]
        known = None if shape is None else tuple(size for size in shape if isinstance(size, int))
        return known if shape is not None and known is not None and len(known) == len(shape) else None

    def like(self, value: ir.Value, sizes: Sequence[int]) -> ir.Value:
        """A tensor with the name, dtype and shape of another, that takes memory for other sizes."""
        made = ir.Value(name=value.name, type=value.type, shape=value.shape)
        self._found[made] = (sizes, self._found[value][1])
        self._made.add(made)
        return made

    def key(self, value: ir.Value) -> tuple[object, ...] | None:
        """What two tensors have in common whose shapes and bytes are equal for all sizes; None if these are not known."""
        dtype, shape = self._found.get(value, (None, None))[1], self.sizes(value) if value in self._made else self._named(value)
        return None if dtype is None or shape is None else (dtype.bitwidth, *map(_plain, shape))

    def text(self, value: ir.Value) -> str:
        """The shape of a tensor, with the names of dynamic dims."""
        shape = self._named(value) or self._found[value][0]
        return "" if shape is None else f"[{', '.join(str(_plain(dim)) for dim in shape)}]"

    def growth(self, value: ir.Value) -> str:
        """The product of dynamic dims that a tensor grows with; empty if its size is constant, or its shape has no names."""
        return product(self._named(value) or ())

    def _named(self, value: ir.Value) -> _Shape | None:
        """The shape with the names of dynamic dims, if there is one without unknown dims."""
        if not self._is_dynamic:
            return self._found[value][0] if value in self._found else None
        shape = value.shape if value.shape is not None else self._symbolic.get(value)
        return None if shape is None or any(dim.value is None for dim in shape if isinstance(dim, ir.SymbolicDim)) else shape.dims

    @functools.cached_property
    def _symbolic(self) -> dict[ir.Value, ir.Shape | None]:
        """The shapes that follow from those that the model names."""
        # NOTE: the inference invents names for sizes that it does not know.
        inferred = (value.shape for value in _values(_infer(self._model.clone())))
        known = (None if shape is None or any("unk__" in str(dim) for dim in shape) else shape for shape in inferred)
        return dict(zip(_values(self._model), known, strict=True))


def dims_of(model: ir.Model) -> list[str]:
    """The names of the dynamic dims of the inputs, those in expressions included."""
    return sorted({name for value in model.graph.inputs for dim in value.shape or () for name in names_in(dim)})


def bound(model: ir.Model, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The sizes of the model's dynamic dims for inputs of these shapes.

    Args:
        model: The model.
        shapes: The shapes of inputs, by their names.
    """
    pairs = [
        (dim.value, size)
        for value in model.graph.inputs
        for dim, size in zip(value.shape or (), shapes.get(value.name or "", ()), strict=False)
        if isinstance(dim, ir.SymbolicDim) and dim.value is not None
    ]
    found = {name: size for name, size in pairs if name.isidentifier()}
    for name, size in pairs:
        if name.isidentifier():
            continue
        # NOTE: for a dim such as `2*half`, `half` need not be the size of a dim. torch's derived dims are linear.
        dim = ir.SymbolicDim(name)
        for symbol in names_in(dim) - found.keys():
            at_0, at_1 = (size_of(dim, {**found, symbol: each}) for each in (0, 1))
            if at_0 is not None and at_1 is not None and at_0 != at_1:
                found[symbol] = (size - at_0) // (at_1 - at_0)
    return found


def _inferred(model: ir.Model, sizes: Mapping[str, int]) -> Iterator[tuple[_Shape | None, ir.DataType | None]]:
    """The shape and the dtype of each value where dynamic dims have these sizes."""
    clone = model.clone()
    for value in _values(clone):
        if value.shape is not None and not all(isinstance(dim, int) for dim in value.shape):
            known = [size_of(dim, sizes) for dim in value.shape]
            value.shape = ir.Shape(known) if value.producer() is None or None not in known else None
    _infer(clone)
    return ((None if value.shape is None else value.shape.dims, value.dtype) for value in _values(clone))


def _infer(model: ir.Model) -> ir.Model:
    """Infers the shapes of all values, in place."""
    common.ShapeInferencePass(check_type=False, strict_mode=False, data_prop=True)(model)
    return model


def _values(model: ir.Model) -> Iterator[ir.Value]:
    """Every value of the model but the weights, always in the same order. An inference changes the order of weights."""
    yield from model.graph.inputs
    for node in model.graph.all_nodes():
        yield from node.outputs
    for graph in model.graph.subgraphs():
        yield from graph.inputs


def _plain(dim: int | ir.SymbolicDim) -> int | str | None:
    return dim.value if isinstance(dim, ir.SymbolicDim) else dim
