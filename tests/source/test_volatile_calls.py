"""Calls whose answer differs between export and run."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import torch

from onnxplain.diagnostics import Location, Region
from onnxplain.source import volatile_calls
from onnxplain.source.call_sites import SourceExpression

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]

SOURCE = """
import datetime
import os
import random
import secrets
import time
import uuid
from time import perf_counter

import torch


def asked(x):
    return x + 1 if torch.compiler.is_exporting() else x  # phase


def unasked(x):
    return x + 1 if torch.jit.is_scripting() else x


class Net(torch.nn.Module):
    def forward(self, x):
        y = asked(x) * 2  # first
        return y.sin() + y.cos()  # second


def clocks(x):
    x + time.perf_counter()  # clock
    x + datetime.datetime.now()  # clock
    x + datetime.date.today()  # clock
    x + uuid.uuid4().int  # clock
    os.getpid()  # clock
    secrets.choice([1])  # clock
    perf_counter()
    random.choice([1])
    x.today()
    return os.path.join("a", "b")


PHASE = torch.compiler.is_compiling()
"""


def lines(found: list[SourceExpression]) -> list[int]:
    return [each.node.lineno for each in found]


def test_the_frames_of_a_program(load: Load, marked: Marked) -> None:
    module = load(SOURCE)
    frames = volatile_calls.frames(torch.export.export(module.Net(), (torch.ones(2),)))
    assert {frame.line for frame in frames} == {*marked("first"), *marked("second")}
    assert len(frames) == len(set(frames))
    assert {frame.file for frame in frames} == {str(module.__file__)}


def test_calls_that_ask_for_the_phase_in_functions_that_ran(load: Load, marked: Marked) -> None:
    file = str(load(SOURCE).__file__)
    (phase,) = marked("phase")
    for line in (phase - 1, phase):
        assert lines(volatile_calls.phases([Location(file, Region(line), "asked")])) == [phase]
    for line in (phase - 2, phase + 1):
        assert lines(volatile_calls.phases([Location(file, Region(line))])) == []
    assert lines(volatile_calls.phases([Location(file)])) == []
    # A frame at the same line of another file.
    other = str(load("import torch\n" * 40 + "torch.compiler.is_exporting()\n", "other").__file__)
    assert lines(volatile_calls.phases([Location(other, Region(phase)), Location(file, Region(1))])) == []


def test_clocks_are_found_by_their_module(load: Load, marked: Marked) -> None:
    file = str(load(SOURCE).__file__)
    plain = str(load("def plain(x):\n    return x\n", "plain").__file__)
    frames = [Location(plain, Region(1)), Location(file, Region(1)), Location(file, Region(2))]
    assert sorted(lines(volatile_calls.clocks(frames))) == marked("clock")


def test_files_without_such_calls_or_without_python(load: Load) -> None:
    plain = load("def plain(x):\n    return x\n")
    frames = [Location(str(plain.__file__), Region(1)), Location("nowhere.py", Region(1))]
    assert volatile_calls.clocks(frames) == []
    assert volatile_calls.phases(frames) == []


SHOWING = """
import logging
import warnings

_LOGGER = logging.getLogger()


def ran(x):
    print(x)  # shows
    _LOGGER.info("each run")  # shows
    warnings.warn("each run")  # shows
    x.print()
    x.error("no log")
    if x:
        print("seldom")
    print("seldom") if x else None
    return lambda: print("later")


def idle(x):
    print(x)
"""


def test_what_each_run_shows(load: Load, marked: Marked) -> None:
    module = load(SHOWING)
    ran = [Location(str(module.__file__), Region(line), "ran") for line in marked("shows")]
    assert sorted(lines(volatile_calls.shows(ran))) == marked("shows")
