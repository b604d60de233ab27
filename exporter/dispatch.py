"""Finds the translation of every operator in the graph before anything is built, and reports all operators that have none."""

from __future__ import annotations

import collections
import dataclasses
import functools
import inspect
import logging
from collections.abc import Collection, Mapping
from typing import Any

import onnx_ir as ir
import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.rules import UnsupportedOperator, UnsupportedOverload
from onnxplain.torch_internals.operators import OpOverload, schema

from .ops import control_flow
from .passes import Prepared, graph_modules
from .registry import OnnxRegistry, Translation, complex_dtype, qualified_name
from .source import locations, stubs

_MEANINGLESS = frozenset({"layout", "device", "pin_memory", "memory_format", "generator", "non_blocking", "copy", "implicit"})
"""Arguments without a meaning in ONNX, such as the device of a tensor and the layout of its memory."""

_OWNERS = {"onnxplain": "onnxplain", "torchlib": "onnxscript's torchlib", "user": "your custom_translation_table or registry"}


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """A translation, and the FX arguments that it is called with."""

    translation: Translation
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Plan:
    """A prepared program, and the translation of each of its operators.

    Attributes:
        prepared: The program.
        calls: The translations.
        untranslated: The operators that have none; the findings are in the context.
    """

    prepared: Prepared
    calls: Mapping[torch.fx.Node, Call]
    untranslated: frozenset[torch.fx.Node] = frozenset()


def plan(context: DiagnosticContext, prepared: Prepared, registry: OnnxRegistry, left_out: Collection[torch.fx.Node] = frozenset()) -> Plan:
    """Finds the translation of every operator in all graphs of the program, and reports each operator that has none.

    Args:
        context: The context. It gets a finding for each operator that has no translation.
        prepared: The program.
        registry: The translations.
        left_out: Nodes that need no translation.
    """
    calls: dict[torch.fx.Node, Call] = {}
    untranslated: list[torch.fx.Node] = []
    for module in graph_modules(prepared.graph_module):
        for node in module.graph.nodes:
            if node in left_out or not _is_operator(node):
                continue
            found = _find(node, registry)
            if isinstance(found, Call):
                calls[node] = found
            else:
                _report(context, node, found, registry)
                untranslated.append(node)
    if context.records(logging.DEBUG):
        _tell(context, calls)
    return Plan(prepared, calls, frozenset(untranslated))


def _tell(context: DiagnosticContext, calls: Mapping[torch.fx.Node, Call]) -> None:
    """Records which translation serves each operator."""
    served = collections.Counter((qualified_name(node.target), call.translation) for node, call in calls.items())
    for (operator, translation), count in served.items():
        times = "once" if count == 1 else f"{count} times"
        context.event(f"{operator}, {times}: the translation {translation.name} of {_OWNERS[translation.origin]}.", logging.DEBUG)


def _report(
    context: DiagnosticContext, node: torch.fx.Node, found: UnsupportedOperator | UnsupportedOverload, registry: OnnxRegistry
) -> None:
    """Reports an operator by the name that the user's line called."""
    called = node.meta.get("original_aten")
    notes = []
    if isinstance(found, UnsupportedOperator) and isinstance(called, OpOverload) and called is not node.target:
        notes = [f"It decomposes into {found.operator}, which has no translation."]
        found = dataclasses.replace(found, operator=qualified_name(called))
    if isinstance(found, UnsupportedOperator) and (similar := registry.nearest(found.operator)):
        notes.append(f"The most similar operator with a translation is {similar}.")
    at = locations.at_node(node)
    own = _translation(node, registry)
    if own is not None and own.origin == "user":
        # NOTE: the user's translation exists but lacks something, so the finding is at its definition.
        at = stubs.at(own.function, at.location) or at
    context.report(found, at=at, notes=notes, fixes=[stubs.skeleton(called or node.target)], blocking=True)


def _is_operator(node: torch.fx.Node) -> bool:
    if node.op != "call_function" or qualified_name(node.target) in control_flow.TRANSLATIONS:
        return False
    return not is_output_selection(node)


def is_output_selection(node: torch.fx.Node) -> bool:
    """Whether the node selects one of several results of another node."""
    return (
        qualified_name(node.target) == "_operator::getitem"
        and isinstance(node.args[0], torch.fx.Node)
        and isinstance(node.args[0].meta.get("val"), list | tuple)
    )


def _find(node: torch.fx.Node, registry: OnnxRegistry) -> Call | UnsupportedOperator | UnsupportedOverload:
    name = qualified_name(node.target)
    dtype = complex_dtype(node)
    found = _translation(node, registry)
    if found is not None:
        return _call(node, name, found)
    if registry.has(name):
        problem, supported = ("real dtypes", "complex") if dtype is None else (f"dtype {dtype}", "real dtypes")
        return UnsupportedOverload(operator=name, problem=problem, supported=(supported,))
    overloads = registry.overloads(name)
    if overloads:
        return UnsupportedOverload(operator=name, problem=f"overload {name.partition('.')[2] or 'default'}", supported=overloads)
    return UnsupportedOperator(operator=name)


def _translation(node: torch.fx.Node, registry: OnnxRegistry) -> Translation | None:
    return registry.translation(qualified_name(node.target), is_complex=complex_dtype(node) is not None)


def _call(node: torch.fx.Node, name: str, translation: Translation) -> Call | UnsupportedOverload:
    names, defaults, takes_any = _parameters(translation)
    expected_arguments = schema(node.target).arguments if isinstance(node.target, OpOverload) else ()
    given = {argument.name: node.kwargs.get(argument.name, argument.default_value) for argument in expected_arguments}
    args: list[Any] = []
    for position, argument in enumerate(node.args):
        if takes_any or position < len(names):
            args.append(defaults.get(names[position], argument) if argument is None and position < len(names) else argument)
        else:
            given[expected_arguments[position].name] = argument
    kwargs = {}
    for keyword, argument in node.kwargs.items():
        if keyword in names and not (argument is None and keyword in defaults):
            kwargs[keyword] = argument
    # NOTE: an argument that the graph leaves out has the default of the schema, which the translation may not know.
    for expected in expected_arguments:
        if expected.name in names[len(args) :] and expected.name not in (*kwargs, *defaults) and expected.has_default_value():
            kwargs[expected.name] = expected.default_value
    # NOTE: a translation that ignores an argument would be silently wrong.
    for position, expected in enumerate(expected_arguments):
        if position < len(args) or expected.name in names or expected.name in _MEANINGLESS:
            continue
        if given[expected.name] != expected.default_value:
            problem = f"argument {expected.name}={given[expected.name]}"
            return UnsupportedOverload(operator=name, problem=problem, supported=tuple(names) or ("none",))
    return Call(translation, tuple(args), kwargs)


@functools.cache
def _parameters(translation: Translation) -> tuple[list[str], dict[str, Any], bool]:
    """The names of the translation's parameters, their defaults, and whether it takes any number of arguments."""
    signature = getattr(translation.function, "op_signature", None)
    if signature is not None:
        names = [parameter.name for parameter in signature.params]
        defaults = {parameter.name: parameter.default for parameter in signature.params if parameter.has_default()}
        plain = {name: default.value if isinstance(default, ir.Attr) else default for name, default in defaults.items()}
        return names, plain, any(getattr(parameter, "variadic", False) for parameter in signature.params)
    parameters = inspect.signature(translation.function).parameters.values()
    return (
        [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL],
        {parameter.name: parameter.default for parameter in parameters if parameter.default is not parameter.empty},
        any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters),
    )
