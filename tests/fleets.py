"""Models for tests of triages, as files on disk, and what a triage tells of them."""

from __future__ import annotations

import contextlib
import json
import pathlib
import sqlite3
from typing import Any

from click.testing import CliRunner, Result

# NOTE: each triage imports them in a process of its own, unless this one has them.
import onnxplain.api
import onnxplain.pipeline  # noqa: F401
from onnxplain.cli import main
from onnxplain.diagnostics import gather, read_log, read_logs
from onnxplain.triage import clusters
from onnxplain.triage.state import State

MODELS = """\
import ctypes
import os
import shutil
import signal
import sys
import time

import torch


class Net(torch.nn.Module):
    def __init__(self, end):
        super().__init__()
        self.end = end
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        if self.end == "exit":
            ctypes.CDLL(None)._exit(0)
        elif self.end == "crash":
            ctypes.string_at(0)  # crashes
        elif self.end == "loop":
            while True:  # loops
                pass
        elif self.end == "wait":
            time.sleep(1000)
        elif self.end == "print":
            os.write(1, b"\\xff\\xfe\\x1b[31m\\r" * 1000)
            print("\\ud800\\0")
        elif self.end == "leave":
            os.chdir("/")
            os.closerange(3, 200)
        elif self.end == "fork" and os.fork() == 0:
            time.sleep(1000)
        elif self.end == "branch" and x.sum() > 0:  # branches
            return x
        elif self.end == "parent":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(1000)
        return self.layer(x)


def make(end="healthy", size=4):
    return Net(end), (torch.ones(2, size),)


def raises():
    raise LookupError("no `a` | b")  # raises


def exits():
    sys.exit(0)


def interrupts():
    raise KeyboardInterrupt  # interrupts


def folderless():
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir(os.getcwd())
    return make()


def forks():
    child = os.fork()
    if child and os.waitpid(child, 0)[1]:
        raise ChildProcessError
    return make()


def removes():
    shutil.rmtree("triage")
    return make()


def hangs():
    time.sleep(1000)  # hangs


def number():
    return 3


"""
ENDS = ("exit", "crash", "loop", "wait", "print", "leave", "fork", "branch", "parent", "healthy")
MODELS += "".join(f"def build_{end}():\n    return make({end!r})\n\n\n" for end in ENDS)


def triage(*args: str) -> Result:
    """The result of `onnxplain triage ARGS`."""
    return CliRunner().invoke(main, ["triage", *args])


def verdicts(folder: pathlib.Path) -> list[tuple[str, str]]:
    """Names and outcomes in the database of a triage, in the order in which they came."""
    with sqlite3.connect(folder / "triage.sqlite") as connection:
        return connection.execute("SELECT name, outcome FROM verdicts ORDER BY number").fetchall()


def causes(folder: pathlib.Path) -> dict[str, tuple[str, ...]]:
    """The causes of failing findings in the database of a triage, with their models in order. The page has the same."""
    with contextlib.closing(State(folder)) as state:
        known = state.last().values()
    found = {each.cause: tuple(sorted(each.models)) for each in clusters.clusters(each.verdict for each in known)}
    fleet = gather(read_logs([each.verdict.log for each in known]))
    assert {each.cause[1]: tuple(sorted(each.blocked)) for each in fleet.clusters if each.blocked} == found
    return found


def results(log: pathlib.Path) -> list[dict[str, Any]]:
    """The results of a log."""
    found: list[dict[str, Any]] = json.loads(log.read_text(encoding="utf-8"))["runs"][0]["results"]
    return found


def events(log: pathlib.Path) -> list[str]:
    """The events of a log."""
    return [event.text for event in read_log(log).events]


def lines_of(mark: str) -> int:
    """The line of `MODELS` that ends with a comment."""
    return next(number for number, line in enumerate(MODELS.splitlines(), start=1) if line.endswith(f"# {mark}"))
