"""The hash of a file: a log records it for each output, and the gate compares it."""

from __future__ import annotations

import hashlib
import pathlib


def sha256(path: pathlib.Path) -> str:
    """The SHA-256 of the file at `path`, in hex. Raises OSError if it cannot be read."""
    with path.open("rb") as file:
        if hasattr(hashlib, "file_digest"):
            return str(hashlib.file_digest(file, "sha256").hexdigest())
        digest = hashlib.sha256()
        while chunk := file.read(1 << 20):
            digest.update(chunk)
        return digest.hexdigest()
