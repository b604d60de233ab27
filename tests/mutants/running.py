"""Runs a room's tests against mutants, each in a process and with a copy of the installed package that is its alone."""

from __future__ import annotations

import compileall
import contextlib
import dataclasses
import importlib
import importlib.util
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from typing import TypeAlias

import click
import coverage
import pytest
import torch

from .mutations import Mutant
from .rooms import ROOT, Room, installed

# NOTE: all processes are forked from one that has imported these, which takes eight seconds each time.
_HEAVY = ("onnxscript.function_libs.torch_lib.ops", "torch._dynamo", "torch.export", "onnxruntime", "hypothesis")
# A mutant may take this many times as much of the processor as the room's tests, and so many seconds more, until it counts as caught.
_SLOWER, _SECONDS_MORE = 3, 30
# NOTE: a mutant that only waits takes none of the processor; but other programs slow it down, hence the larger factor by the clock.
_SLOWER_BY_CLOCK = 10

_Order: TypeAlias = dict[str, tuple[bool, float]]
_OUTPUT, _PROFILE = "output.txt", "profile.json"


class BaselineFailed(click.ClickException):
    """The room's tests fail without any mutant, so they say nothing about one."""


@dataclasses.dataclass(frozen=True)
class Result:
    """What the room's tests say to a mutant.

    Attributes:
        mutant: The mutant.
        caught: By which test, or by what else; None where all tests passed.
        executed: Whether a test executes the changed statement, as far as coverage sees.
    """

    mutant: Mutant
    caught: str | None
    executed: bool


@dataclasses.dataclass(frozen=True)
class _Profile:
    """What the room's tests do without a mutant.

    Attributes:
        seconds: How long each test takes, by its id.
        tests: The tests that execute a line, by the file's place among the installed packages and the number of the line.
        processor: The seconds of the processor that all tests take together, without those of other processes.
    """

    seconds: dict[str, float]
    tests: dict[str, dict[int, frozenset[str]]]
    processor: float

    def near(self, mutant: Mutant) -> frozenset[str]:
        """The tests that execute the changed statement. An empty name stands for all of them: the statement runs when they are imported."""
        lines = self.tests.get(str(installed(mutant.path)), {})
        # NOTE: where a test is the first to import a file, what runs then counts as its own; it concerns all that execute the file.
        concerned = lines if mutant.runs_on_import() else mutant.statement()
        return frozenset[str]().union(*(lines.get(line, ()) for line in concerned))

    def order(self, mutant: Mutant, executing: bool) -> _Order:
        """The sort key of each test to run: first those that execute the changed statement, and of these the fastest.

        NOTE: the others run as well, unless only `executing` ones are wanted and there is one. They may depend on what another test has
        cached, or execute the line where coverage does not see it: in a process that they start, or while the exporter traces Python.
        """
        near = self.near(mutant)
        if executing and near and "" not in near:
            return {test: (False, self.seconds[test]) for test in near}
        return {test: (test not in near, seconds) for test, seconds in self.seconds.items()}


@dataclasses.dataclass(frozen=True, eq=False)
class _Run:
    process: multiprocessing.process.BaseProcess
    deadline: float
    folder: tempfile.TemporaryDirectory[str]

    def finish(self) -> str | None:
        """By which test, or by what else, its mutant was caught. Ends all processes that the tests have started."""
        late = self.process.is_alive()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.join()
        output = pathlib.Path(self.folder.name, _OUTPUT).read_text(encoding="utf-8", errors="replace")
        self.folder.cleanup()
        if late or self.process.exitcode == -signal.SIGXCPU:
            return "the time limit"
        failed = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        return None if self.process.exitcode == 0 else next(iter(failed), f"exit code {self.process.exitcode}")


