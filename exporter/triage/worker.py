"""The process of a model: loads it, exports it, and ends. After a model of a library that leaves no traces, it goes on with the next."""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import gc
import importlib.metadata
import json
import os
import pathlib
import random
import signal
import sys
import sysconfig
import threading
import traceback
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from onnxplain.diagnostics import Evidence, LogNotSaved, OwnProcess, described_error, replace_file

from . import libraries
from .host import READY, memory_of
from .jobs import Files, Job, Loaded, Loader, Model
from .verdicts import not_loaded

_LEFT_BEHIND = 128 * 2**20
"""Bytes of memory that models may leave behind, until this process looks for garbage."""


def run(job: Job, connection: Connection | None, loader: Loader, threads: int, command_line: str) -> NoReturn:
    """Exports models, and ends this process. Their logs are the only result.

    Args:
        job: The first model.
        connection: Where the others come from, if there are others. The parent learns there that this process can go on.
        loader: What loads a model.
        threads: The threads of torch.
        command_line: The command, for the logs.
    """
    code, parent = 1, os.getppid()
    try:
        import torch

        torch.set_num_threads(threads)
        before, small = _traces(), memory_of(os.getpid())
        _redirect(job.files)
        _tell_lines()
        while _export(job, loader, command_line) and connection is not None and _traces() == before:
            if memory_of(os.getpid()) - small > _LEFT_BEHIND:
                gc.collect()
            connection.send_bytes(READY)
            os.kill(parent, signal.SIGCHLD)
            job = connection.recv()
            _redirect(job.files)
            _tell_lines()
        code = 0
    except EOFError:
        code = 0  # There is no further model.
    except BaseException:  # noqa: BLE001  whatever the model raises, it ends this process only
        traceback.print_exc()
    finally:
        # NOTE: the model may have closed or replaced the streams.
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        # NOTE: threads of the model, and what it has registered for the end of Python, could keep the process alive.
        os._exit(code)


def _traces() -> tuple[object, ...]:
    """What a model may have left behind in its process."""
    import torch

    handlers = [signal.getsignal(number) for number in sorted(signal.valid_signals())]
    modes = (torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled(), torch.get_num_threads())
    return pathlib.Path.cwd(), tuple(sys.path), threading.active_count(), _has_children(), handlers, modes


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _redirect(files: Files) -> None:
    """Lets the process print to its file, and read nothing."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    # NOTE: the file is shortened while it is open, and what comes then belongs to its new end.
    output = os.open(files.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
    for stream, number in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(stream, number)
    for stream in (nothing, output):
        os.close(stream)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  the streams stay open until the process ends
    sys.stdout = open(1, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115  as above
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115  as above


def _tell_lines() -> None:
    """Lets the output tell the lines of Python that ran, after a crash and when a limit ends the process while a model loads."""
    faulthandler.enable()
    # NOTE: an export has a handler that writes its log. What it puts back afterwards is not this one, so it is registered anew.
    faulthandler.unregister(signal.SIGTERM)
    faulthandler.register(signal.SIGTERM, chain=True)


def _export(job: Job, loader: Loader, command_line: str) -> bool:
    """Exports a model, and returns whether that succeeded."""
    import onnxplain

    _seed()
    here = pathlib.Path.cwd()
    model, files, options = job.model, job.files, job.model.options
    facts, process = _Facts(files.facts), OwnProcess()
    try:
        loaded = _loaded(model, loader, process)
        facts.write(loaded.model)
        onnxplain.export(
            loaded.model,
            loaded.args,
            kwargs=loaded.kwargs,
            dynamic_shapes=True if model.dynamic else loaded.dynamic_shapes,
            opset_version=options.opset,
            strategies=options.strategies,
            optimize=options.optimize,
            verify=options.verify,
            try_fixes=options.try_fixes,
            control_flow=options.control_flow,
            sarif=files.log,
            sarif_profile=options.sarif_profile,
            name=model.name,
            repro=files.repro if options.repro else False,
            diagnostic_options=options.diagnostics,
            _caller=loaded.definition,
            _command_line=command_line,
            _settings=options.settings,
            _family=model.family,
        )
        return True
    except onnxplain.ExportFailed:
        return False  # The log says why.
    except (onnxplain.OnnxExporterError, _NotLoaded) as error:
        if isinstance(error, LogNotSaved) or not process.is_here:
            raise  # There can be no log, or it is that of another process.
        from onnxplain.source import locations

        cause = error.__cause__ or error
        place = locations.at_exception(cause) if isinstance(error, _NotLoaded) else Evidence()
        # NOTE: the model may have changed the folder, which paths in the log are relative to.
        os.chdir(here)
        not_loaded(job, _headline(error), cause, place, command_line)
        return False
    finally:
        facts.write()


def _seed() -> None:
    """Gives each model the same random numbers, whichever came before it."""
    import numpy as np
    import torch

    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)


def _headline(error: BaseException) -> str:
    """The first line of an error. Those of the command line are sentences already."""
    return str(error).splitlines()[0]


class _NotLoaded(Exception):
    """There is no model; the cause says why."""


def _loaded(model: Model, loader: Loader, process: OwnProcess) -> Loaded:
    try:
        if model.is_of_library:
            return libraries.build(model.source, model.attribute, model.arguments)
        return loader(model.source, model.attribute, model.arguments)
    except BaseException as error:  # noqa: BLE001  whatever the code of the model raises or exits with, there is no model
        text = described_error(error) if model.is_of_library or not str(error) else str(error)
        # NOTE: a loader's own error has the user's exception as its cause.
        raise _NotLoaded(text) from (error.__cause__ or error)
    finally:
        if not process.is_here:
            # NOTE: code that forks goes on in both processes. Two exports would write one log.
            os._exit(0)


class _Facts:
    """What only this process knows about the model: its number of weights, and what it imports."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._before = frozenset(sys.modules)
        self._weights = 0

    def write(self, model: Any = None) -> None:
        """Writes what is known by now. The model counts its weights, if it can."""
        if model is not None:
            # NOTE: the class of a model may do anything.
            with contextlib.suppress(Exception):
                self._weights = sum(each.numel() for each in model.parameters())
        new = [getattr(module, "__file__", None) for name, module in [*sys.modules.items()] if name not in self._before]
        files = {file for file in new if isinstance(file, str) and _is_users(file)}
        facts = {"weights": self._weights, "files": sorted(map(os.path.abspath, files)), "packages": _packages([*sys.modules])}
        with contextlib.suppress(OSError):
            replace_file(self._path, json.dumps(facts).encode(errors="backslashreplace"), durable=False)


def _is_users(file: str) -> bool:
    """Whether a file belongs neither to Python nor to an installed package, whose versions count instead."""
    return not os.path.abspath(file).startswith(_installed())  # noqa: PTH100  pathlib is slow here, and resolves links


@functools.cache
def _installed() -> tuple[str, ...]:
    """The folders of Python and of installed packages."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple(sorted({os.path.join(sysconfig.get_path(name), "") for name in names}))  # noqa: PTH118  with a separator at its end


@functools.cache
def homes() -> Mapping[str, Sequence[str]]:
    """The distributions of each package that can be imported."""
    return importlib.metadata.packages_distributions()


def _packages(modules: Sequence[str]) -> list[str]:
    """The distributions that modules come from."""
    return sorted({home for package in {module.partition(".")[0] for module in modules} for home in homes().get(package, ())})
