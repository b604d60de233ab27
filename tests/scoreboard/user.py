"""A user's script for a case. A copy beside the case runs instead of it, so that the call is also in the user's checkout."""

from __future__ import annotations

from typing import Any

import onnxplain


def export(*args: Any, **kwargs: Any) -> onnxplain.ONNXProgram:
    """The program of `onnxplain.export`."""
    program = onnxplain.export(*args, **kwargs)
    assert program is not None
    return program
