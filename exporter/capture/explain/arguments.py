"""Faults in the call: TorchScript, inputs of unknown classes, `dynamic_shapes` that do not fit."""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.export import Dim

from onnxplain.capture.finding import Finding
from onnxplain.diagnostics import Confidence, Fix, Location
from onnxplain.request import Kind, Request, inputs, shapes_source
from onnxplain.rules import DynamicShapesMismatch, ScriptedModel, UnsupportedInputType
from onnxplain.source import call_sites, locations, syntax
from onnxplain.source.call_sites import SourceExpression
from onnxplain.torch_internals.python_values import is_a

from . import shapes_argument

_OF_ITEMS = """\
    torch.utils._pytree.register_pytree_node(
        {name},
        lambda value: (list(value.values()), list(value)),
        lambda children, keys: {name}(zip(keys, children)),
        flatten_with_keys_fn=lambda value: (
            [(torch.utils._pytree.MappingKey(key), each) for key, each in value.items()],
            list(value),
        ),
    )"""
_OF_ATTRIBUTES = """\
    torch.utils._pytree.register_pytree_node(
        {name},
        lambda value: ([{parts}], None),
        lambda children, _: {name}(*children),
        flatten_with_keys_fn=lambda value: (
            [{keys}],
            None,
        ),
    )"""


