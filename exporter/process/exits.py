"""What code of the model does that would end the process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from onnxplain.diagnostics import Interruption, OwnProcess, RaisedByModel, attribute, chain, interruption, message_of, type_name
from onnxplain.torch_internals import patching, python_frames

_KNOWN = ("__traceback__", "__cause__", "__context__", "__suppress_context__")
"""The attributes of an exception that everybody reads who handles it."""


@contextlib.contextmanager
def exits_as_errors(is_users: Callable[[str], bool]) -> Iterator[None]:
    """Raises `RaisedByModel`, with the stack of the model, for what the model's code raises and `except Exception` does not catch.

    Like any exception of the model, it is no reason for the process to end: SystemExit, which stands for `os._exit` as well, and what a
    `raise` in the user's files raises. What comes from outside passes: Ctrl-C, signals, and exceptions that another thread or an event loop
    puts into a running line.

    In a process that the model has forked, it ends the export with `Forked`, however the model's code ends there.

    Args:
        is_users: Whether a file is the user's.
    """
    process = OwnProcess()

    def end(original: Callable[[int], None], status: int) -> None:
        if not process.is_here:
            original(status)
        raise SystemExit(status)

    try:
        with patching.wrapped(patching.Slot(os, "_exit"), end):
            yield
        process.check()
    except (KeyboardInterrupt, Interruption):
        raise
    except BaseException as error:
        # NOTE: the model may raise any class, and may call `sys.exit`.
        process.check()
        ended = _ended(error, is_users)
        if ended is None:
            raise
        raise RaisedByModel(type_name(ended), message_of(ended)).with_traceback(attribute(ended, "__traceback__")) from None


def _ended(error: BaseException, is_users: Callable[[str], bool]) -> BaseException | None:
    """The exception of the model's code that `RaisedByModel` has to stand for; None if it need not."""
    # NOTE: code that cleans up may have raised `error` from it, such as torch's dispatch modes.
    stopped = interruption(error)
    if stopped is not None:
        ours = issubclass(type(stopped), (KeyboardInterrupt, Interruption))
        return stopped if not ours and python_frames.is_raised_in(stopped, is_users) else None
    if issubclass(type(error), SystemExit):
        return error
    return next((each for each in chain(error) if not _can_be_looked_at(each)), None)


def _can_be_looked_at(error: BaseException) -> bool:
    """Whether the exception has the class, the name and the attributes that Python gives it: everybody who handles it asks for them."""
    try:
        same = all(getattr(error, name) is attribute(error, name) for name in _KNOWN)
        return same and issubclass(error.__class__, BaseException) and isinstance(type(error).__name__, str)
    except (KeyboardInterrupt, Interruption):
        raise
    except BaseException:  # noqa: BLE001  the class is the user's
        # NOTE: as above.
        return False
