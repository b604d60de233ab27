"""Translations for torch.onnx's TorchScript exporter: the `symbolic` of a torch.autograd.Function, which an export does not call."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch

from onnxplain.capture.finding import Finding
from onnxplain.rules import SymbolicIgnored
from onnxplain.source import locations
from onnxplain.torch_internals.code_objects import code_of, lines_of

from .finished import Finished


def findings(finished: Finished) -> Iterator[Finding]:
    """A finding for each line that applies one of the user's torch.autograd.Functions with a `symbolic`."""
    functions = {
        (code.co_filename, code.co_name, code.co_firstlineno): cls
        for cls in _subclasses(torch.autograd.Function)
        if "symbolic" in vars(cls)
        and (code := code_of(cls.forward)) is not None
        # NOTE: transformers has some, which the user cannot change.
        and locations.is_users(code.co_filename)
    }
    if not functions:
        return
    told: set[object] = set()
    for node in finished.nodes:
        stack = locations.at_node(node).stack
        for outer, inner in itertools.pairwise(stack):
            for (file, name, first), cls in functions.items():
                inside = (inner.file, inner.function) == (file, name) and first <= (inner.line or 0) <= _last_line(cls)
                if inside and (outer.file, outer.line, cls) not in told:
                    told.add((outer.file, outer.line, cls))
                    yield Finding(SymbolicIgnored(function=cls.__name__), locations.at_stack((outer,)))


def _subclasses(cls: Any) -> Iterator[Any]:
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)


def _last_line(cls: Any) -> int:
    """The last line of code of `forward`."""
    code = code_of(cls.forward)
    return max(lines_of(code), default=0) if code is not None else 0