def faults(request: Request, error: Exception) -> Iterator[Finding]:
    """The findings about the model's kind, the inputs or `dynamic_shapes`, after `error` has ended a capture."""
    if isinstance(request.model, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        made = scripting(request)
        yield Finding(ScriptedModel(module="the model"), call_sites.at(made, request), fixes=(without_scripting(made),), final=True)
        return
    if wrong := list(unsupported(request)):
        yield from wrong
        return
    before_the_model_ran = locations.at_exception(error).location is None
    difference = shapes_argument.mismatch(request.shapes)
    if difference is not None and (before_the_model_ran or difference.is_entry):
        yield misfit(request, difference)
    elif before_the_model_ran and (contradiction := shapes_argument.contradiction(request.shapes)):
        yield contradictory(request, contradiction)


def unsupported(request: Request) -> Iterator[Finding]:
    """The findings about inputs that have no place among the inputs of an ONNX model. torch.export takes some of them."""
    for leaf in request.shapes.leaves:
        if inputs.is_supported(leaf.value):
            continue
        cls = type(leaf.value)
        definition = locations.class_definition(cls)
        related = (definition.saying("the class is defined here"),) if definition else ()
        at = call_sites.at(call_sites.call_of(request, cls.__name__), request, *related)
        wrong = UnsupportedInputType(argument=leaf.path, type=_kind(leaf.value))
        yield Finding(wrong, at, fixes=(_supported(leaf.value, definition),), final=True)


def misfit(request: Request, difference: shapes_argument.Difference) -> Finding:
    """The finding about `dynamic_shapes` whose structure differs from that of the inputs."""
    advice, confidence = "Mirror the parameters of forward.", Confidence.SAFE
    if difference.is_entry:
        advice, confidence = "Write Dim.DYNAMIC for a dim that varies.", Confidence.GUESS
    fix = shapes_argument.fix(request, advice, confidence, shapes_argument.fitting(request.shapes))
    rule = DynamicShapesMismatch(expected=difference.expected, actual=difference.actual)
    return Finding(rule, call_sites.at(shapes_argument.place(request, difference.way), request), fixes=(fix,), final=True)


def repaired(request: Request, findings: Sequence[Finding]) -> Request | None:
    """`request` with `dynamic_shapes` that fit the inputs, or none, if only these stopped the capture."""
    if not findings or not all(isinstance(finding.rule, DynamicShapesMismatch) for finding in findings):
        return None
    shapes = request.shapes
    if shapes_argument.mismatch(shapes) is not None and isinstance(shapes.given, Mapping | list | tuple):
        shapes = shapes.reread(shapes_argument.fitting(shapes))
    fits = shapes_argument.mismatch(shapes) is None and shapes_argument.contradiction(shapes) is None
    return dataclasses.replace(request, shapes=shapes if fits else shapes.reread(None))


def contradictory(request: Request, found: shapes_argument.Contradiction) -> Finding:
    """The finding about a name whose sizes exclude each other: at the call of `Dim`, or at the entry of `dynamic_shapes`."""
    rule = DynamicShapesMismatch(expected=found.promised, actual=found.actual)
    dim = found.dim
    if found.first is not None:
        own = shapes_argument.renamed(dim)
        structure = request.shapes.by_parameter({each: own for each in request.shapes.same_name(dim) if each.size == dim.size})
        fix = shapes_argument.fix(request, "Give dims of different sizes different names.", Confidence.SAFE, structure)
        return Finding(rule, call_sites.at(shapes_argument.place(request, shapes_argument.way_to(dim)), request), fixes=(fix,), final=True)

    if dim.kind is Kind.DERIVED and dim.allows(dim.size):
        structure = request.shapes.by_parameter(dict.fromkeys(request.shapes.same_name(dim), Dim.DYNAMIC))
        advice = "Leave the formula out; or pass an example whose size fits it."
        fix = shapes_argument.fix(request, advice, Confidence.CHANGES_BEHAVIOUR, structure)
        return Finding(rule, call_sites.at(shapes_argument.place(request, shapes_argument.way_to(dim)), request), fixes=(fix,), final=True)

    def defines(call: ast.Call) -> bool:
        return bool(call.args) and call_sites.literal(call.args[0]) == dim.name

    made = call_sites.call_of(request, "Dim", matches=defines)
    if made is None or not isinstance(made.node, ast.Call):
        return Finding(rule, call_sites.at(shapes_argument.place(request, shapes_argument.way_to(dim)), request), final=True)
    fixes: tuple[Fix, ...] = ()
    if dim.kind is Kind.DIM and not dim.allows(dim.size):
        wider = shapes_source.definition(Dim(dim.name, min=min(dim.least, dim.size), max=max(dim.given.max, dim.size)))
        callee = syntax.text(made.file, made.node.func)
        text = callee + wider.removeprefix("torch.export.Dim")
        advice = "Let the range contain the example's size; or pass an example of a size in the range."
        fixes = (Fix(advice, Confidence.CHANGES_BEHAVIOUR, edits=made.replaced(text)),)
    return Finding(rule, call_sites.at(made, request), fixes=fixes, final=True)


def scripting(request: Request, attribute: str = "") -> SourceExpression | None:
    """The call of torch.jit that made the model, or the model's `attribute`."""

    def calls(node: ast.AST) -> Iterator[ast.expr]:
        match node:
            case ast.Assign(targets=[ast.Attribute(attr=name)], value=ast.Call() as call) if attribute and name == attribute:
                yield from calls(call)
            case ast.Call(func=ast.Attribute(attr="script" | "trace" | "load", value=owner)) if syntax.last_name(owner) == "jit":
                yield node
            case ast.Call(func=ast.Name(id="script" | "trace")):
                yield node

    words = ("script", "trace", "jit")
    named = call_sites.only(request, words, lambda node: calls(node) if attribute and isinstance(node, ast.Assign) else iter(()))
    return named or call_sites.only(request, words, calls)


def without_scripting(made: SourceExpression | None) -> Fix:
    """The fix that keeps the module that torch.jit was given."""
    advice = "Keep the eager module and export it: torch.export cannot look into TorchScript."
    if made is None or not isinstance(made.node, ast.Call) or syntax.last_name(made.node.func) == "load" or not made.node.args:
        return Fix(advice, Confidence.SAFE)
    return Fix(advice, Confidence.SAFE, edits=made.replaced(syntax.text(made.file, made.node.args[0])))


def _kind(value: Any) -> str:
    """The class of `value`; of a tensor also what makes it none that ONNX has."""
    cls = type(value)
    name = f"{cls.__module__}.{cls.__qualname__}"
    if not is_a(value, torch.Tensor):
        return name
    return f"{name} ({'nested' if value.is_nested else 'quantized' if value.is_quantized else value.layout})"


def _supported(value: Any, definition: Location | None) -> Fix:
    """The fix that makes an input of `value`, or that gives it to the model in another way.

    Args:
        value: The input.
        definition: Where its class is defined; None for a class of torch or Python.
    """
    cls = type(value)
    if is_a(value, torch.Tensor):
        dense = "torch.nested.to_padded_tensor(x, 0.0)" if value.is_nested else f"x.{'dequantize' if value.is_quantized else 'to_dense'}()"
        return Fix("Pass a dense tensor.", Confidence.CHANGES_BEHAVIOUR, snippet=dense)
    if hasattr(cls, "__array__"):
        return Fix(
            "Pass a tensor.",
            Confidence.SAFE,
            snippet=f"torch.{'as_tensor(number)' if issubclass(cls, np.generic) else 'from_numpy(array)'}",
        )
    if any(held is value for held in getattr(value, "__dict__", {}).values()):
        return Fix("Let forward take the tensors as parameters and build the object.", Confidence.GUESS)
    if dataclasses.is_dataclass(cls):
        return _behind(definition, "Register the dataclass.", Confidence.SAFE, f"torch.export.register_dataclass({cls.__name__})")
    advice = "Register functions that flatten the class and rebuild it."
    if is_a(value, dict):
        return _behind(definition, advice, Confidence.GUESS, textwrap.dedent(_OF_ITEMS.format(name=cls.__name__)))
    attributes = list(getattr(value, "__dict__", ()))
    if not attributes or callable(value) or is_a(value, enum.Enum):
        return Fix("Leave it out of the inputs: let forward make it, or read it from an attribute of the model.", Confidence.GUESS)
    try:
        fits = list(inspect.signature(cls).parameters) == attributes
    except (TypeError, ValueError):
        fits = False
    parts = ", ".join(f"value.{each}" for each in attributes)
    keys = ", ".join(f"(torch.utils._pytree.GetAttrKey({each!r}), value.{each})" for each in attributes)
    code = textwrap.dedent(_OF_ATTRIBUTES.format(name=cls.__name__, parts=parts, keys=keys))
    return _behind(definition, advice, Confidence.SAFE if fits else Confidence.GUESS, code)


def _behind(definition: Location | None, description: str, confidence: Confidence, code: str) -> Fix:
    """The fix that puts `code` below the class that begins at `definition`, or offers it to paste."""
    torch_name = None if definition is None else syntax.name_of_torch(definition.file)
    known = None if definition is None or definition.region is None else syntax.innermost(definition.file, definition.region, ast.ClassDef)
    if definition is None or known is None or torch_name is None or not locations.is_users(definition.file):
        return Fix(description, confidence, snippet=code)
    return Fix(description, confidence, syntax.behind(definition.file, known, code.replace("torch.", f"{torch_name}.")))
