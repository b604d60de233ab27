"""A process that imports torch once, and runs each script in a copy of itself. It ends with the process that began it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import runpy
import select
import signal
import sys
import threading
import time
from typing import Any, NoReturn

if sys.platform != "win32":
    import resource

SCRIPT = "repro.py"
"""The name of the script in the current folder."""
BUSY = 6.0
"""How many times longer than its processor time a run may take on a machine with other load, or while it sleeps."""
_PULSE = 0.01
"""Seconds between two looks at the copy that runs."""
_LONGEST = 2**16
"""The longest answer of a copy, in bytes: a pipe takes as much from a process that has ended."""


@dataclasses.dataclass(frozen=True)
class Order:
    """What to run: the script in the current folder, for so many seconds of processor time, with or without trials of fixes."""

    seconds: float
    try_fixes: bool


@dataclasses.dataclass(frozen=True)
class Failure:
    """How an export fails.

    Attributes:
        rule: The id of the rule of the first failing finding.
        arguments: Its arguments, as far as they identify the finding.
        file: The file of its place; empty if it has none.
        line: The line of its place; 0 if it has none.
        size: The weights of the model, in bytes.
    """

    rule: str
    arguments: list[Any]
    file: str
    line: int
    size: int


@dataclasses.dataclass(frozen=True)
class Answer:
    """What became of an order.

    Attributes:
        failure: How the export of the script fails; None if it does not, or if there is no export.
        seconds: The processor time that it took.
    """

    failure: Failure | None
    seconds: float


def main(life: int) -> None:
    """Runs orders from standard input, one on each line, and writes an answer for each to standard output. All are JSON.

    Args:
        life: A pipe that ends when the process that began this one does.
    """
    orders, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    _redirect()
    _prepare()
    while True:
        ready, _, _ = select.select([orders.fileno(), life], [], [])
        line = "" if life in ready else orders.readline()
        if not line:
            return
        answer = _run(Order(**json.loads(line)), life)
        answers.write(json.dumps(dataclasses.asdict(answer)) + "\n")
        answers.flush()


def _redirect() -> None:
    """Nobody reads what a script prints, and a script reads nothing."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _end_with(life: int) -> None:
    threading.Thread(target=lambda: (os.read(life, 1), os._exit(1)), daemon=True).start()


def _prepare() -> None:
    """Loads what each export needs. Threads of torch would not be in the copies."""
    import torch

    import onnxplain

    torch.set_num_threads(1)
    # NOTE: what fails needs other libraries than what does not, such as TorchDynamo.
    for model in (torch.nn.Linear(1, 1), lambda x: x if x.sum() > 0 else -x):
        with contextlib.suppress(onnxplain.ExportFailed):
            onnxplain.export(model, (torch.zeros(1, 1),))


def _run(order: Order, life: int) -> Answer:
    answer, told = os.pipe()
    began = time.monotonic()
    number = os.fork()
    if not number:
        _be_copy(order, told, life)
    os.close(told)
    while True:
        found, _, usage = os.wait4(number, os.WNOHANG)
        if found:
            break
        is_alone = bool(select.select([life], [], [], _PULSE)[0])
        if is_alone or time.monotonic() - began > BUSY * order.seconds:
            os.kill(number, signal.SIGKILL)
    # NOTE: what the script has begun is in its group.
    with contextlib.suppress(OSError):
        os.killpg(number, signal.SIGKILL)
    text = os.read(answer, _LONGEST) if select.select([answer], [], [], 0)[0] else b""
    os.close(answer)
    return Answer(Failure(**json.loads(text)) if text else None, usage.ru_utime + usage.ru_stime)


def _be_copy(order: Order, told: int, life: int) -> NoReturn:
    """Runs the script, tells how its export fails, and ends this process."""
    try:
        os.setsid()
        _end_with(life)
        limit = math.ceil(order.seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        # NOTE: if memory runs out, this process is the one to end. Only Linux can be told so.
        with contextlib.suppress(OSError):
            pathlib.Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        failure = _failure(try_fixes=order.try_fixes)
        text = b"" if failure is None else json.dumps(dataclasses.asdict(failure)).encode()
        if len(text) <= _LONGEST:
            os.write(told, text)
    finally:
        os._exit(0)


def _failure(*, try_fixes: bool) -> Failure | None:
    """How the export of the script fails."""
    import onnxplain
    from onnxplain.diagnostics import Rule, stable_arguments
    from onnxplain.torch_internals import modules

    export, sizes = onnxplain.export, [0]

    def measured(model: Any, *args: Any, **keywords: Any) -> Any:
        tensors = modules.named_tensors(model) if hasattr(model, "named_parameters") else ()
        sizes.append(sum(tensor.nbytes for _, tensor in tensors))
        return export(model, *args, **{"try_fixes": try_fixes, **keywords})

    onnxplain.export = measured
    sys.argv = [SCRIPT]
    try:
        runpy.run_path(SCRIPT, run_name="__main__")
    except onnxplain.ExportFailed as failed:
        first = next(finding for finding in failed.log.findings if finding.fails)
        assert isinstance(first.rule, Rule)
        file, line = ("", 0) if first.location is None else (first.location.file, first.location.line or 0)
        is_own = file and os.path.realpath(file) == os.path.realpath(SCRIPT)
        return Failure(first.rule.id, stable_arguments(first.rule), SCRIPT if is_own else file, line, sizes[-1])
    return None
