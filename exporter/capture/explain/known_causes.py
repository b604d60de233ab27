"""What to do about errors of torch.export that no rule covers, where their cause is known. The page of OXP1009 lists the same causes."""

from __future__ import annotations

import ast
import re

from onnxplain.diagnostics import Confidence, Edit, Fix, Location, chain, message_of
from onnxplain.request import Request
from onnxplain.source import locations, syntax

# NOTE: torch 2.11 says the second of a set.
_RESULT = re.compile(r"Found <class '[^']*'> in output|unhashable type: 'set'")

# NOTE: seen in torch 2.13. These errors have no types by which to tell them apart, so their texts do.
_WAYS = (
    (
        _RESULT,
        "Return tensors from `forward`, or tuples, lists, dicts or dataclasses of tensors: return what the object is made of.",
    ),
    (
        re.compile("data pointer|'meta' device type|size_bytes_is_heap_allocated_|Can't pickle"),
        "The line reads the memory of a tensor, which has no data during a capture. Use the tensor itself, and `clone()` for a copy. "
        "Foreign code that needs the memory belongs in a custom operator with a fake kernel and a translation (torch.library.custom_op).",
    ),
    (
        re.compile("not supported for tensor subclasses"),
        "The line calls a Python function for each element. Call tensor operators on the whole tensor, or torch.vmap.",
    ),
    (re.compile("constant's list"), "A tensor was computed out of the capture's sight, for example in a thread. Compute it in `forward`."),
    (
        re.compile("directly modify sizes"),
        "Use an operator with a new result instead of `resize_`: a slice, torch.nn.functional.pad or reshape.",
    ),
)
_NUMBER = re.compile(r"argument '(\w+)'.* must be (?:bool|int|float), not Sym|\b(\w+)=Sym(?:Bool|Int|Float)|Sym(?:Bool|Int|Float)")


def fix(error: Exception, place: Location | None) -> Fix | None:
    """The fix for `error`, which the user's line at `place` raised; None if the cause is not known."""
    texts = [message_of(each) for each in chain(error)]
    for text in texts:
        if isinstance(error, TypeError) and (found := _NUMBER.search(text)):
            return _as_number(found[1] or found[2] or "", place)
        for pattern, advice in _WAYS:
            if pattern.search(text):
                return Fix(advice, Confidence.GUESS)
    return None


def place_of(error: Exception, request: Request) -> Location | None:
    """The model's line that an error without a line in the user's code is about: the `return` of a result that torch cannot take apart."""
    return locations.last_return(request.model) if any(_RESULT.search(message_of(each)) for each in chain(error)) else None


def _as_number(argument: str, place: Location | None) -> Fix:
    """The fix that makes a plain value of the argument of a call, which takes no sizes."""
    advice = f"{f'`{argument}`' if argument else 'The argument'} takes no size: make a plain value of it. That fixes what it compares."
    call = None if place is None or place.region is None else syntax.innermost(place.file, place.region, ast.Call)
    given = next((each.value for each in call.keywords if each.arg == argument), None) if call is not None else None
    if place is None or given is None:
        return Fix(advice, Confidence.CHANGES_BEHAVIOUR, snippet="bool(x.shape[0] > 1)")
    edit = Edit(place.file, syntax.region(place.file, given), f"bool({syntax.text(place.file, given)})")
    return Fix(advice, Confidence.CHANGES_BEHAVIOUR, edits=(edit,))
