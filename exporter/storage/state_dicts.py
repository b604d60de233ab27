"""Gives the weights of a model their data: from a state dict, or from a checkpoint."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable, Mapping

import onnx_ir as ir
import torch

from onnxplain import weights
from onnxplain.diagnostics import InvalidArgument
from onnxplain.torch_internals.fake_tensors import has_no_data
from onnxplain.weights import Stored, Weight, as_real

from .checkpoint import read


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
    initializers = weights.sources(model)
    names = {name: weight for weight in initializers for name in weight.names}
    problems = [_misfit(name, weight, given[name]) for name, weight in names.items() if name in given]
    chosen = {id(weight): [name for name in weight.names if name in given] for weight in initializers}
    problems += [
        f"{first!r} and {other!r} are one weight of the model, but differ"
        for first, *others in filter(None, chosen.values())
        for other in others
        if not _equal(given[first], given[other])
    ]
    if strict:
        problems += [
            f"{weight.names[0]!r} is in no state dict, and has no data; within onnxplain.enable_fake_mode() it keeps what it has"
            for weight in initializers
            if not weight.in_state and not weight.has_data and not chosen[id(weight)]
        ]
        missing = [weight.names[0] for weight in initializers if weight.in_state and not chosen[id(weight)]]
        unexpected = [name for name in given if name not in names and name not in set(known)]
        problems += [f"missing: {weights.listed(missing)}"] if missing else []
        problems += [f"unexpected: {weights.listed(unexpected)}"] if unexpected else []
    problems = [problem for problem in problems if problem]
    if problems:
        raise InvalidArgument(f"state_dict: expected the weights of the model; {weights.listed(problems, '; ')}")
    for weight in initializers:
        if chosen[id(weight)]:
            weight.give(given[chosen[id(weight)][0]])


def _given(source: object) -> Mapping[str, torch.Tensor | Stored]:
    if isinstance(source, str | os.PathLike):
        return read("state_dict", pathlib.Path(source))
    if not isinstance(source, Mapping):
        raise InvalidArgument(f"state_dict: expected a dict of tensors or a path, got {type(source).__name__}: {source!r}")
    for name, tensor in source.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise InvalidArgument(f"state_dict: expected a tensor for each name, got {type(tensor).__name__} for {name!r}")
    return source


def _misfit(name: str, weight: Weight, data: torch.Tensor | Stored) -> str:
    """What is wrong with data for a weight; nothing if it fits."""
    if isinstance(data, torch.Tensor) and has_no_data(data):
        return f"{name!r} has no data"
    like = data.as_real() if isinstance(data, Stored) else as_real(data)
    if tuple(like.shape) != tuple(weight.like.shape):
        return f"{name!r} has the shape {list(weight.like.shape)}, got {list(like.shape)}"
    return "" if like.dtype is weight.like.dtype else f"{name!r} has the dtype {weight.like.dtype}, got {like.dtype}"


def _equal(first: torch.Tensor | Stored, other: torch.Tensor | Stored) -> bool:
    if isinstance(first, Stored) and isinstance(other, Stored):
        return first == other or torch.equal(first.tensor(), other.tensor())
    assert isinstance(first, torch.Tensor)
    assert isinstance(other, torch.Tensor)
    return first is other or (first.shape == other.shape and bool(torch.equal(first.detach().cpu(), other.detach().cpu())))
