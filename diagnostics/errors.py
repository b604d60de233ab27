"""The base class of the exceptions that users catch, and those that concern no export."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any


class OnnxExporterError(RuntimeError):
    """Base class of every exception that onnxplain raises on purpose. Like torch.onnx's class of this name, it is a RuntimeError."""


class InvalidArgument(OnnxExporterError, TypeError, ValueError):
    """An argument has the wrong type or value. The text names the argument, the expected value and the actual one."""


class UnreadableLog(OnnxExporterError, ValueError):
    """A file is not a SARIF log of onnxplain, or cannot be read. The text names the file and the reason."""

    def __init__(self, path: str | os.PathLike[str], why: str) -> None:
        super().__init__(f"{os.fspath(path)} is not a log that onnxplain can read: {why}")


class Interruption(BaseException):
    """Base class of what onnxplain itself raises to end work from outside, such as a signal. The code of a model does not raise it."""


class RaisedByModel(RuntimeError):
    """Stands for an exception of the model's code that is no `Exception`, or that cannot be looked at. `chain` ends here.

    Attributes:
        name: The name of the exception's class.
    """

    def __init__(self, name: str, message: str) -> None:
        self.name = name
        super().__init__(message)


def attribute(error: BaseException, name: str) -> Any:
    """An attribute that Python gives to every exception, such as `__cause__`, whatever the class of this one defines."""
    return vars(BaseException)[name].__get__(error)


def chain(error: BaseException) -> Iterator[BaseException]:
    """`error` and the exceptions that it was raised from, outermost first."""
    seen: set[int] = set()
    present: BaseException | None = error
    while present is not None and id(present) not in seen:
        seen.add(id(present))
        yield present
        ends = issubclass(type(present), RaisedByModel)
        present = None if ends else attribute(present, "__cause__") or attribute(present, "__context__")


def interruption(error: BaseException) -> BaseException | None:
    """What interrupted the work that then raised `error`: Ctrl-C or a signal. None if nothing did.

    Code that cleans up after an interrupt may raise another exception, such as torch's dispatch modes.
    """
    # NOTE: `isinstance` reads `__class__`, which a user's class may define as a property that raises.
    return next((each for each in chain(error) if not issubclass(type(each), (Exception, SystemExit))), None)
