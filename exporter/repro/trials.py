"""Runs many scripts, each in a copy of one process that has imported torch."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import select
import subprocess
import sys
from collections.abc import Iterator

from . import trial, trial_host
from .trial_host import Answer, Failure, Order

_START = 300.0
"""How many seconds the process may take to import torch."""
_GRACE = 5.0
"""How many seconds longer than a script may run the process may take to stop it."""


class Unable(Exception):
    """No scripts can be run in this way; the text is a clause that says why."""


class Trials:
    """A process that runs scripts in an empty folder. Make it with `trials`."""

    def __init__(self, process: subprocess.Popen[str], folder: pathlib.Path) -> None:
        self._process = process
        self._path = folder / trial_host.SCRIPT
        self._patience = _START

    def run(self, script: str, seconds: float, *, try_fixes: bool) -> Answer:
        """Runs a script for at most so many seconds of processor time. Raises `Unable` if the process has ended or does not answer."""
        self._path.write_text(script, encoding="utf-8", errors="backslashreplace")
        orders, answers = self._process.stdin, self._process.stdout
        assert orders is not None
        assert answers is not None
        try:
            orders.write(json.dumps(dataclasses.asdict(Order(seconds, try_fixes))) + "\n")
            orders.flush()
            ready, _, _ = select.select([answers], [], [], trial_host.BUSY * seconds + _GRACE + self._patience)
            text = answers.readline() if ready else ""
        except OSError as error:
            raise Unable("the process that runs it ended") from error
        if not text:
            raise Unable("the process that runs it ended" if ready else "the process that runs it does not answer")
        self._patience = 0.0
        told = json.loads(text)
        failure = None if told["failure"] is None else Failure(**told["failure"])
        return Answer(failure, told["seconds"])


@contextlib.contextmanager
def trials() -> Iterator[Trials]:
    """The process, which ends with the block. Raises `Unable` if this system has no such processes."""
    if not hasattr(os, "fork"):
        raise Unable("this system cannot fork processes")
    with trial.empty_folder() as folder:
        life, alive = os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-c", f"from {trial_host.__name__} import main; main({life})"],
            cwd=folder,
            env=trial.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            pass_fds=[life],
            # NOTE: Ctrl-C reaches the export, which then ends this process.
            start_new_session=True,
        )
        os.close(life)
        try:
            yield Trials(process, folder)
        finally:
            # NOTE: at the end of the pipe, the process and its copies end themselves.
            os.close(alive)
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    process.kill()
    with process:
        pass
