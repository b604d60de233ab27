"""Texts that a model's code makes of sizes, and hashes by which it looks them up: a symbolic size has the text `s77`, and no hash.

Where the code goes on with such a text, as in `self.heads[f"{x.shape[0]}"]`, the export goes another way than eager mode.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import torch

from . import patching, python_frames, shape_env
from .patching import Slot, all_wrapped, wrapped

for _file in (__file__, patching.__file__):
    shape_env.leave_out(_file)


class Spelling(enum.Enum):
    """What a model's code gets for the text of a size, or for its hash."""

    SYMBOL = "the symbol's name, and no hash"
    EXAMPLE = "the text of the example's number, and no hash"
    FIXED = "the text and the hash of the example's number, to which they fix the size"


_SPELLING = ContextVar("_SPELLING", default=Spelling.SYMBOL)


@contextmanager
def spelled(spelling: Spelling) -> Iterator[None]:
    """While it is open, captures spell sizes so."""
    token = _SPELLING.set(spelling)
    try:
        yield
    finally:
        _SPELLING.reset(token)


def watched(is_models: Callable[[str], bool], on_text: Callable[[], None], on_hash: Callable[[], None]) -> AbstractContextManager[None]:
    """While it is open, sizes are spelled as `spelled` says.

    Args:
        is_models: Whether code of the model may be in a file. Others, such as torch's, get the symbol's name, for their messages.
        on_text: Called when the model's code makes a text of a size.
        on_hash: Called when it asks for a hash.
    """

    def is_asked() -> bool:
        frame = python_frames.current()
        while frame is not None and frame.f_code.co_filename in (__file__, patching.__file__):
            frame = frame.f_back
        return frame is not None and is_models(frame.f_code.co_filename)

    # NOTE: read in torch 2.11, 2.13 and 2.15, fx/experimental/sym_node.py: `hint` is the example's number, and a size from data has none.
    def text(original: Callable[[Any], str], size: Any) -> str:
        if not (is_asked() and size.node.has_hint()):
            return original(size)
        on_text()
        spelling = _SPELLING.get()
        return original(size) if spelling is Spelling.SYMBOL else repr(int(size) if spelling is Spelling.FIXED else size.node.hint)

    keys = set[object]()

    def key(original: Callable[[Any], int], size: Any) -> int:
        # NOTE: torch itself looks through dicts of the model.
        if not is_asked() and size.node.expr not in keys:
            return original(size)
        if not size.node.has_hint():
            # NOTE: torch refuses this as it refuses other uses of the data, and the finding is about data.
            return hash(int(size))
        on_hash()
        if _SPELLING.get() is not Spelling.FIXED:
            return original(size)
        keys.add(size.node.expr)
        return hash(int(size))

    return all_wrapped(((Slot(torch.SymInt, "__repr__"), text), (Slot(torch.SymInt, "__hash__"), key)))


def comparisons_equal_truths() -> AbstractContextManager[None]:
    """While it is open, a comparison of sizes may be looked up: it has a hash, but torch refuses to compare it with a key."""
    # NOTE: seen in torch 2.11, 2.13 and 2.15: sympy refuses `Eq(s77 > 3, True)`.
    return wrapped(Slot(torch.SymBool, "__eq__"), _equals)


def _equals(original: Callable[[Any, Any], Any], comparison: Any, other: Any) -> Any:
    if isinstance(other, torch.SymBool):
        return bool(comparison) == bool(other)
    if not isinstance(other, int | float):
        return original(comparison, other)
    return comparison if other == 1 else torch.sym_not(comparison) if other == 0 else False
