"""What a user's own script does with a case: a copy of it beside the case is taken for it, so that the call, too, is in the user's checkout."""

from __future__ import annotations

from typing import Any

import onnxplain


def export(*args: Any, **kwargs: Any) -> onnxplain.ONNXProgram:
    """The program of `onnxplain.export`."""
    program = onnxplain.export(*args, **kwargs)
    assert program is not None
    return program
