"""Turns the arguments of a call of the PyTorch model into the inputs of the exported graph."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, CustomObjArgument, InputKind

from onnxplain.diagnostics import InvalidArgument
from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.python_values import is_a

_OF_ANYTHING = inspect.signature(lambda *args, **kwargs: (args, kwargs))


def signature_of(model: Callable[..., Any] | torch.export.ExportedProgram) -> inspect.Signature | None:
    """The signature of a model; None if Python does not know it. A builtin function without one takes anything."""
    if isinstance(model, torch.export.ExportedProgram):
        return None
    try:
        return inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model)
    except (TypeError, ValueError, AttributeError):
        # NOTE: a scripted module may have no forward.
        return None if isinstance(model, torch.nn.Module) else _OF_ANYTHING


def flat_inputs(
    program: torch.export.ExportedProgram, args: Sequence[Any], kwargs: Mapping[str, Any], forward: inspect.Signature | None = None
) -> list[Any]:
    """The tensors (and dynamic numbers) among the inputs, in the order of the exported graph's inputs.

    Args:
        program: The captured program.
        args: Positional inputs. As in Python, each may also be among `kwargs`, however the export got it.
        kwargs: Keyword inputs.
        forward: The model's signature, whose defaults stand for missing inputs; None if it is not known.

    Raises:
        InvalidArgument: The structure of the inputs is not that of the export, or a constant input has another value than in the export.
    """
    structure = program.call_spec.in_spec
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    inputs = (tuple(args), dict(kwargs)) if structure is None else _bound(program, structure, args, kwargs, forward)
    try:
        leaves = pytree.tree_leaves(inputs) if structure is None else _leaves(structure, inputs)
    except ValueError as error:
        raise InvalidArgument(f"args: expected inputs that are nested as in the export: {error}") from error
    if len(leaves) != len(specs):
        raise InvalidArgument(f"args: expected {len(specs)} values, as in the export, got {len(leaves)}")
    for leaf, spec in zip(leaves, specs, strict=True):
        if is_constant(spec.arg) and not _is_same(leaf, constant := constant_of(spec.arg)):
            raise InvalidArgument(f"{spec.arg.name}: expected {constant!r}, which the export made a constant, got {leaf!r}")
    return [leaf for leaf, spec in zip(leaves, specs, strict=True) if not is_constant(spec.arg)]


def example_shapes(
    program: torch.export.ExportedProgram, args: Sequence[Any], kwargs: Mapping[str, Any], forward: inspect.Signature | None = None
) -> list[tuple[int, ...]]:
    """The shapes of the example inputs, in the order of the exported graph's inputs; none if the program keeps no example.

    Args:
        program: The captured program. Its own example counts if there are no other inputs.
        args: Positional example inputs.
        kwargs: Keyword example inputs.
        forward: The model's signature.
    """
    if not args and not kwargs:
        args, kwargs = program.example_inputs or ((), {})
    try:
        inputs = flat_inputs(program, args, kwargs, forward)
    except InvalidArgument:
        # NOTE: an extractor of the user may capture a program with other inputs.
        return []
    return [tuple(each.shape) if isinstance(each, torch.Tensor) else () for each in inputs]


def is_constant(argument: Any) -> bool:
    """Whether an input of a program, by its entry in the signature, is a constant: a number, a string, None or an enum member."""
    # NOTE: read in torch 2.13 and 2.15: an enum member is an object to torch. In 2.11, one that is a number or a string is a constant.
    return isinstance(argument, ConstantArgument) or (isinstance(argument, CustomObjArgument) and is_a(argument.fake_val, enum.Enum))


def constant_of(argument: Any) -> Any:
    """The value of an input that is a constant."""
    return argument.value if isinstance(argument, ConstantArgument) else argument.fake_val


def _leaves(structure: pytree.TreeSpec, inputs: Any) -> list[Any]:
    try:
        return structure.flatten_up_to(inputs)
    except ValueError:
        # NOTE: the capture got rebuilt containers, and torch rebuilds a `torch.Size` as a tuple.
        return structure.flatten_up_to(pytree.tree_map(lambda leaf: leaf, inputs))


def fake_inputs(program: torch.export.ExportedProgram) -> list[Any]:
    """What `program` has in place of each input that is not a constant: a tensor without data, or None."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    specs = [spec.arg for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    return [values.get(arg.name) for arg in specs if not is_constant(arg)]


