"""Whether a model has changed since its last export: its source, the versions of what it imports, its options."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import pathlib
import platform

from onnxplain.diagnostics import sha256

from .jobs import Limits, Model

_PACKAGES = ("onnxplain", "torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime", "numpy")
"""What every export depends on, whether or not its process came to tell."""


@dataclasses.dataclass(frozen=True)
class Facts:
    """What a model depended on: the files that it imported, and the packages."""

    files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: pathlib.Path) -> Facts:
        """The facts that a worker has written; none if it did not come to write them."""
        try:
            facts = json.loads(path.read_bytes())
            return cls(tuple(map(str, facts["files"])), tuple(map(str, facts["packages"])))
        except (OSError, ValueError, KeyError, TypeError):
            return cls()


def key(model: Model, facts: Facts, limits: Limits | None) -> str:
    """A hash of all that the outcome of a model depends on. The limits count for models that were beyond them."""
    files = {model.source, *facts.files} if model.source.endswith(".py") else {*facts.files}
    # NOTE: where an option comes from does not matter.
    model = dataclasses.replace(model, options=dataclasses.replace(model.options, settings=()))
    parts = (
        repr(dataclasses.astuple(model)),
        repr(limits),
        platform.python_version(),
        [(file, _content(file)) for file in sorted(files)],
        [(name, _versions(name)) for name in sorted({*_PACKAGES, *facts.packages})],
    )
    return hashlib.sha256(json.dumps(parts).encode(errors="backslashreplace")).hexdigest()


def _content(file: str) -> str:
    try:
        return sha256(pathlib.Path(file))
    except OSError:
        return ""


@functools.cache
def _versions(package: str) -> str:
    """The version of a package. Ours may change without another version, while it is developed."""
    try:
        found = importlib.metadata.distribution(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
    record = found.read_text("RECORD") if package == "onnxplain" else None
    return found.version if record is None else f"{found.version} {hashlib.sha256(record.encode()).hexdigest()}"
