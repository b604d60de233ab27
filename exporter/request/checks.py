"""Arguments of an export: each has the right type, or an `InvalidArgument` names it, what was expected and what came."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any

import torch

from onnxplain.diagnostics import InvalidArgument, is_unicode
from onnxplain.torch_internals import modules
from onnxplain.torch_internals.python_values import is_a

_DEEPEST = 100
"""How many containers of inputs may lie in one another. Functions of torch call themselves for each."""


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


def unknown_argument(function: Callable[..., object], name: str) -> InvalidArgument:
    """The error about an argument that `function` does not have, with the argument that was perhaps meant."""
    names = [each.name for each in inspect.signature(function).parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
    # NOTE: less alike than usual, so that `opset` offers `opset_version`.
    near = difflib.get_close_matches(name, [each for each in names if not each.startswith("_")], n=1, cutoff=0.5)
    meant = f". Did you mean {near[0]!r}?" if near else ""
    return InvalidArgument(f"{function.__name__}() got an unexpected keyword argument {name!r}{meant}")


def checked_names(argument: str, names: Sequence[str] | None) -> list[str]:
    """A list of names; empty for None."""
    for name in checked(argument, names, list, tuple, NoneType) or ():
        checked(argument, name, str)
    return list(names or ())


def checked_model(model: Any) -> Any:
    """A module, a function, or what torch.export has captured."""
    if isinstance(model, type) or not (callable(model) or isinstance(model, torch.export.ExportedProgram)):
        raise InvalidArgument(f"model: expected a torch.nn.Module, a function or an ExportedProgram, got {model!r}")
    if is_a(model, torch.nn.Module):
        _check_parts(model)
    return model


def _check_parts(model: torch.nn.Module) -> None:
    """Refuses parts that ONNX has no names for, weights that do not exist yet, and what is no module among the submodules."""
    for path, module in modules.named_modules(model):
        inside = f" of the module {path!r}" if path else ""
        for name, child in modules.children(module).items():
            if child is not None and not is_a(child, torch.nn.Module):
                raise InvalidArgument(f"model: expected a torch.nn.Module as the submodule {name!r}{inside}, got {type(child).__name__}")
        weights = {**modules.parameters(module), **modules.buffers(module)}
        for name, value in weights.items():
            if value is not None and torch.nn.parameter.is_lazy(value):
                told = "a lazy module makes it in its first call: call the model once before the export"
                raise InvalidArgument(f"model: expected weights with values, got {name!r}{inside} without: {told}")
        for name in {**weights, **modules.children(module)}:
            if isinstance(name, str) and (not name or not is_unicode(name)):
                raise InvalidArgument(
                    f"model: expected names of one or more characters, without lone surrogates, for all parts{inside}, got {name!r}"
                )


def check_inputs(value: object, around: tuple[int, ...] = ()) -> None:
    """Raises `InvalidArgument` for lists and dicts among the inputs that contain themselves."""
    if type(value) not in (list, tuple, dict):
        return
    if id(value) in around:
        raise InvalidArgument(f"args: expected inputs that do not contain themselves, got a {type(value).__name__} that does")
    if len(around) >= _DEEPEST:
        raise InvalidArgument(f"args: expected inputs of at most {_DEEPEST} lists and dicts within one another, got more")
    for each in value.values() if isinstance(value, dict) else value:  # type: ignore[attr-defined]  # the type is one of three
        check_inputs(each, (*around, id(value)))


def checked_subject(name: str) -> str:
    """What the log calls a model."""
    subject = str(checked("name", name, str))
    if not subject.isprintable() or not subject.strip() or set(subject) & set("/\\"):
        raise InvalidArgument(f"name: expected a word or two without slashes, got {subject!r}")
    return subject


def checked_sizes(sizes: int | Sequence[Mapping[str, int]]) -> int | tuple[Mapping[str, int], ...]:
    """`sizes` if it is a number of sizes or mappings of names to sizes. Raises InvalidArgument otherwise."""
    if type(sizes) is int and sizes >= 0:
        return sizes
    if isinstance(sizes, Sequence) and not isinstance(sizes, str) and all(map(_names_sizes, sizes)):
        return tuple(map(dict, sizes))
    raise InvalidArgument(f"verify_sizes: expected an int from 0 on, or mappings such as [{{'batch': 7}}], got {sizes!r}")


def _names_sizes(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) and type(size) is int and size >= 0 for name, size in value.items())


def checked_shapes(dynamic_shapes: Any) -> Any:
    """A structure that says which dims are dynamic."""
    # NOTE: torch's collections of shapes, and of further examples, have a method of that name.
    if dynamic_shapes is True or isinstance(dynamic_shapes, Mapping | list | tuple | None) or hasattr(dynamic_shapes, "dynamic_shapes"):
        return dynamic_shapes
    raise InvalidArgument(f"dynamic_shapes: expected a dict, a tuple, a list, True or None, got {dynamic_shapes!r}")
