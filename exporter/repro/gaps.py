"""Gaps where something was taken out of a script."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .cuts import Cut
from .removable import Removable

_GAP = re.compile(r"\A\n+|\n{3}(?P<more>\n+)|:\n(?P<first>\n+)(?= )|^(?P<name># \S+\.py\n\n+)", re.MULTILINE)
"""Empty lines at the top, more than two, those below the beginning of a block, and the name of a file of which nothing is left."""


def gaps(removable: Removable) -> Iterator[list[Cut]]:
    """The cuts that close all gaps."""
    found = [Cut(*each.span(each.lastgroup or 0)) for each in _GAP.finditer(removable.parsed.text)]
    if found:
        yield found
