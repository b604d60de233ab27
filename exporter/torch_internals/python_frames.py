"""Python's frames: those that are running, those of a traceback, and a function that is called at each line."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Entry = tuple[types.FrameType, int, int]
"""A frame with its instruction (in bytes) and its line."""

OnLine = Callable[[types.FrameType, str], None]
"""Called before a line runs, with the frame and `line`; also as a function is called or returns, with `call` or `return`."""


def current(above: int = 0) -> types.FrameType | None:
    """The frame that called the function that asks, or the one so many above that."""
    # NOTE: `sys._getframe` is private by name; `inspect.currentframe` does the same, and only for the frame itself.
    try:
        return sys._getframe(2 + above)
    except ValueError:
        return None


def caller_outside(frame: types.FrameType, internal: Callable[[str], bool]) -> types.FrameType | None:
    """The frame that called `frame`, those of `internal` files in between left out; None if there is no other."""
    caller = frame.f_back
    while caller is not None and internal(caller.f_code.co_filename):
        caller = caller.f_back
    return caller


def of_traceback(error: BaseException) -> Iterator[Entry]:
    """The frames of the traceback of `error`, outermost first, each with its instruction and line at that time."""
    entry = error.__traceback__
    while entry is not None:
        yield entry.tb_frame, entry.tb_lasti, entry.tb_lineno
        entry = entry.tb_next


def entry_of(frame: types.FrameType) -> Entry:
    """A frame that is running with where it is now."""
    return frame, frame.f_lasti, frame.f_lineno


def variables(frame: types.FrameType) -> Mapping[str, Any]:
    """The local variables of a frame."""
    return frame.f_locals


def evaluate(expression: str, frame: types.FrameType) -> Any:
    """What an expression is in a frame. Raises whatever it raises."""
    return eval(expression, frame.f_globals, frame.f_locals)


@contextlib.contextmanager
def each_line(on_line: OnLine, wanted: Callable[[str], bool]) -> Iterator[None]:
    """Calls `on_line` in the functions of files that are `wanted`, in this thread. What it raises goes up from that line.

    Several may be open. A debugger or a coverage tool that traces this thread sees nothing meanwhile, and is put back at the end.
    """
    watch = _Watch(on_line, wanted)
    watches = getattr(_HERE, "watches", ())
    before = sys.gettrace()
    try:
        _HERE.watches = (*watches, watch)
        sys.settrace(_on_call)
        yield
    finally:
        sys.settrace(before)
        _HERE.watches = watches


class _Watch:
    def __init__(self, on_line: OnLine, wanted: Callable[[str], bool]) -> None:
        self.on_line = on_line
        self.wanted = functools.cache(wanted)


_HERE = threading.local()
"""This thread's watches, as `watches`."""


def _on_call(frame: types.FrameType, event: str, argument: Any) -> Any:
    del argument
    file = frame.f_code.co_filename
    concerned = [watch for watch in _HERE.watches if watch.wanted(file)]
    if not concerned:
        return None

    def local(frame: types.FrameType, event: str, argument: Any) -> Any:
        del argument
        for watch in concerned:
            watch.on_line(frame, event)
        return local

    return local(frame, event, None)
