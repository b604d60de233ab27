"""The weights of an ONNX model: which initializers they are, how large, where their data is, and a model without them."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO

import onnx_ir as ir
import torch
from onnx_ir.tensor_adapters import TorchTensor

from onnxplain.diagnostics import InvalidArgument

from . import checkpoint
from .checkpoint import Stored

PROTOBUF_LIMIT = 2**31 - 1
"""Bytes that one protobuf message can have."""


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
        super().__init__(_as_real(tensor.detach()), name=name)
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
        return self.stored is not None or not (self._raw.is_meta or hasattr(self._raw, "fake_mode"))

    def give(self, data: torch.Tensor | Stored) -> None:
        """Other data, of the same shape and dtype."""
        if isinstance(data, Stored):
            self.stored = data.as_real()
        else:
            self.stored, self._raw = None, _as_real(data.detach())

    def tofile(self, file: BinaryIO) -> None:
        """Writes the data; block by block what comes from another file."""
        if self.stored is not None and self.stored.is_contiguous:
            self.stored.write_to(file)
        else:
            super().tofile(file)


def _as_real(tensor: torch.Tensor) -> torch.Tensor:
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
        raise InvalidArgument(f"{expected}: there is no data of {_listed(missing)}; give the weights with apply_weights")
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


def apply(model: ir.Model, source: object, known: Iterable[str], *, strict: bool) -> None:
    """Gives the weights of a model their data; all of it fits, or nothing is done.

    Args:
        model: The model.
        source: Tensors by their names in the state dict, or the path of a checkpoint.
        known: Names that the state dict of the PyTorch model has.
        strict: Whether all weights have to be given, and nothing else.

    Raises:
        InvalidArgument: Names, shapes or dtypes do not fit, or the checkpoint cannot be read.
    """
    if not isinstance(strict, bool):
        raise InvalidArgument(f"strict: expected a bool, got {strict!r}")
    given = _given(source)
    weights = sources(model)
    names = {name: weight for weight in weights for name in weight.names}
    problems = [_misfit(name, weight, given[name]) for name, weight in names.items() if name in given]
    chosen = {id(weight): [name for name in weight.names if name in given] for weight in weights}
    problems += [
        f"{first!r} and {other!r} are one weight of the model, but differ"
        for first, *others in filter(None, chosen.values())
        for other in others
        if not _equal(given[first], given[other])
    ]
    if strict:
        problems += [
            f"{weight.names[0]!r} is in no state dict, and has no data; within onnxplain.enable_fake_mode() it keeps what it has"
            for weight in weights
            if not weight.in_state and not weight.has_data and not chosen[id(weight)]
        ]
        missing = [weight.names[0] for weight in weights if weight.in_state and not chosen[id(weight)]]
        unexpected = [name for name in given if name not in names and name not in set(known)]
        problems += [f"missing: {_listed(missing)}"] if missing else []
        problems += [f"unexpected: {_listed(unexpected)}"] if unexpected else []
    problems = [problem for problem in problems if problem]
    if problems:
        raise InvalidArgument(f"state_dict: expected the weights of the model; {_listed(problems, '; ')}")
    for weight in weights:
        if chosen[id(weight)]:
            weight.give(given[chosen[id(weight)][0]])


def _given(source: object) -> Mapping[str, torch.Tensor | Stored]:
    if isinstance(source, str | os.PathLike):
        return checkpoint.read("state_dict", pathlib.Path(source))
    if not isinstance(source, Mapping):
        raise InvalidArgument(f"state_dict: expected a dict of tensors or a path, got {type(source).__name__}: {source!r}")
    for name, tensor in source.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise InvalidArgument(f"state_dict: expected a tensor for each name, got {type(tensor).__name__} for {name!r}")
    return source


def _misfit(name: str, weight: Weight, data: torch.Tensor | Stored) -> str:
    """What is wrong with data for a weight; nothing if it fits."""
    if isinstance(data, torch.Tensor) and (data.is_meta or hasattr(data, "fake_mode")):
        return f"{name!r} has no data"
    like = data.as_real() if isinstance(data, Stored) else _as_real(data)
    if tuple(like.shape) != tuple(weight.like.shape):
        return f"{name!r} has the shape {list(weight.like.shape)}, got {list(like.shape)}"
    return "" if like.dtype is weight.like.dtype else f"{name!r} has the dtype {weight.like.dtype}, got {like.dtype}"


def _equal(first: torch.Tensor | Stored, other: torch.Tensor | Stored) -> bool:
    if isinstance(first, Stored) and isinstance(other, Stored):
        return first == other or torch.equal(first.tensor(), other.tensor())
    assert isinstance(first, torch.Tensor)
    assert isinstance(other, torch.Tensor)
    return first is other or (first.shape == other.shape and bool(torch.equal(first.detach().cpu(), other.detach().cpu())))


def _listed(items: Sequence[str], separator: str = ", ") -> str:
    """Five of them, and how many more there are."""
    more = f"{separator}and {len(items) - 5} more" if len(items) > 5 else ""
    return separator.join(items[:5]) + more


def is_stored(tensor: Weight | Computed) -> bool:
    """Whether a part of its data lies in a file."""
    return any(map(is_stored, tensor.sources)) if isinstance(tensor, Computed) else tensor.stored is not None


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


def restored(model: ir.Model, which: Callable[[Computed], bool]) -> ir.Model:
    """A copy in which operators compute what would be computed when it is written.

    Its weights have the names, the layouts and the order of the state dict.

    Args:
        model: The model; it stays as it is. The copy shares its tensors.
        which: Which computed weights operators are put back for.
    """
    copy = model.clone()
    graph = copy.graph
    nodes: list[ir.Node] = []
    made: dict[int, ir.Value] = {}
    taken = {value.name for node in graph.all_nodes() for value in node.outputs} | {each.name for each in graph.inputs}

    def unused(wanted: str) -> str:
        while wanted in taken or wanted in graph.initializers:
            wanted += "_"
        taken.add(wanted)
        return wanted

    def initializer(value: ir.Value) -> ir.Value:
        """`value`, which the original has or had as an initializer, in the copy."""
        known = graph.initializers.get(value.name or "")
        if known is None or known.const_value is not value.const_value:
            assert value.const_value is not None
            known = ir.Value(name=unused(value.name or ""), shape=value.shape, type=value.type, const_value=value.const_value)
            graph.register_initializer(known)
        return known

    def compute(value: ir.Value) -> ir.Value:
        tensor = value.const_value
        if not isinstance(tensor, Computed) or not which(tensor):
            return initializer(value)
        if id(tensor) not in made:
            inner: dict[int, ir.Value] = {}
            for node in tensor.operators():
                for index, given in enumerate(node.inputs):
                    if given is not None:
                        node.replace_input_with(index, inner[id(given)] if id(given) in inner else compute(given))
                output = node.outputs[0]
                inner[id(output)] = output
                output.name = unused(f"{value.name}.{node.op_type.lower()}")
                node.name = f"{node.op_type}_{output.name}"
                nodes.append(node)
            made[id(tensor)] = nodes[-1].outputs[0]
            made[id(tensor)].shape, made[id(tensor)].type = value.shape, value.type
        return made[id(tensor)]

    for value in of(copy):
        if isinstance(value.const_value, Computed) and which(value.const_value):
            graph.initializers.pop(value.name)  # type: ignore[arg-type]
            ir.convenience.replace_all_uses_with(value, compute(value))
    if nodes:
        graph.insert_before(graph[0], nodes)
    values = sorted(graph.initializers.values(), key=lambda value: getattr(value.const_value, "place", -1))
    graph.initializers.clear()
    for value in values:
        graph.register_initializer(value)
    return copy
