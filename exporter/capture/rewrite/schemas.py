"""Tells from ATen's schemas whether a call in the source returns a tensor."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

import torch

from onnxplain.torch_internals.operators import overloads, schema

_PYTHON_ONLY = frozenset(
    {"bool", "bfloat16", "byte", "cdouble", "cfloat", "char", "cpu", "cuda", "double", "float", "half", "int", "long", "short"}
)
"""Methods of tensors that ATen calls `to`."""
_SYNONYMS = {"axis": "dim", "keepdims": "keepdim"}
"""NumPy's names of keyword arguments, which torch also accepts, by the names in its schemas."""


def returns_tensor(name: str, are_tensors: Sequence[bool], keywords: Collection[str] = ()) -> bool:
    """Whether a method of a tensor, or a function of torch, certainly returns one tensor.

    Args:
        name: Its name, such as `max` in `x.max(1)`.
        are_tensors: Whether each positional argument, including the tensor before the dot, is certainly a tensor.
        keywords: The names of its keyword arguments.
    """
    if name in _PYTHON_ONLY:
        return hasattr(torch.Tensor, name)
    return _by_schema(name, tuple(are_tensors), frozenset(_SYNONYMS.get(each, each) for each in keywords))


@functools.cache
def is_elementwise(name: str) -> bool:
    """Whether a method of a tensor, or a function of torch, computes each element from the elements at its place, and changes nothing."""
    meant = [each for each in overloads(name) if _makes_a_tensor(schema(each))]
    pure = all(torch.Tag.pointwise in each.tags and torch.Tag.nondeterministic_seeded not in each.tags for each in meant)
    return bool(meant) and pure and not name.endswith("_")


def _makes_a_tensor(overload: torch.FunctionSchema) -> bool:
    """Whether `overload` makes a tensor of others, without an argument that takes the result."""
    types = [str(each.type) for each in overload.arguments]
    return (
        "Tensor" in types
        and [str(each.type) for each in overload.returns] == ["Tensor"]
        and not any(each.is_out for each in overload.arguments)
    )


@functools.cache
def _by_schema(name: str, are_tensors: tuple[bool, ...], keywords: frozenset[str]) -> bool:
    meant = [each for each in map(schema, overloads(name)) if _may_be_meant(each, are_tensors, keywords)]
    return bool(meant) and all([str(result.type) for result in each.returns] == ["Tensor"] for each in meant)


def _may_be_meant(overload: torch.FunctionSchema, are_tensors: Sequence[bool], keywords: frozenset[str]) -> bool:
    """Whether `overload` may take these arguments. Arguments of unknown type may fit."""
    given = [each for each in overload.arguments if not each.kwarg_only]
    types = [str(each.type) for each in given]
    if types[:1] == ["List[Tensor]"] and are_tensors[0]:
        return False
    # NOTE: sizes and dims may be separate arguments, as in `x.view(2, 3)`.
    if len(are_tensors) > len(given) and not any(each.startswith("List") for each in types):
        return False
    if not keywords <= {each.name for each in overload.arguments}:
        return False
    required = {each.name for each in overload.arguments if not each.has_default_value()}
    if required - {each.name for each in given[: len(are_tensors)]} - keywords:
        return False
    return all("Tensor" in type for is_tensor, type in zip(are_tensors, types, strict=False) if is_tensor)
