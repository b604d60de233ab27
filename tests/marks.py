"""Marks for tests of what an older Python or ONNX Runtime cannot do."""

from __future__ import annotations

import sys

import onnxruntime
import pytest
from packaging.version import Version

IS_3_11 = sys.version_info >= (3, 11)

needs_columns = pytest.mark.skipif(not IS_3_11, reason="Python 3.10 does not tell which part of a line runs")

needs_pathlib = pytest.mark.skipif(not IS_3_11, reason="pathlib of Python 3.10 holds the functions of os and io, which are then not seen")

_IS_OLD_RUNTIME = Version(onnxruntime.__version__) < Version("1.24")
_TOO_OLD = "ONNX Runtime 1.23, the last one for Python 3.10, cannot run it"

needs_runtime = pytest.mark.skipif(_IS_OLD_RUNTIME, reason=_TOO_OLD)


def skip_if_old_runtime(name: str, *needing: str) -> None:
    """Skips a test with a parameter that is among those that need a newer ONNX Runtime."""
    if _IS_OLD_RUNTIME and name in needing:
        pytest.skip(_TOO_OLD)
