"""Arguments of an export: each has the right type, or an `InvalidArgument` names it, what was expected and what came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

import torch

from onnxplain.diagnostics import InvalidArgument


def checked(argument: str, value: Any, *types: type) -> Any:
    """`value`, which is of one of `types`."""
    if not isinstance(value, types):
        expected = " or ".join("None" if each is NoneType else each.__name__ for each in types)
        raise InvalidArgument(f"{argument}: expected {expected}, got {type(value).__name__}: {value!r}")
    return value


def checked_choice(argument: str, value: object, choices: Sequence[str]) -> str:
    """`value`, which is one of `choices`."""
    if value not in choices:
        raise InvalidArgument(f"{argument}: expected {' or '.join(map(repr, choices))}, got {value!r}")
    return str(value)


def checked_names(argument: str, names: Sequence[str] | None) -> list[str]:
    """A list of names; empty for None."""
    for name in checked(argument, names, list, tuple, NoneType) or ():
        checked(argument, name, str)
    return list(names or ())


def checked_model(model: Any) -> Any:
    """A module, a function, or what torch.export has captured."""
    if isinstance(model, type) or not (callable(model) or isinstance(model, torch.export.ExportedProgram)):
        raise InvalidArgument(f"model: expected a torch.nn.Module, a function or an ExportedProgram, got {model!r}")
    return model


def checked_subject(name: str) -> str:
    """What the log calls a model."""
    subject = str(checked("name", name, str))
    if not subject.isprintable() or not subject.strip() or set(subject) & set("/\\"):
        raise InvalidArgument(f"name: expected a word or two without slashes, got {subject!r}")
    return subject


def checked_shapes(dynamic_shapes: Any) -> Any:
    """A structure that says which dims are dynamic."""
    # NOTE: torch's collections of shapes, and of further examples, have a method of that name.
    if dynamic_shapes is True or isinstance(dynamic_shapes, Mapping | list | tuple | None) or hasattr(dynamic_shapes, "dynamic_shapes"):
        return dynamic_shapes
    raise InvalidArgument(f"dynamic_shapes: expected a dict, a tuple, a list, True or None, got {dynamic_shapes!r}")
