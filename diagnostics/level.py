"""How severe a finding is."""

from __future__ import annotations

import enum


class Level(enum.Enum):
    """The SARIF 2.1.0 level of a finding (section 3.27.10); onnxplain never uses `none`."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 for the worst level; sorts findings worst first."""
        return _RANKS[self]


_RANKS = {Level.ERROR: 0, Level.WARNING: 1, Level.NOTE: 2}
