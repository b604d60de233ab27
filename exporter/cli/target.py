"""The target of `onnxplain export`: the model and its example inputs, from the user's code."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import difflib
import importlib
import importlib.util
import inspect
import pathlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click
import torch

from onnxplain.diagnostics import Evidence, Interruption, Location, OwnProcess, Region, describe, described_error, excerpt
from onnxplain.source import locations
from onnxplain.triage import LIBRARIES, TriageError, load_of_library

from .nearest import hint

_EXPECTED = "a torch.nn.Module or (model, args, kwargs, dynamic_shapes), of which only the model is required"


class TargetError(click.ClickException):
    """The target does not exist, the user's code fails, or it returns something other than a model."""

    exit_code = 2


@dataclasses.dataclass(frozen=True)
class Target:
    """A model and its example inputs, which `onnxplain.export` checks.

    Attributes:
        model: The model.
        args: Positional example inputs.
        kwargs: Keyword example inputs.
        dynamic_shapes: The dynamic dims.
        definition: The line that defines the target.
    """

    model: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any]
    args: Any
    kwargs: Any
    dynamic_shapes: Any
    definition: Location | None


def load(source: str, name: str, *, arguments: Mapping[str, Any] | None = None, with_inputs: bool = False) -> Target:
    """Loads `name` from `source`, the path of a Python file, a module or a library, and calls it if it is a function.

    With inputs from elsewhere, the target needs none, and a function that takes arguments is itself the model.

    Raises:
        TargetError: The target does not exist, the user's code raised an exception, or the result is not a model. Or the user's code has
            forked this process.
    """
    target, process = f"{source}:{name}", OwnProcess()
    if source in LIBRARIES:
        return _of_library(source, name)
    module = _load_file(source) if source.endswith(".py") else _load_module(source)
    # NOTE: to look at a value may run code of its class, such as `__getattribute__`.
    with users_code(f"{target} could not be looked at"):
        value = _lookup(module, source, name)
        if not isinstance(value, torch.nn.Module | torch.export.ExportedProgram) and callable(value):
            value = value if with_inputs and _takes_arguments(value) else _call(value, target, arguments or {})
        if not process.is_here:
            raise TargetError(f"{target} has forked this process, and the command goes on only in the one that began it.")
        return _checked(value, target, _definition(module, name), with_inputs=with_inputs)


def _of_library(library: str, name: str) -> Target:
    with users_code(f"{library}:{name} could not be made"):
        try:
            built = load_of_library(library, name)
        except TriageError as error:
            raise TargetError(str(error)) from error
    return Target(built.model, built.args, built.kwargs, built.dynamic_shapes, built.definition)


def _load_file(source: str) -> types.ModuleType:
    path = pathlib.Path(source).absolute()
    if not path.is_file():
        raise TargetError(f"There is no file {source}.")
    # NOTE: inspect and pickle look up classes by module name, and the file may have the name of an imported module.
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_as_target"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[name] = module
    with users_code(f"{source} could not be loaded"):
        spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> types.ModuleType:
    sys.path.insert(0, str(pathlib.Path.cwd()))
    # NOTE: a module that is not there may be a library with another name.
    near = "" if importlib.util.find_spec(name.partition(".")[0]) else hint(name, LIBRARIES)
    with users_code(f"The module {name} could not be loaded", near):
        return importlib.import_module(name)


def _lookup(module: types.ModuleType, source: str, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            near = difflib.get_close_matches(part, dir(value), n=1)
            raise TargetError(f"There is no {name} in {source}.{f' Did you mean {near[0]}?' if near else ''}")
        value = getattr(value, part)
    return value


def _call(function: Any, target: str, arguments: Mapping[str, Any]) -> Any:
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError as error:
        raise TargetError(f"onnxplain calls {target} with{_told_arguments(arguments)}: {error}.") from error
    except ValueError:
        pass  # Functions written in C may have no signature.
    with users_code(f"{target} raised an exception"):
        return function(**arguments)


def _told_arguments(arguments: Mapping[str, Any]) -> str:
    return f" the arguments {', '.join(arguments)}" if arguments else "out arguments"


def _takes_arguments(value: Any) -> bool:
    try:
        inspect.signature(value).bind()
    except (TypeError, ValueError):
        return not isinstance(value, type)
    return False


def _checked(value: Any, target: str, definition: Location | None, *, with_inputs: bool) -> Target:
    model, *rest = list(value) if isinstance(value, tuple) and value else [value]
    if with_inputs and callable(model) and not isinstance(model, type):
        return Target(model, (), None, None, definition)
    if not isinstance(model, torch.nn.Module | torch.export.ExportedProgram) or len(rest) > 3:
        raise TargetError(f"{target} is or returns {_told(value)}. Expected {_EXPECTED}.")
    missing: tuple[Any, ...] = ((), None, None)[len(rest) :]
    args, kwargs, dynamic_shapes = (*rest, *missing)
    if not rest and isinstance(model, torch.nn.Module) and (parameters := inspect.signature(model.forward).parameters):
        raise TargetError(
            f"{target} has no example inputs, but forward takes {', '.join(map(str, parameters.values()))}. "
            "Describe them with --input, or let the target be a function that returns (model, args)."
        )
    return Target(model, args, kwargs, dynamic_shapes, definition)


def _told(value: Any) -> str:
    """The type of `value`; of a tuple, those of its items."""
    return f"({', '.join(map(_told, value))})" if isinstance(value, tuple) else type(value).__name__


def _definition(module: types.ModuleType, name: str) -> Location | None:
    """The line of the module that binds `name`; the whole file if no plain statement binds it."""
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py"):
        return None
    for statement in reversed(ast.parse(pathlib.Path(file).read_bytes()).body):
        match statement:
            case ast.FunctionDef(name=bound) | ast.ClassDef(name=bound) if bound == name:
                return Location(file, Region(statement.lineno))
            case ast.Assign(targets=[ast.Name(id=bound)]) | ast.AnnAssign(target=ast.Name(id=bound)) if bound == name:
                return Location(file, Region(statement.lineno))
    return Location(file)


@contextlib.contextmanager
def users_code(failure: str, hint: str = "") -> Iterator[None]:
    """Turns an exception of the user's code into a message that shows its line. A hint ends its first line."""
    try:
        yield
    except (click.ClickException, KeyboardInterrupt, Interruption):
        raise
    except BaseException as error:
        # NOTE: whatever the user's code raises or exits with, there is no model.
        lines = [f"{failure}: {described_error(error)}{hint and f'.{hint}'}"]
        evidence = _evidence(error)
        if evidence.location:
            lines += ["".join(text for text, _ in line) for line in excerpt(evidence.location, "")]
            lines += [f"   = called from: {describe(frame)}" for frame in reversed(evidence.stack[:-1])]
        raise TargetError("\n".join(lines)) from error


def _evidence(error: BaseException) -> Evidence:
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return Evidence(Location(error.filename, Region(error.lineno, error.offset or None)))
    return locations.at_exception(error)
