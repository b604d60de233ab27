"""Tensors whose data Python read while the model was captured: what it got is a constant of the graph."""

from __future__ import annotations

from collections.abc import Iterator

from onnxplain.capture.finding import Finding
from onnxplain.rules import TensorRead
from onnxplain.source import locations, syntax

from .finished import Finished


def findings(finished: Finished) -> Iterator[Finding]:
    """The user's lines that read a tensor."""
    for stack in finished.attempt.reads.made():
        if stack and locations.is_users(stack[-1].file):
            yield Finding(TensorRead(expression=syntax.expression_at(stack[-1])), locations.at_stack(stack))
