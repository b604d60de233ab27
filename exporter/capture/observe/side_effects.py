"""The user's lines that print, log, warn or write a file while the model runs. No graph has an operator for that."""

from __future__ import annotations

import contextlib
import os
import types
from collections.abc import Iterator

import numpy as np

from onnxplain import process
from onnxplain.diagnostics import Location
from onnxplain.source import locations
from onnxplain.torch_internals import python_effects, python_frames

_WRITERS = tuple(path + os.sep for path in np.__path__)
"""Packages that write files for their caller."""


class SideEffects:
    """Collects these lines. What an installed package shows by itself does not count."""

    def __init__(self) -> None:
        # NOTE: by instruction, since a loop may print a thousand times; the code objects are kept alive.
        self._seen: dict[tuple[int, int], tuple[types.CodeType, Location]] = {}

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """While it is open, the lines are collected."""
        with python_effects.watched(self._note), process.user_heard(self._note):
            yield

    def places(self) -> tuple[Location, ...]:
        """The lines, each once, in the order in which they first ran."""
        found: dict[tuple[str, int | None], Location] = {}
        for _, place in self._seen.values():
            found.setdefault((place.file, place.line), place)
        return tuple(found.values())

    def _note(self, caller: types.FrameType) -> None:
        for frame in python_frames.outward(caller):
            file = frame.f_code.co_filename
            if locations.is_users(file):
                key = (id(frame.f_code), frame.f_lasti)
                if key not in self._seen:
                    self._seen[key] = (frame.f_code, locations.location(*python_frames.entry_of(frame)))
                return
            if not (locations.is_standard_library(file) or file.startswith(_WRITERS)):
                return