def fitted(
    program: torch.export.ExportedProgram, args: Sequence[Any], kwargs: Mapping[str, Any], forward: inspect.Signature | None = None
) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """Inputs for `program`, by position and by name as its signature has them.

    Raises:
        InvalidArgument: The program does not take their structure, dtypes or shapes.
    """
    specs = [spec.arg for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    names = [argument.name for argument in specs if not is_constant(argument)]
    fakes = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    for name, given in zip(names, flat_inputs(program, args, kwargs, forward), strict=True):
        fake = fakes[name]
        if not isinstance(fake, torch.Tensor):
            continue
        if not is_a(given, torch.Tensor):
            raise InvalidArgument(f"{name}: expected a tensor, got {given!r}")
        sizes = zip(fake.shape, given.shape, strict=False)
        same = fake.dim() == given.dim() and all(want == got for want, got in sizes if isinstance(want, int))
        if not same or fake.dtype is not given.dtype:
            raise InvalidArgument(f"{name}: expected {fake.dtype}{list(fake.shape)}, got {given.dtype}{list(given.shape)}")
    structure = program.call_spec.in_spec
    return (tuple(args), kwargs) if structure is None else _bound(program, structure, args, kwargs, forward)


def _bound(
    program: torch.export.ExportedProgram,
    structure: pytree.TreeSpec,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    forward: inspect.Signature | None,
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`args` and `kwargs` with each input in the position or under the name that it had in the export."""
    count, keywords = len(structure.child(0).children()), list(structure.child(1).context)
    parameters = None if forward is None else forward.parameters
    positional = _positional(program, count, parameters)
    # NOTE: inputs that `*args` takes have no name, so they have numbers.
    given: dict[str | int, Any] = {positional[at] if at < len(positional) else at: value for at, value in enumerate(args)}
    if twice := [name for name in kwargs if name in given]:
        raise InvalidArgument(f"kwargs: expected {twice[0]!r} once, got it in args as well")
    given.update(kwargs)
    defaults: dict[str | int, Any] = {name: each.default for name, each in (parameters or {}).items() if each.default is not each.empty}
    wanted = [*(positional[at] if at < len(positional) else at for at in range(count)), *keywords]
    # NOTE: an input that the export did not get had its default; None stands for it where the default is not known.
    others = parameters is None or any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    for name in [name for name in given if name not in wanted]:
        if name in defaults and not _is_same(given[name], defaults[name]):
            raise InvalidArgument(f"{name}: expected {defaults[name]!r}, the default, as in the export, got {given[name]!r}")
        if name not in defaults and not (others and given[name] is None):
            if isinstance(name, int):
                raise InvalidArgument(f"args: expected {count} values, as in the export, got {len(args)}")
            raise InvalidArgument(f"kwargs: expected names out of {wanted}, as in the export, got {name!r}")
    if missing := [name for name in wanted if name not in given and name not in defaults]:
        raise InvalidArgument(f"args: expected {count + len(keywords)} inputs, as in the export, got none for {missing}")
    values = [given[name] if name in given else defaults[name] for name in wanted]
    return tuple(values[:count]), dict(zip(keywords, values[count:], strict=True))


def _positional(program: torch.export.ExportedProgram, count: int, parameters: Mapping[str, inspect.Parameter] | None) -> list[str]:
    """The names of the inputs that may be given by position; inputs without a name are left out."""
    if parameters is not None:
        return [name for name, each in parameters.items() if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    # NOTE: read in torch 2.11, 2.13 and 2.15, export/_trace.py: positional inputs, then keyword ones in the order of the export's call.
    root = next((entry.signature for entry in program.module_call_graph if entry.fqn == ""), None)
    return list(root.forward_arg_names or ())[:count] if root is not None else []


def _is_same(value: Any, constant: Any) -> bool:
    if value is constant or type(value) is not type(constant) or is_a(value, torch.Tensor):
        return value is constant
    return bool(value == constant or value != value)
