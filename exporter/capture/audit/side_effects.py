"""The user's lines that print, log, warn or write a file. The exported model has no operators for that."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from onnxplain.capture.attempts import Attempt
from onnxplain.capture.finding import Finding
from onnxplain.diagnostics import Evidence, Location
from onnxplain.rules import SideEffectLeftOut
from onnxplain.source import syntax, volatile_calls

from .finished import Finished


def findings(finished: Finished) -> Iterator[Finding]:
    """A finding for each line."""
    # NOTE: TorchDynamo leaves these calls out, so that none is seen.
    if finished.attempt.strategy.name == "strict":
        yield from map(_at, (call.place for call in volatile_calls.shows(finished.frames)))
    else:
        yield from of_attempt(finished.attempt)


def of_attempt(attempt: Attempt) -> Iterator[Finding]:
    """A finding for each line that Python ran until the end of a capture, which may have failed."""
    yield from map(_at, attempt.effects.places())


def _at(place: Location) -> Finding:
    return Finding(SideEffectLeftOut(call=_function(place)), Evidence(place))


def _function(place: Location) -> str:
    """The text of the function that is called at `place`."""
    call = None if place.region is None else syntax.innermost(place.file, place.region, ast.Call)
    return syntax.expression_at(place).partition("(")[0] if call is None else syntax.text(place.file, call.func)
