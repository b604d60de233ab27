"""Processes that begin with torch and onnxplain loaded, for tests that need many of them."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pathlib
import runpy
import signal
import socket
import sys
import threading
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


_EXECUTABLE = """\
#!{python} -S
import json, os, socket, sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"1"], [0, 1, 2])
    server.sendall(json.dumps([os.getcwd(), sys.argv[1:], dict(os.environ)]).encode() + b"\\n")
    sys.exit(int(server.makefile().readline()))
"""


@contextlib.contextmanager
def installed(path: pathlib.Path) -> Iterator[None]:
    """Makes `path` an executable that does what `python -m onnxplain` does, for scripts of a shell that run it often."""
    address = str(path.with_suffix(".socket"))
    path.write_text(_EXECUTABLE.format(python=sys.executable, address=address), encoding="utf-8")
    path.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        thread = threading.Thread(target=_serve, args=(server,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            # NOTE: closing a socket does not end an accept in another thread.
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _serve(server: socket.socket) -> None:
    """Runs the commands that come, one after the other, until the socket ends."""
    with contextlib.suppress(OSError):
        while True:
            caller, _ = server.accept()
            with caller:
                process = _CONTEXT.Process(target=_answer, args=(caller,))
                process.start()
                process.join()
                caller.sendall(f"{process.exitcode}\n".encode())


def _answer(caller: socket.socket) -> None:
    _, streams, *_ = socket.recv_fds(caller, 1, 3)
    for stream, own in enumerate(streams):
        os.dup2(own, stream)
    # NOTE: Python has noted whether the former ones can seek.
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    folder, arguments, environment = json.loads(caller.makefile().readline())
    os.environ.clear()
    _do(folder, ["-m", "onnxplain", *arguments], environment)


def _run(folder: pathlib.Path, command: Sequence[str], environment: dict[str, str]) -> None:
    output = os.open(folder / "out.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(output, stream.fileno())
    _do(folder, command, environment)


def _do(folder: pathlib.Path, command: Sequence[str], environment: dict[str, str]) -> None:
    os.chdir(folder)
    os.environ.update(environment)
    # NOTE: whoever runs the tests in the background, or with nohup, ignores them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    sys.path.insert(0, str(folder))
    if command[0] == "-m":
        sys.argv = list(command[1:])
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = list(command)
        runpy.run_path(command[0], run_name="__main__")
