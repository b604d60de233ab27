"""Operators that draw random numbers in training mode and in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from onnxplain.capture.finding import Finding
from onnxplain.registry import qualified_name
from onnxplain.rules import RandomOperator
from onnxplain.source import locations
from onnxplain.torch_internals.operators import OpOverload, schema

from .finished import Finished

_SWITCHES = frozenset({"train", "training", "dropout_p"})
"""Arguments of operators that draw in training mode only, for which there is a separate rule."""


def findings(finished: Finished) -> Iterator[Finding]:
    """A finding for each operator of the program that draws."""
    for node in finished.nodes:
        target = node.target
        if not isinstance(target, OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
            continue
        if not any(argument.name in _SWITCHES for argument in schema(target).arguments):
            yield Finding(RandomOperator(operator=qualified_name(target)), locations.at_node(node))
