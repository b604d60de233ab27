"""The base class of the exceptions that users catch, and those that concern no export."""

from __future__ import annotations

import os


class OnnxExporterError(RuntimeError):
    """Base class of every exception that onnxplain raises on purpose. Like torch.onnx's class of this name, it is a RuntimeError."""


class InvalidArgument(OnnxExporterError, TypeError, ValueError):
    """An argument has the wrong type or value. The text names the argument, the expected value and the actual one."""


class UnreadableLog(OnnxExporterError, ValueError):
    """A file is not a SARIF log of onnxplain, or cannot be read. The text names the file and the reason."""

    def __init__(self, path: str | os.PathLike[str], why: str) -> None:
        super().__init__(f"{os.fspath(path)} is not a log that onnxplain can read: {why}")
