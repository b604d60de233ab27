"""Operators that draw random numbers in evaluation mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from onnxplain.capture.finding import Finding
from onnxplain.diagnostics import Confidence, Edit, Fix, Location
from onnxplain.registry import qualified_name
from onnxplain.rules import RandomOperator
from onnxplain.source import locations, syntax
from onnxplain.source.call_sites import SourceExpression
from onnxplain.torch_internals.operators import OpOverload, schema

from . import training_mode
from .finished import Finished

_SWITCHES = frozenset({"train", "training", "dropout_p"})
"""Arguments of operators that draw in training mode only."""
_PASS = "Pass training=self.training, which is False in evaluation mode."
_EVALUATE = "Put the layer into evaluation mode, or call the function only if self.training is true."
_FUNCTIONS = {
    **dict.fromkeys(("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"), 2),
    "rrelu": 3,
}
"""Functions of torch.nn.functional with an argument `training`, and its position."""


def findings(finished: Finished) -> Iterator[Finding]:
    """A finding for each operator of the program that draws, unless the rule about training mode covers it."""
    is_training = getattr(finished.request.model, "training", False)
    for node in finished.nodes:
        target = node.target
        if not isinstance(target, OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
            continue
        # NOTE: many models draw a number in any mode to skip a layer in training mode.
        if not node.users and not schema(target).is_mutable:
            continue
        evidence, rule = locations.at_node(node), RandomOperator(operator=qualified_name(target))
        if not any(argument.name in _SWITCHES for argument in schema(target).arguments):
            yield Finding(rule, evidence)
        elif not is_training and training_mode.is_active(node):
            edits = _following_the_mode(evidence.location) if evidence.location else ()
            yield Finding(rule, evidence, fixes=(Fix(_PASS if edits else _EVALUATE, Confidence.CHANGES_BEHAVIOUR, edits),))


def _following_the_mode(place: Location) -> tuple[Edit, ...]:
    """The edit that passes `self.training` to the call at `place`; none if that is not a call of a function with this argument."""
    if place.region is None:
        return ()
    call, function = (syntax.innermost(place.file, place.region, kind) for kind in (ast.Call, ast.FunctionDef))
    if not isinstance(call, ast.Call) or not isinstance(function, ast.FunctionDef) or syntax.last_name(call.func) not in _FUNCTIONS:
        return ()
    keywords = {each.arg: each.value for each in call.keywords}
    if (
        [each.arg for each in function.args.args[:1]] != ["self"]
        or None in keywords
        or any(isinstance(each, ast.Starred) for each in call.args)
    ):
        return ()
    place_of = _FUNCTIONS[syntax.last_name(call.func)]
    given = keywords.get("training") or next(iter(call.args[place_of:]), None)
    if given is not None:
        return SourceExpression(place.file, given).replaced("self.training")
    last = SourceExpression(place.file, [*call.args, *keywords.values()][-1])
    return last.replaced(f"{last.text}, training=self.training")
