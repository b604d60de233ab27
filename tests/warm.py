"""Processes that begin with torch and onnxplain loaded, for tests that need many of them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pathlib
import runpy
import signal
import sys
from collections.abc import Iterator, Sequence
from multiprocessing.process import BaseProcess

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["torch", "onnxplain.api", "onnxplain.pipeline", "onnxplain.cli.export"])


@contextlib.contextmanager
def started(folder: pathlib.Path, command: Sequence[str], environment: dict[str, str] | None = None) -> Iterator[BaseProcess]:
    """Runs `python COMMAND` in `folder`; its output goes to `out.txt` there. Kills the process in the end.

    Args:
        folder: The current folder of the process.
        command: A script, or `-m` and a module, and its arguments.
        environment: Variables to add.
    """
    process = _CONTEXT.Process(target=_run, args=(folder, command, environment or {}))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _run(folder: pathlib.Path, command: Sequence[str], environment: dict[str, str]) -> None:
    os.chdir(folder)
    output = os.open("out.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(output, stream.fileno())
    os.environ.update(environment)
    # NOTE: whoever runs the tests in the background ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path.insert(0, str(folder))
    if command[0] == "-m":
        sys.argv = list(command[1:])
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(command)
        runpy.run_path(command[0], run_name="__main__")
