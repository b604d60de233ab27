"""Gives the weights of a model their data: from a state dict or from a checkpoint."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence

import onnx_ir as ir
import torch

from onnxplain.diagnostics import InvalidArgument
from onnxplain.torch_internals.fake_tensors import has_no_data

from .checkpoint import read
from .initializers import listed, sources
from .stored import Stored
from .tensors import Weight, as_real

_Data = torch.Tensor | Stored


def apply(model: ir.Model, source: object, known: Iterable[str], *, strict: bool) -> None:
    """Gives the weights of a model their data. Either all data fits, or nothing changes.

    Args:
        model: The model.
        source: Tensors by their names in the state dict, or the path of a checkpoint.
        known: The names in the PyTorch model's state dict; the exported model may have fewer weights.
        strict: Whether `source` has to contain all weights and nothing else.

    Raises:
        InvalidArgument: Names, shapes or dtypes do not fit, or the checkpoint cannot be read.
    """
    if not isinstance(strict, bool):
        raise InvalidArgument(f"strict: expected a bool, got {strict!r}")
    given = _given(source)
    model_weights = sources(model)
    chosen = [[name for name in weight.names if name in given] for weight in model_weights]
    problems = [*_misfits(model_weights, given), *_contradictions(chosen, given)]
    if strict:
        problems += _incomplete(model_weights, chosen, given, set(known))
    if problems:
        raise InvalidArgument(f"state_dict: expected the weights of the model; {listed(problems, '; ')}")
    for weight, names in zip(model_weights, chosen, strict=True):
        if names:
            weight.give(given[names[0]])


def _given(source: object) -> Mapping[str, _Data]:
    if isinstance(source, str | os.PathLike):
        return read("state_dict", pathlib.Path(source))
    if not isinstance(source, Mapping):
        raise InvalidArgument(f"state_dict: expected a dict of tensors or a path, got {type(source).__name__}: {source!r}")
    for name, tensor in source.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise InvalidArgument(f"state_dict: expected a tensor for each name, got {type(tensor).__name__} for {name!r}")
    return source


def _misfits(model_weights: Sequence[Weight], given: Mapping[str, _Data]) -> list[str]:
    """What is wrong with the data of each weight."""
    found = (_misfit(name, weight, given[name]) for weight in model_weights for name in weight.names if name in given)
    return [problem for problem in found if problem]


def _misfit(name: str, weight: Weight, data: _Data) -> str:
    """What is wrong with `data` for `weight`; an empty text if it fits."""
    if isinstance(data, torch.Tensor) and has_no_data(data):
        return f"{name!r} has no data"
    like = data.as_real() if isinstance(data, Stored) else as_real(data)
    if tuple(like.shape) != tuple(weight.like.shape):
        return f"{name!r} has the shape {list(weight.like.shape)}, got {list(like.shape)}"
    return "" if like.dtype is weight.like.dtype else f"{name!r} has the dtype {weight.like.dtype}, got {like.dtype}"


def _contradictions(chosen: Sequence[Sequence[str]], given: Mapping[str, _Data]) -> list[str]:
    """The names of tied weights that have different data."""
    return [
        f"{names[0]!r} and {other!r} are one weight of the model, but differ"
        for names in chosen
        for other in names[1:]
        if not _equal(given[names[0]], given[other])
    ]


def _incomplete(model_weights: Sequence[Weight], chosen: Sequence[Sequence[str]], given: Mapping[str, _Data], known: set[str]) -> list[str]:
    """Which weights have no data in `given`, and which names in `given` are unknown."""
    absent = [weight for weight, names in zip(model_weights, chosen, strict=True) if not names]
    problems = [
        f"{weight.names[0]!r} is in no state dict and has no data; within onnxplain.enable_fake_mode() it would keep its data"
        for weight in absent
        if not weight.in_state and not weight.has_data
    ]
    missing = [weight.names[0] for weight in absent if weight.in_state]
    names = known.union(*(weight.names for weight in model_weights))
    unexpected = [name for name in given if name not in names]
    problems += [f"missing: {listed(missing)}"] if missing else []
    problems += [f"unexpected: {listed(unexpected)}"] if unexpected else []
    return problems


def _equal(first: _Data, other: _Data) -> bool:
    if isinstance(first, Stored) and isinstance(other, Stored):
        return first == other or torch.equal(first.tensor(), other.tensor())
    assert isinstance(first, torch.Tensor)
    assert isinstance(other, torch.Tensor)
    if has_no_data(first) or has_no_data(other):
        # NOTE: `_misfits` reports them.
        return True
    return first is other or (first.shape == other.shape and bool(torch.equal(first.detach().cpu(), other.detach().cpu())))
