"""Rules that tests define."""

from __future__ import annotations

import types
from collections.abc import Sequence

from onnxplain.diagnostics import Added, HistoryEvent, Level, Rule

PAGE = """Something is odd.

What happened:
    It happened.

Why it matters:
    It matters.

How to fix it:
    Fix it.

Example:
    ```python
    x = 1  # OXP7901
    ```

    ```python
    x = 2
    ```
"""


def make(
    id: str = "OXP7901",
    level: Level = Level.ERROR,
    history: Sequence[HistoryEvent] = (Added("1.0"),),
    message: str = "The '{thing}' is odd.",
    doc: str = PAGE,
    fields: dict[str, object] | None = None,
    name: str = "Odd",
    volatile: object = (),
) -> type[Rule]:
    """A rule, as a class statement makes it."""
    annotations = {"thing": str} if fields is None else fields
    body = {"__doc__": doc, "__module__": __name__, "message": message, "volatile": volatile, "__annotations__": annotations}
    return types.new_class(name, (Rule,), {"id": id, "level": level, "history": history}, lambda namespace: namespace.update(body))
