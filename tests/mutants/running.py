"""Runs a room's tests against mutants, each in a process and with a copy of the installed package that is its alone."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

import click
import pytest
import torch

from .mutations import Mutant
from .rooms import ROOT, Room, installed

# NOTE: all processes are forked from one that has imported these, which takes eight seconds each time.
_HEAVY = ("onnxscript.function_libs.torch_lib.ops", "torch._dynamo", "torch.export", "onnxruntime", "hypothesis")
# A mutant may take this many times as long as the room's code, and so many seconds more, until it counts as caught.
_SLOWER, _SECONDS_MORE = 3, 30


class BaselineFailed(click.ClickException):
    """The room's tests fail without any mutant, so they say nothing about one."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What the room's tests say to a mutant.

    Attributes:
        mutant: The mutant.
        caught: Whether a test failed, or took far too long.
    """

    mutant: Mutant
    caught: bool


@dataclasses.dataclass(frozen=True, eq=False)
class _Run:
    process: multiprocessing.process.BaseProcess
    deadline: float
    folder: tempfile.TemporaryDirectory[str]

    def finish(self) -> int | None:
        """The exit code of its tests; None where they took too long. Ends all processes that they have started."""
        late = self.process.is_alive()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.join()
        self.folder.cleanup()
        return None if late else self.process.exitcode


def run(room: Room, mutants: Sequence[Mutant], processes: int) -> Iterator[Result]:
    """Runs the room's tests against each mutant, several at a time. Yields the results in the order in which they come.

    Raises:
        BaselineFailed: The room's tests fail without a mutant, or the installed package is not the working tree.
    """
    for name in _HEAVY:
        importlib.import_module(name)
    # NOTE: several processes at a time; threads of one would wait for those of the others.
    torch.set_num_threads(1)
    with _package_as_it_is() as package:
        for source in room.sources:
            if (package.parent / installed(source)).read_bytes() != source.read_bytes():
                raise BaselineFailed(f"The installed package has another {source.relative_to(ROOT)}. Install the working tree first.")
        began = time.monotonic()
        baseline = _started(room, package, None, float("inf"))
        baseline.process.join()
        shown = pathlib.Path(baseline.folder.name, "output.txt").read_text(encoding="utf-8")
        if baseline.finish() != 0:
            raise BaselineFailed(f"{shown}\nThe tests of {room.name} fail without a mutant.")
        limit = _SLOWER * (time.monotonic() - began) + _SECONDS_MORE
        waiting = list(reversed(mutants))
        running: dict[_Run, Mutant] = {}
        try:
            while waiting or running:
                while waiting and len(running) < processes:
                    mutant = waiting.pop()
                    running[_started(room, package, mutant, time.monotonic() + limit)] = mutant
                multiprocessing.connection.wait([each.process.sentinel for each in running], timeout=1)
                for each in [each for each in running if not each.process.is_alive() or time.monotonic() > each.deadline]:
                    mutant = running.pop(each)
                    yield Result(mutant, each.finish() != 0)
        finally:
            for each in running:
                each.finish()


@contextlib.contextmanager
def _package_as_it_is() -> Iterator[pathlib.Path]:
    """A copy of the installed package: another installation may take its place meanwhile."""
    spec = importlib.util.find_spec("onnxplain")
    assert spec is not None
    assert spec.origin is not None
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        package = pathlib.Path(folder) / "onnxplain"
        shutil.copytree(pathlib.Path(spec.origin).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
        yield package


def _started(room: Room, package: pathlib.Path, mutant: Mutant | None, deadline: float) -> _Run:
    folder = tempfile.TemporaryDirectory(prefix="mutant-")
    packages = pathlib.Path(folder.name)
    shutil.copytree(package, packages / "onnxplain")
    if mutant is not None:
        (packages / installed(mutant.path)).write_text(mutant.source(), encoding="utf-8")
    process = multiprocessing.get_context("fork").Process(target=_test, args=(room, packages))
    process.start()
    return _Run(process, deadline, folder)


def _test(room: Room, packages: pathlib.Path) -> None:
    """Runs the room's tests in this process. Exits with pytest's exit code."""
    os.setsid()
    sys.path.insert(0, str(packages))
    # NOTE: tests start processes as well.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(packages), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.chdir(ROOT)
    with (packages / "output.txt").open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    # NOTE: the slow ones, such as those of other programs that read our logs, take minutes for each mutant.
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={packages / 'tmp'}"]
    # NOTE: without the clean-up of the process, which waits for threads that a mutant may have left.
    os._exit(pytest.main([*options, str(room.tests)]))
