"""Operators that draw random numbers, whatever mode the model is in."""

from __future__ import annotations

import torch

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.registry import qualified_name
from onnxplain.rules import RandomOperator
from onnxplain.source import locations
from onnxplain.torch_internals.operators import OpOverload, schema

_SWITCHES = frozenset({"train", "training", "dropout_p"})
"""Arguments of operators that draw in training only, which has a rule of its own."""


def report(context: DiagnosticContext, program: torch.export.ExportedProgram) -> None:
    """Reports each operator of `program` that draws."""
    for node in program.graph.nodes:
        target = node.target
        if not isinstance(target, OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
            continue
        if not any(argument.name in _SWITCHES for argument in schema(target).arguments):
            context.report(RandomOperator(operator=qualified_name(target)), at=locations.at_node(node))
