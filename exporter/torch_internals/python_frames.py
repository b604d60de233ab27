"""Python's frames: running ones, those of a traceback, and a function that is called at each line."""

from __future__ import annotations

import contextlib
import dis
import functools
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from onnxplain.diagnostics import attribute

from .put_back import put_back

_Found = TypeVar("_Found")

Entry = tuple[types.FrameType, int, int]
"""A frame with its instruction (in bytes) and its line."""

OnLine = Callable[[types.FrameType, str], None]
"""Called with the frame and `line` before a line runs, and with `call` or `return` when a function is called or returns."""


def current(above: int = 0) -> types.FrameType | None:
    """The frame of the caller's caller, or the frame `above` levels above it."""
    # NOTE: `sys._getframe` is private by name; the public `inspect.currentframe` only gives the frame itself.
    try:
        return sys._getframe(2 + above)
    except ValueError:
        return None


class Look(NamedTuple):
    """What a frame was doing at one moment: its code, and the line in it."""

    frame: types.FrameType
    code: types.CodeType
    line: int | None


def of_thread(thread: int) -> list[Look]:
    """The frames of a running thread by its identifier, innermost first."""
    # NOTE: all at once, since the thread may go on in between and leave the frames. A process that looked at them one by one, with other
    # work in between, was seen to crash (Python 3.11).
    frame, looks = sys._current_frames().get(thread), []
    while frame is not None:
        looks.append(Look(frame, frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return looks


def outward(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    """`frame` and the frames that called it, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def stack(until: types.FrameType | None) -> list[types.FrameType]:
    """The frame that called the function that asks, and those that called it, up to `until`; innermost first."""
    # NOTE: this runs for each FX node, and a generator would take twice as long.
    frame, frames = current(1), []
    while frame is not None and frame is not until:
        frames.append(frame)
        frame = frame.f_back
    return frames


def caller_outside(frame: types.FrameType, internal: Callable[[str], bool]) -> types.FrameType | None:
    """The nearest frame above `frame` that is not in an `internal` file; None if there is none."""
    return next((caller for caller in outward(frame.f_back) if not internal(caller.f_code.co_filename)), None)


def of_traceback(error: BaseException) -> Iterator[Entry]:
    """The frames of the traceback of `error`, outermost first, each with its instruction and line at that time."""
    entry = attribute(error, "__traceback__")
    while entry is not None:
        yield entry.tb_frame, entry.tb_lasti, entry.tb_lineno
        entry = entry.tb_next


def is_raised_in(error: BaseException, wanted: Callable[[str], bool]) -> bool:
    """Whether a `raise` in a file that is `wanted` raised `error`, and no signal handler did.

    Another thread can put an exception into any line (`PyThreadState_SetAsyncExc`); that line is no `raise` then.
    """
    entries = list(of_traceback(error))
    if not entries or is_from_signal(error):
        return False
    frame, instruction, _ = entries[-1]
    return wanted(frame.f_code.co_filename) and frame.f_code.co_code[instruction] == dis.opmap["RAISE_VARARGS"]


def is_from_signal(error: BaseException) -> bool:
    """Whether a signal handler of the program raised `error`."""
    handlers = (signal.getsignal(each) for each in signal.valid_signals())
    codes = {getattr(getattr(each, "__func__", each), "__code__", None) for each in handlers} - {None}
    return any(frame.f_code in codes for frame, _, _ in of_traceback(error))


def entry_of(frame: types.FrameType) -> Entry:
    """A running frame with its current instruction and line."""
    return frame, frame.f_lasti, frame.f_lineno


def once_per_instruction(look: Callable[[types.FrameType], _Found]) -> Callable[[types.FrameType], _Found]:
    """`look`, which is called once for each instruction: the same lines run for each of a model's layers."""
    # NOTE: by id, because code objects hash slowly; the values keep them alive.
    known: dict[tuple[int, int], tuple[types.CodeType, _Found]] = {}

    def found(frame: types.FrameType) -> _Found:
        key = id(frame.f_code), frame.f_lasti
        if key not in known:
            known[key] = frame.f_code, look(frame)
        return known[key][1]

    return found


def variables(frame: types.FrameType) -> Mapping[str, Any]:
    """The local variables of a frame."""
    return frame.f_locals


def caller_of(frame: types.FrameType) -> types.FrameType | None:
    """The frame that called `frame`."""
    return frame.f_back


def evaluate(expression: str, frame: types.FrameType) -> Any:
    """The value of an expression in a frame. Raises what the expression raises."""
    return eval(expression, frame.f_globals, frame.f_locals)


@contextlib.contextmanager
def each_line(on_line: OnLine, wanted: Callable[[str], bool]) -> Iterator[None]:
    """Calls `on_line` in the functions of files that are `wanted`, in this thread. An exception of `on_line` is raised at that line.

    Several may be open. A debugger or coverage tool that traces this thread sees nothing meanwhile, and is restored at the end.
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
"""This thread's watches, as `watches`, and the functions to call in each file, as `by_file`."""


def _on_call(frame: types.FrameType, event: str, argument: Any) -> Any:
    # NOTE: Python calls it for every function, including torch's, which are far more than the wanted ones.
    del argument
    file = frame.f_code.co_filename
    local = _HERE.by_file.get(file, _HERE)
    if local is _HERE:
        local = _HERE.by_file[file] = _told([on_line for on_line, wanted in _HERE.watches if wanted(file)])
    return None if local is None else local(frame, event, None)


def _told(concerned: list[OnLine]) -> Any:
    """A local trace function that calls the watches of the file; None if there are none."""

    def local(frame: types.FrameType, event: str, argument: Any) -> Any:
        del argument
        if event == "call" and sys.version_info < (3, 12):
            frame.f_trace_opcodes = _jumps_to_itself(frame.f_code)
        for on_line in concerned:
            on_line(frame, "line" if event == "opcode" else event)
        return local

    return local if concerned else None


@functools.lru_cache(maxsize=4096)
def _jumps_to_itself(code: types.CodeType) -> bool:
    """Whether an instruction jumps to itself, as that of `while True: pass` does: before Python 3.12, it tells of no line when it does."""
    jumps = {*dis.hasjrel, *dis.hasjabs}
    return any(each.opcode in jumps and each.argval == each.offset for each in dis.get_instructions(code))
