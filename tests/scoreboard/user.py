"""What a script of a user does with a case. A copy beside the case is taken for it, so that the call is in the user's checkout, too."""

from __future__ import annotations

from typing import Any

import onnxplain


def export(*args: Any, **kwargs: Any) -> onnxplain.ONNXProgram:
    """The program of `onnxplain.export`."""
    program = onnxplain.export(*args, **kwargs)
    assert program is not None
    return program
