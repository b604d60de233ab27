"""Runs the model once more, and sees which of the user's lines changes something."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from onnxplain.diagnostics import Location, Region
from onnxplain.source import locations

_Result = TypeVar("_Result")


def changes(run: Callable[[], object], state: Callable[[], Mapping[str, object]]) -> list[tuple[str, Location]]:
    """The lines of the user's after which something else is in `state`, each with its key there, while `run` runs."""
    found: list[tuple[str, Location]] = []
    now = state()
    running: types.FrameType | None = None
    line = 0

    def compare() -> None:
        nonlocal now
        past, now = now, state()
        if running is not None:
            place = Location(running.f_code.co_filename, Region(line), running.f_code.co_name)
            found.extend((key, place) for key in now if now[key] != past[key])

    def on_line(frame: types.FrameType, event: str, argument: Any) -> Any:
        nonlocal running, line
        del argument
        compare()
        # After a function has returned, the line that called it goes on.
        running = frame.f_back if event == "return" else frame
        line = running.f_lineno if running is not None else 0
        if running is not None and not locations.is_users(running.f_code.co_filename):
            running = None
        return on_line

    def on_call(frame: types.FrameType, event: str, argument: Any) -> Any:
        del event, argument
        return on_line if locations.is_users(frame.f_code.co_filename) else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        run()
    except Exception:
        # NOTE: the same run has just succeeded; what was seen up to here still happened.
        return found
    finally:
        sys.settrace(before)
    return found


def lines(run: Callable[[], _Result]) -> tuple[_Result, set[tuple[str, int]]]:
    """What `run` returns, and the lines of the user's that ran, each with its file."""
    ran: set[tuple[str, int]] = set()

    def on_line(frame: types.FrameType, event: str, argument: Any) -> Any:
        del event, argument
        ran.add((frame.f_code.co_filename, frame.f_lineno))
        return on_line

    def on_call(frame: types.FrameType, event: str, argument: Any) -> Any:
        return on_line(frame, event, argument) if locations.is_users(frame.f_code.co_filename) else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        return run(), ran
    finally:
        sys.settrace(before)
