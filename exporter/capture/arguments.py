"""Faults of the call itself: TorchScript, inputs of unknown classes, `dynamic_shapes` that do not fit."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import torch

from onnxplain import where
from onnxplain.diagnostics import Confidence, Evidence, Fix
from onnxplain.options import Request
from onnxplain.rules import CaptureFailed, DynamicShapesMismatch, UnsupportedInputType

from . import inputs, spec
from .finding import Finding

KEEP_EAGER = Fix(
    "Keep the eager module and export that: torch.jit.script and torch.jit.trace leave nothing that torch.export can look into.",
    Confidence.SAFE,
)


def faults(request: Request, error: Exception) -> Iterator[Finding]:
    """What is wrong with the model's kind, the inputs or `dynamic_shapes`, after `error` has ended a capture."""
    if isinstance(request.model, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        yield Finding(CaptureFailed(error="the model is TorchScript"), Evidence(request.caller), fixes=(KEEP_EAGER,), final=True)
        return
    unsupported = [leaf for leaf in inputs.leaves(request) if not inputs.is_supported(leaf.value)]
    for leaf in unsupported:
        cls = type(leaf.value)
        definition = where.class_definition(cls)
        at = Evidence(request.caller, related=(definition.saying("the class is defined here"),) if definition else ())
        wrong = UnsupportedInputType(argument=leaf.path, type=f"{cls.__module__}.{cls.__qualname__}")
        yield Finding(wrong, at, fixes=(_registration(leaf.value),), final=True)
    before_the_model_ran = where.at_exception(error).location is None
    if unsupported or not before_the_model_ran:
        return
    if difference := spec.mismatch(request):
        yield misfit(request, *difference)
    elif contradiction := spec.contradiction(request):
        rule = DynamicShapesMismatch(expected=contradiction[0], actual=contradiction[1])
        yield Finding(rule, Evidence(request.caller), final=True)


def misfit(request: Request, expected: str, actual: str) -> Finding:
    """The finding about `dynamic_shapes` of another structure than the inputs."""
    fix = Fix("Mirror the parameters of forward.", Confidence.SAFE, snippet=spec.code(spec.fitting(request)))
    return Finding(DynamicShapesMismatch(expected=expected, actual=actual), Evidence(request.caller), fixes=(fix,), final=True)


def _registration(value: Any) -> Fix:
    """How to make the class of `value` something that torch.export can take apart."""
    cls = type(value)
    name = cls.__name__
    if dataclasses.is_dataclass(cls):
        return Fix("Register the dataclass.", Confidence.SAFE, snippet=f"torch.export.register_dataclass({name})")
    attributes = list(getattr(value, "__dict__", ()))
    try:
        fits = list(inspect.signature(cls).parameters) == attributes
    except (TypeError, ValueError):
        fits = False
    if hasattr(cls, "__array__"):
        return Fix("Pass a tensor.", Confidence.SAFE, snippet="torch.from_numpy(array)")
    snippet = f"""\
        from torch.utils import _pytree as pytree

        pytree.register_pytree_node(
            {name},
            lambda value: ([{", ".join(f"value.{each}" for each in attributes)}], None),
            lambda children, _: {name}(*children),
            flatten_with_keys_fn=lambda value: ([{", ".join(f"(pytree.GetAttrKey({each!r}), value.{each})" for each in attributes)}], None),
        )"""
    confidence = Confidence.SAFE if fits else Confidence.GUESS
    return Fix("Register the class with a way to take it apart and back.", confidence, snippet=textwrap.dedent(snippet))
