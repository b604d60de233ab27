"""The weights of an ONNX model: which initializers they are, how large, where their data is, and a model without them."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator, Sequence

import onnx_ir as ir
from onnx_ir.tensor_adapters import TorchTensor

from onnxplain.diagnostics import InvalidArgument

from .tensors import Computed, Weight

PROTOBUF_LIMIT = 2**31 - 1
"""Bytes that one protobuf message can have."""


def of(model: ir.Model) -> list[ir.Value]:
    """The initializers that are parameters and buffers; the others are constants that the graph needs."""
    return [value for value in model.graph.initializers.values() if isinstance(value.const_value, TorchTensor)]


def has_data(value: ir.Value) -> bool:
    """False for a weight that was made in fake mode or on the meta device, until it is given some."""
    return not isinstance(value.const_value, Weight | Computed) or value.const_value.has_data


def without_data(model: ir.Model) -> list[str]:
    """The names of the weights that the model lacks the data of."""
    return [weight.names[0] for weight in sources(model) if not weight.has_data]


def check_data(model: ir.Model, expected: str) -> None:
    """Raises `InvalidArgument`, which begins with `expected`, if the model lacks the data of weights, or if their files have changed."""
    missing = without_data(model)
    if missing:
        raise InvalidArgument(f"{expected}: there is no data of {listed(missing)}; give the weights with apply_weights")
    for stored in {weight.stored.path: weight.stored for weight in sources(model) if weight.stored is not None}.values():
        stored.check()


def is_hollow(model: ir.Model) -> bool:
    """Whether the model was made without data, and has been given none."""
    state = [weight.has_data for weight in sources(model) if weight.in_state]
    return bool(state) and not any(state)


def files_of(model: ir.Model) -> list[pathlib.Path]:
    """The files that weights are read from."""
    return list(dict.fromkeys(weight.stored.path for weight in sources(model) if weight.stored is not None))


def sources(model: ir.Model) -> list[Weight]:
    """The weights that the initializers are, or are computed from."""
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
    """Bytes of one initializer."""
    return value.const_value.nbytes if value.const_value is not None else 0


def total_bytes(model: ir.Model) -> int:
    """Bytes of all weights together."""
    return sum(map(size_of, of(model)))


def state(model: ir.Model) -> list[ir.Value]:
    """The initializers that are left out with the weights: what state dicts have, and what has no data."""
    return [value for value in of(model) if not isinstance(value.const_value, Weight) or value.const_value.in_state or not has_data(value)]


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


def listed(items: Sequence[str], separator: str = ", ") -> str:
    """Five of them, and how many more there are."""
    more = f"{separator}and {len(items) - 5} more" if len(items) > 5 else ""
    return separator.join(items[:5]) + more
