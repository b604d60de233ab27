"""Operators that were captured in training mode: active dropout, statistics of the batch."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from typing import Any

import torch

from onnxplain.capture.finding import Finding, fallback
from onnxplain.diagnostics import Confidence, Edit, Evidence, Fix
from onnxplain.request import Request
from onnxplain.rules import TrainingMode
from onnxplain.source import call_sites, locations, syntax
from onnxplain.source.call_sites import SourceExpression
from onnxplain.torch_internals.operators import OpOverload, schema

from .finished import Finished

_FLAGS = ("train", "training")
_PROBABILITIES = ("p", "dropout", "dropout_p")


def findings(finished: Finished) -> Iterator[Finding]:
    """The finding about a model in training mode, if it has operators that behave differently there."""
    request = finished.request
    if not getattr(request.model, "training", False):
        return
    evidence = [locations.at_node(node) for node in finished.nodes if is_active(node)]
    if not evidence:
        return
    layers = dict.fromkeys(each.location.module for each in evidence if each.location)
    advice = "Put the model into evaluation mode before the export."
    made = call_sites.call_of(request, type(request.model).__name__)
    edits = () if made is None else _evaluating(made)
    fix = Fix(advice, Confidence.CHANGES_BEHAVIOUR, edits, snippet="" if edits else "model.eval()")
    rule = TrainingMode(layers=tuple(path or type(request.model).__name__ for path in layers))
    yield Finding(rule, _first_in_a_file(evidence, made, request), fixes=(fix,))


def is_active(node: torch.fx.Node) -> bool:
    """Whether an operator does what it does in training mode only."""
    if node.op != "call_function" or not isinstance(node.target, OpOverload):
        return False
    values = _arguments(node)
    if values.get("use_input_stats"):
        # NOTE: without running statistics, an instance norm does the same in both modes.
        return values["running_mean"] is not None
    flags = [values[name] for name in _FLAGS if name in values]
    probabilities = [values[name] for name in _PROBABILITIES if name in values]
    # NOTE: dropout with probability 0 is the same in both modes, and so is a recurrent layer without dropout.
    return (any(flags) if flags else "dropout_p" in values) and all(probabilities)


def _arguments(node: torch.fx.Node) -> dict[str, Any]:
    """Every argument of the operator's schema with its value."""
    assert isinstance(node.target, OpOverload)
    arguments = schema(node.target).arguments
    given = {argument.name: value for argument, value in zip(arguments, node.args, strict=False)}
    return {argument.name: argument.default_value for argument in arguments if argument.has_default_value()} | given | dict(node.kwargs)


def _evaluating(made: SourceExpression) -> tuple[Edit, ...]:
    """The edits that append `.eval()` to the call that makes the model, or replace a `.train()` there."""
    around = syntax.around(made.file, syntax.region(made.file, made.node))
    whole = next((each for each in around if isinstance(each, ast.Call) and _is_switch(each, made.node)), None)
    if whole is not None:
        return SourceExpression(made.file, whole).replaced(f"{made.text}.eval()")
    return () if made.followed_by(".") else made.replaced(f"{made.text}.eval()")


def _is_switch(call: ast.Call, model: ast.expr) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "train" and call.func.value is model


def _first_in_a_file(evidence: list[Evidence], made: SourceExpression | None, request: Request) -> Evidence:
    in_files = [each for each in evidence if each.location and each.location.file]
    if in_files:
        return in_files[0]
    place = call_sites.at(made, request) if made is not None else fallback(request)
    path = evidence[0].location.module if evidence[0].location else ""
    return dataclasses.replace(place, location=dataclasses.replace(place.location, module=path)) if place.location else evidence[0]
