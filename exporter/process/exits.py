"""What code of the model does that would end the process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class ModelExited(RuntimeError):
    """The model's code called `sys.exit` or raised SystemExit. Like any exception of the model it is no reason for the process to end."""


@contextlib.contextmanager
def exits_as_errors() -> Iterator[None]:
    """Raises `ModelExited`, with the stack of the model, for a SystemExit of the model's code."""
    try:
        yield
    except SystemExit as ended:
        raise ModelExited(f"SystemExit({ended.code!r})").with_traceback(ended.__traceback__) from ended
