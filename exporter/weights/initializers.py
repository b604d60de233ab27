"""Which initializers of a model are weights, how large they are, whether they have data, and the model without them."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator, Sequence

import onnx_ir as ir
from onnx_ir.tensor_adapters import TorchTensor

from onnxplain.diagnostics import InvalidArgument

from .tensors import Computed, Weight

PROTOBUF_LIMIT = 2**31 - 1
"""The largest size of a protobuf message, in bytes."""

_LISTED = 5
"""How many items a message lists before it counts the rest."""


def of(model: ir.Model) -> list[ir.Value]:
    """The initializers that are weights. The other initializers are constants of the graph."""
    return [value for value in model.graph.initializers.values() if isinstance(value.const_value, TorchTensor)]


def has_data(value: ir.Value) -> bool:
    """False for a weight that was made in fake mode or on the meta device and has not been given data yet."""
    return not isinstance(value.const_value, Weight | Computed) or value.const_value.has_data


def names_without_data(model: ir.Model) -> list[str]:
    """The names of the weights that have no data."""
    return [weight.names[0] for weight in sources(model) if not weight.has_data]


def check_data(model: ir.Model, expected: str) -> None:
    """Checks that all weights have data and that the files with data have not changed.

    Args:
        model: The model.
        expected: Begins the message of the exception: an argument and what it has to be.

    Raises:
        InvalidArgument: A weight has no data, or a file is gone or differs from what `apply_weights` found.
    """
    missing = names_without_data(model)
    if missing:
        raise InvalidArgument(f"{expected}: there is no data of {listed(missing)}; give the weights with apply_weights")
    for stored in {weight.stored.path: weight.stored for weight in sources(model) if weight.stored is not None}.values():
        stored.check()


def lacks_all_data(model: ir.Model) -> bool:
    """Whether the model has weights in its state dict, and none of them has data."""
    with_data = [weight.has_data for weight in sources(model) if weight.in_state]
    return bool(with_data) and not any(with_data)


def files_of(model: ir.Model) -> list[pathlib.Path]:
    """The files that hold the data of weights."""
    return list(dict.fromkeys(weight.stored.path for weight in sources(model) if weight.stored is not None))


def sources(model: ir.Model) -> list[Weight]:
    """The model's own weights: those that are initializers, and those that initializers are computed from."""
    found: dict[int, Weight] = {}
    left = [value.const_value for value in of(model)]
    while left:
        tensor = left.pop()
        if isinstance(tensor, Computed):
            left.extend(tensor.sources)
        elif isinstance(tensor, Weight):
            found[id(tensor)] = tensor
    return list(found.values())[::-1]


def size_of(value: ir.Value) -> int:
    """The size of one initializer in bytes."""
    return value.const_value.nbytes if value.const_value is not None else 0


def total_bytes(model: ir.Model) -> int:
    """The size of all weights together in bytes."""
    return sum(map(size_of, of(model)))


def in_state_dict(model: ir.Model) -> list[ir.Value]:
    """The weights that a model without weights leaves out: those that a state dict provides, and those that have no data."""
    return [value for value in of(model) if not isinstance(value.const_value, Weight) or value.const_value.in_state or not has_data(value)]


@contextlib.contextmanager
def set_aside(model: ir.Model, values: list[ir.Value], *, as_inputs: bool) -> Iterator[None]:
    """Takes initializers out of the model; puts them back at the end.

    Args:
        model: The model.
        values: The initializers to take out.
        as_inputs: Whether they become inputs of the graph in the meantime.
    """
    graph = model.graph
    inputs = len(graph.inputs)
    initializers = dict(graph.initializers)
    try:
        for value in values:
            graph.initializers.pop(value.name)  # type: ignore[arg-type]  # a registered initializer has a name
        if as_inputs:
            graph.inputs.extend(values)
        yield
    finally:
        while len(graph.inputs) > inputs:
            graph.inputs.pop()
        graph.initializers.clear()
        for value in initializers.values():
            graph.register_initializer(value)


def listed(items: Sequence[str], separator: str = ", ") -> str:
    """The first five items, and how many more there are."""
    more = f"{separator}and {len(items) - _LISTED} more" if len(items) > _LISTED else ""
    return separator.join(items[:_LISTED]) + more
