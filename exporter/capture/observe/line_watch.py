"""Runs the model once more, and finds the user's lines that change a state."""

from __future__ import annotations

import contextlib
import itertools
import types
from collections.abc import Callable, Mapping
from typing import TypeVar

from onnxplain.diagnostics import Location, Region
from onnxplain.source import locations
from onnxplain.torch_internals import python_frames

_Result = TypeVar("_Result")


def changes(run: Callable[[], object], state: Callable[[], Mapping[str, object]]) -> list[tuple[str, Location]]:
    """The user's lines after which `state` has another value while `run` runs, each with the key of that value."""
    found: list[tuple[str, Location]] = []
    now = state()
    here = python_frames.current()
    running: types.FrameType | None = None
    line = 0

    def compare() -> None:
        nonlocal now
        past, now = now, state()
        if running is not None:
            place = Location(running.f_code.co_filename, Region(line), running.f_code.co_name)
            found.extend((key, place) for key in now if now[key] != past[key])

    def on_line(frame: types.FrameType, event: str) -> None:
        nonlocal running, line
        if event == "call":
            return
        compare()
        # After a function has returned, the user's line that called it goes on, be it through torch or through generated code.
        inner = python_frames.caller_of(frame) if event == "return" else frame
        frames = itertools.takewhile(lambda each: each is not here, python_frames.outward(inner))
        running = next((each for each in frames if locations.is_users_code(each.f_code)), None)
        line = running.f_lineno if running is not None else 0

    # NOTE: the same run has just succeeded, so if this one fails, the changes seen so far still happened.
    with contextlib.suppress(Exception), python_frames.each_line(on_line, locations.is_users):
        run()
    return found


def lines(run: Callable[[], _Result]) -> tuple[_Result, set[tuple[str, int]]]:
    """The result of `run`, and the user's lines that ran, each with its file."""
    ran: set[tuple[str, int]] = set()

    def on_line(frame: types.FrameType, event: str) -> None:
        del event
        ran.add((frame.f_code.co_filename, frame.f_lineno))

    with python_frames.each_line(on_line, locations.is_users):
        return run(), ran
