"""Tensors whose data Python read during the capture: the values became constants of the graph."""

from __future__ import annotations

from collections.abc import Iterator

from onnxplain.capture.finding import Finding
from onnxplain.rules import TensorRead
from onnxplain.source import locations, syntax

from .finished import Finished


def findings(finished: Finished) -> Iterator[Finding]:
    """A finding for each of the user's lines that reads a tensor."""
    for stack in finished.attempt.reads.made():
        if stack and locations.is_users(stack[-1].file):
            yield Finding(TensorRead(expression=syntax.expression_at(stack[-1])), locations.at_stack(stack))
