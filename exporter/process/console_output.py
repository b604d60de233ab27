"""What torch says on standard error while it captures becomes events of the log. What the model's own code says still goes out."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TextIO, cast

from onnxplain.diagnostics import DiagnosticContext

UserSpeaks = Callable[[int], bool]
"""Whether the model's own code speaks, so many frames above the function that asks."""


@contextlib.contextmanager
def kept(context: DiagnosticContext, user_speaks: UserSpeaks) -> Iterator[None]:
    """Turns torch's warnings, log records and prints into events of `context`. Inside of itself it does nothing."""
    if isinstance(sys.stderr, _Filtered):
        yield
        return
    filtered = cast(TextIO, _Filtered(sys.stderr, context, user_speaks))
    with _warnings_kept(context, user_speaks), _logs_kept(context), contextlib.redirect_stderr(filtered):
        yield


@contextlib.contextmanager
def _warnings_kept(context: DiagnosticContext, user_speaks: UserSpeaks) -> Iterator[None]:
    with warnings.catch_warnings():
        show, stream = warnings.showwarning, sys.stderr

        def keep(
            message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None, line: str | None = None
        ) -> None:
            if user_speaks(1):
                # NOTE: to the real stream: the filtered one would take us for the speaker.
                show(message, category, filename, lineno, file or stream, line)
            else:
                context.event(f"{category.__name__}: {message}", logging.DEBUG if _is_moot(str(message), category) else logging.WARNING)

        warnings.showwarning = keep
        yield


@contextlib.contextmanager
def _logs_kept(context: DiagnosticContext) -> Iterator[None]:
    if "TORCH_LOGS" in os.environ:
        # NOTE: the user asked torch to log.
        yield
        return
    # NOTE: `torch.__trace` writes files for tools, and only if the user asks.
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "torch" and name != "torch.__trace"]
    loggers = [logger for logger in map(logging.getLogger, names) if logger.handlers]
    saved = [list(logger.handlers) for logger in loggers]
    ours = _EventHandler(context)
    # NOTE: pytest (9.2) listens to it, too, and would show hundreds of empty lines; torch writes them as soon as anybody listens.
    trace = logging.getLogger("torch.__trace")
    listeners = [handler for handler in trace.handlers if not type(handler).__module__.startswith("torch.")]
    try:
        for logger in loggers:
            logger.handlers = [ours]
        for handler in listeners:
            trace.removeHandler(handler)
        yield
    finally:
        for handler in listeners:
            trace.addHandler(handler)
        for logger, handlers in zip(loggers, saved, strict=True):
            logger.handlers = handlers


class _EventHandler(logging.Handler):
    def __init__(self, context: DiagnosticContext) -> None:
        super().__init__()
        self._context = context

    def emit(self, record: logging.LogRecord) -> None:
        # NOTE: at whatever level: what torch logs is written for its developers, and what it logs before an exception is in that, too.
        self._context.event(f"{record.name}: {record.getMessage()}", logging.DEBUG)


class _Filtered:
    """Standard error as it is, without what torch's own code prints there."""

    def __init__(self, stream: TextIO, context: DiagnosticContext, user_speaks: UserSpeaks) -> None:
        self._stream = stream
        self._context = context
        self._user_speaks = user_speaks

    def write(self, text: str) -> int:
        if self._user_speaks(1):
            return self._stream.write(text)
        if text.strip():
            self._context.event(text.strip(), logging.DEBUG)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _is_moot(message: str, category: type[Warning]) -> bool:
    # NOTE: every recurrent layer of torch's own assigns its list of weights while it runs (torch 2.13, nn/modules/rnn.py).
    return not issubclass(category, UserWarning | RuntimeWarning) or "._flat_weights" in message