def run(room: Room, mutants: Sequence[Mutant], processes: int, *, executing: bool) -> Iterator[Result]:
    """Runs the room's tests against each mutant, several at a time. Yields the results in the order in which they come.

    Args:
        room: The room.
        mutants: The mutants.
        processes: How many to run at a time.
        executing: Whether to run only the tests that execute the changed statement, as far as coverage sees them; all of them
            if there is none.

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
        profile = _profile(room, package)
        processor = _SLOWER * profile.processor + _SECONDS_MORE
        limit = _SLOWER_BY_CLOCK * (time.monotonic() - began) + _SECONDS_MORE
        waiting = list(reversed(mutants))
        running: dict[_Run, Mutant] = {}
        try:
            while waiting or running:
                while waiting and len(running) < processes:
                    mutant = waiting.pop()
                    plan = _Plan(profile.order(mutant, executing), processor)
                    running[_started(room, package, mutant, plan, time.monotonic() + limit)] = mutant
                multiprocessing.connection.wait([each.process.sentinel for each in running], timeout=1)
                for each in [each for each in running if not each.process.is_alive() or time.monotonic() > each.deadline]:
                    mutant = running.pop(each)
                    yield Result(mutant, each.finish(), bool(profile.near(mutant)))
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
        # NOTE: otherwise each mutant would compile all of its files.
        compileall.compile_dir(package, quiet=1)
        yield package


def _profile(room: Room, package: pathlib.Path) -> _Profile:
    """Runs the room's tests without a mutant.

    Raises:
        BaselineFailed: One fails.
    """
    baseline = _started(room, package, None, None, float("inf"))
    baseline.process.join()
    folder = pathlib.Path(baseline.folder.name)
    shown = (folder / _OUTPUT).read_text(encoding="utf-8")
    profile = folder / _PROFILE
    found = json.loads(profile.read_text(encoding="utf-8")) if profile.exists() else None
    if baseline.finish() is not None or found is None:
        raise BaselineFailed(f"{shown}\nThe tests of {room.name} fail without a mutant.")
    tests = {file: {int(line): frozenset(by) for line, by in lines.items()} for file, lines in found["tests"].items()}
    return _Profile(found["seconds"], tests, found["processor"])


class _Profiler:
    """A plugin of pytest that measures each test, and writes to a file which lines it executes."""

    def __init__(self, packages: pathlib.Path) -> None:
        self.packages = packages
        self.seconds: dict[str, float] = {}
        self.coverage = coverage.Coverage(data_file=None, include=[str(packages / "onnxplain" / "*")], config_file=False)
        # NOTE: not when the session starts, since conftest.py has imported a part of the package by then.
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.coverage.switch_context(item.nodeid)
        began = time.monotonic()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.monotonic() - began
            self.coverage.switch_context("")

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        files = {str(pathlib.Path(file).relative_to(self.packages)): data.contexts_by_lineno(file) for file in data.measured_files()}
        found = {"seconds": self.seconds, "tests": files, "processor": time.process_time()}
        (self.packages / _PROFILE).write_text(json.dumps(found), encoding="utf-8")


@dataclasses.dataclass(frozen=True)
class _Plan:
    """A plugin of pytest that sorts the tests, leaves out those that are not in the plan, and limits the use of the processor.

    Attributes:
        order: The tests to run, with their sort keys.
        processor: The seconds of the processor after which the process ends.
    """

    order: _Order
    processor: float

    def pytest_sessionstart(self) -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(self.processor), hard))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self.order), key=lambda item: self.order[item.nodeid])


def _started(room: Room, package: pathlib.Path, mutant: Mutant | None, plan: _Plan | None, deadline: float) -> _Run:
    folder = tempfile.TemporaryDirectory(prefix="mutant-")
    packages = pathlib.Path(folder.name)
    shutil.copytree(package, packages / "onnxplain")
    if mutant is not None:
        changed = packages / installed(mutant.path)
        changed.write_text(mutant.source(), encoding="utf-8")
        pathlib.Path(importlib.util.cache_from_source(str(changed))).unlink()
    process = multiprocessing.get_context("fork").Process(target=_test, args=(room, packages, plan))
    process.start()
    return _Run(process, deadline, folder)


def _test(room: Room, packages: pathlib.Path, plan: _Plan | None) -> None:
    """Runs the room's tests in this process as planned, or measures them if there is no plan. Exits with pytest's exit code."""
    os.setsid()
    sys.path.insert(0, str(packages))
    # NOTE: tests start processes as well.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(packages), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.chdir(ROOT)
    with (packages / _OUTPUT).open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    # NOTE: the slow ones, such as those of other programs that read our logs, take minutes for each mutant.
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={packages / 'tmp'}"]
    # NOTE: without the clean-up of the process, which waits for threads that a mutant may have left.
    os._exit(pytest.main([*options, *map(str, room.tests)], [plan or _Profiler(packages)]))
