"""Python's frames: those that are running, those of a traceback, and a function that is called at each line."""

from __future__ import annotations

import contextlib
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .put_back import put_back

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


def outward(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    """`frame` and the frames that called it, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def caller_outside(frame: types.FrameType, internal: Callable[[str], bool]) -> types.FrameType | None:
    """The frame that called `frame`, those of `internal` files in between left out; None if there is no other."""
    return next((caller for caller in outward(frame.f_back) if not internal(caller.f_code.co_filename)), None)


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


def caller_of(frame: types.FrameType) -> types.FrameType | None:
    """The frame that called `frame`."""
    return frame.f_back


def evaluate(expression: str, frame: types.FrameType) -> Any:
    """What an expression is in a frame. Raises whatever it raises."""
    return eval(expression, frame.f_globals, frame.f_locals)


@contextlib.contextmanager
def each_line(on_line: OnLine, wanted: Callable[[str], bool]) -> Iterator[None]:
    """Calls `on_line` in the functions of files that are `wanted`, in this thread. What it raises goes up from that line.

    Several may be open. A debugger or a coverage tool that traces this thread sees nothing meanwhile, and is put back at the end.
    """
    watches = (*getattr(_HERE, "watches", ()), (on_line, wanted))
    before, outer = sys.gettrace(), dict(vars(_HERE))

    def undo() -> None:
        sys.settrace(before)
        vars(_HERE).clear()
        vars(_HERE).update(outer)

    with put_back(undo):
        _HERE.watches, _HERE.by_file = watches, {}
        sys.settrace(_on_call)
        yield


_HERE = threading.local()
"""This thread's watches, as `watches`, and what is called in the functions of a file, as `by_file`."""


def _on_call(frame: types.FrameType, event: str, argument: Any) -> Any:
    # NOTE: it is called for every function of torch's, too, which are far more than those that are wanted.
    del argument
    file = frame.f_code.co_filename
    local = _HERE.by_file.get(file, _HERE)
    if local is _HERE:
        local = _HERE.by_file[file] = _told([on_line for on_line, wanted in _HERE.watches if wanted(file)])
    return None if local is None else local(frame, event, None)


def _told(concerned: list[OnLine]) -> Any:
    """A local trace function that calls those who are concerned; None if nobody is."""

    def local(frame: types.FrameType, event: str, argument: Any) -> Any:
        del argument
        for on_line in concerned:
            on_line(frame, event)
        return local

    return local if concerned else None
