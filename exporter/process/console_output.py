"""Turns torch's output on standard error during a capture into events of the log. The model's own output stays there."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, TextIO, cast

from onnxplain.diagnostics import DiagnosticContext
from onnxplain.torch_internals import python_frames
from onnxplain.torch_internals.patching import Slot, wrapped
from onnxplain.torch_internals.put_back import put_back

UserSpeaks = Callable[[int], bool]
"""Whether the model's code makes the output. The argument is the number of frames to skip above the function that asks."""


Heard = Callable[[types.FrameType], None]
"""Called with the frame that shows something."""

_HEARD: ContextVar[Heard | None] = ContextVar("_HEARD", default=None)


@contextlib.contextmanager
def user_heard(heard: Heard) -> Iterator[None]:
    """While it is open within `kept`, calls `heard` for what the model's code prints, and for its warnings that the user's filters show."""
    # NOTE: by the streams, since TorchDynamo, which `torch.cond` calls, knows `print` by identity.
    stream, before = _Heard(sys.stdout), _HEARD.get()

    def undo() -> None:
        stream.thread = None
        if sys.stdout is stream:
            sys.stdout = stream.stream
        _HEARD.set(before)

    with put_back(undo):
        _HEARD.set(heard)
        sys.stdout = cast(TextIO, stream)
        # NOTE: Python shows a warning once for each line, and forgets which ones it has shown when filters change.
        with warnings.catch_warnings():
            pass
        yield


@contextlib.contextmanager
def kept(context: DiagnosticContext, user_speaks: UserSpeaks) -> Iterator[None]:
    """Turns torch's warnings, log records and prints in this thread into events of `context`. A nested use changes nothing."""
    if isinstance(sys.stderr, _Filtered) and sys.stderr.thread == threading.get_ident():
        yield
        return
    with _warnings_kept(context, user_speaks), _logs_kept(context), _prints_kept(context, user_speaks):
        yield


@contextlib.contextmanager
def _prints_kept(context: DiagnosticContext, user_speaks: UserSpeaks) -> Iterator[None]:
    filtered = _Filtered(sys.stderr, context, user_speaks)

    def undo() -> None:
        # NOTE: code that has replaced sys.stderr since may restore this object later: it must filter nothing then.
        filtered.thread = None
        if sys.stderr is filtered:
            sys.stderr = filtered.stream

    with put_back(undo):
        sys.stderr = cast(TextIO, filtered)
        yield


@contextlib.contextmanager
def _warnings_kept(context: DiagnosticContext, user_speaks: UserSpeaks) -> Iterator[None]:
    stream = sys.stderr

    def keep(
        show: Callable[..., None],
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        # NOTE: one frame above this function is the dispatcher of `wrapped`.
        if user_speaks(2):
            _tell(python_frames.current(1))
            # NOTE: to the original stream: the filtered one would look for the caller, which is this function.
            show(message, category, filename, lineno, file or stream, line)
        else:
            context.event(f"{category.__name__}: {message}", logging.DEBUG if _is_moot(str(message), category) else logging.WARNING)

    with wrapped(Slot(warnings, "showwarning"), keep):
        yield


@contextlib.contextmanager
def _logs_kept(context: DiagnosticContext) -> Iterator[None]:
    if "TORCH_LOGS" in os.environ:
        # NOTE: the user has asked torch to log.
        yield
        return
    # NOTE: `torch.__trace` writes files for tools, and only if the user asks for them.
    names = [name for name in logging.root.manager.loggerDict if _is_torchs(name) and name != "torch.__trace"]
    handlers = {id(handler): handler for name in names for handler in logging.getLogger(name).handlers}.values()
    keep = _Keep(context)
    # NOTE: pytest (9.2) adds a handler to it and would show hundreds of empty lines; torch writes to it as soon as it has a handler.
    trace = logging.getLogger("torch.__trace")
    listeners = [handler for handler in trace.handlers if not type(handler).__module__.startswith("torch.")]

    def undo() -> None:
        for handler in listeners:
            trace.addHandler(handler)
        for handler in handlers:
            handler.removeFilter(keep)

    with put_back(undo):
        for handler in handlers:
            handler.addFilter(keep)
        for handler in listeners:
            trace.removeHandler(handler)
        yield


class _Keep(logging.Filter):
    """Keeps torch's records of this thread from handlers, and turns each record into an event."""

    def __init__(self, context: DiagnosticContext) -> None:
        super().__init__()
        self._context = context
        self._thread = threading.get_ident()
        self._last: logging.LogRecord | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        # NOTE: a handler of torch's loggers may be one of the user's loggers as well.
        if threading.get_ident() != self._thread or not _is_torchs(record.name):
            return True
        if record is not self._last:
            # NOTE: DEBUG for all levels: torch logs for its developers, and an exception repeats what torch logs before it.
            self._context.event(f"{record.name}: {record.getMessage()}", logging.DEBUG)
        self._last = record
        return False


class _Filtered:
    """Standard error without the text that torch's code prints in this thread."""

    def __init__(self, stream: TextIO, context: DiagnosticContext, user_speaks: UserSpeaks) -> None:
        self.stream = stream
        self.thread: int | None = threading.get_ident()
        self._context = context
        self._user_speaks = user_speaks

    def write(self, text: str) -> int:
        # NOTE: if the user has asked torch to log, torch writes here (torch 2.15; earlier ones keep the stream that they found first).
        if threading.get_ident() != self.thread:
            return self.stream.write(text)
        if (speaks := self._user_speaks(1)) or "TORCH_LOGS" in os.environ:
            if speaks:
                _tell(python_frames.current())
            return self.stream.write(text)
        if text.strip():
            self._context.event(text.strip(), logging.DEBUG)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class _Heard:
    """Standard output that tells who writes to it in this thread."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.thread: int | None = threading.get_ident()

    def write(self, text: str) -> int:
        if threading.get_ident() == self.thread:
            _tell(python_frames.current())
        return self.stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _tell(speaker: types.FrameType | None) -> None:
    """Tells who speaks, if somebody listens."""
    if (heard := _HEARD.get()) is not None and speaker is not None:
        heard(speaker)


def _is_torchs(logger: str) -> bool:
    return logger.split(".")[0] == "torch"


def _is_moot(message: str, category: type[Warning]) -> bool:
    # NOTE: every recurrent layer of torch assigns its list of weights while it runs (torch 2.13, nn/modules/rnn.py).
    return not issubclass(category, UserWarning | RuntimeWarning) or "._flat_weights" in message
