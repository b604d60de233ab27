"""The versions of the software that an export depends on."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from importlib import metadata

import torch

_PACKAGES = ("onnxplain", "torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime")


@functools.cache
def versions() -> Mapping[str, str]:
    """The versions of Python, the platform and the packages, by name."""
    found = {"python": platform.python_version(), "platform": platform.platform(), **{name: _version(name) for name in _PACKAGES}}
    # NOTE: torch's distribution version lacks the build, such as +cpu or +cu130.
    return {**found, "torch": str(torch.__version__)}


def _version(package: str) -> str:
    """The version of a package, or of the distribution that has it, such as onnxruntime-gpu."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        found = metadata.packages_distributions().get(package.replace("-", "_"), ())
        return " ".join(f"{name} {metadata.version(name)}" for name in found) or "unknown"
