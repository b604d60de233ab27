"""`python -m onnxplain.rules` writes `CATALOG.md` and `RELEASES.md` anew from the rules."""

from __future__ import annotations

from .book import refresh

if __name__ == "__main__":
    refresh()
