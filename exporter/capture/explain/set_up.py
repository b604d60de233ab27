"""Modules whose `__init__` does not call that of torch.nn.Module: they have none of the attributes that torch needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from onnxplain.capture.eager import EagerRuns
from onnxplain.capture.finding import Finding, fallback, headline
from onnxplain.capture.strategies import as_module
from onnxplain.diagnostics import Confidence, Evidence, Fix
from onnxplain.request import Request
from onnxplain.rules import CaptureFailed, UserCodeRaised
from onnxplain.source import locations
from onnxplain.torch_internals.modules import is_set_up, named_modules

_CALL = Fix("Call the `__init__` of torch.nn.Module first in that of the class.", Confidence.SAFE, snippet="super().__init__()")


def missing(request: Request, error: Exception, runs: EagerRuns) -> Iterator[Finding]:
    """A finding at the class of each such module. `error` ended the capture."""
    bare: dict[type, str] = {}
    for path, module in named_modules(as_module(request.model)):
        if not is_set_up(module):
            bare.setdefault(type(module), path)
    if not bare:
        return
    # NOTE: eager mode runs a model that never calls the module.
    in_eager_mode = runs.error()
    rule = CaptureFailed(error=headline(error)) if in_eager_mode is None else UserCodeRaised(error=headline(in_eager_mode))
    for cls, path in bare.items():
        place = locations.class_definition(cls)
        at = fallback(request) if place is None else Evidence(dataclasses.replace(place, module=path))
        yield Finding(rule, at, (f"The `__init__` of {cls.__name__} does not call that of torch.nn.Module.",), (_CALL,), final=True)
