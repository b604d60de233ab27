"""`python -m onnxplain.rules [FOLDER]` writes `CATALOG.md` and `RELEASES.md` in FOLDER anew from the rules."""

from __future__ import annotations

import pathlib
import sys

from .book import refresh

if __name__ == "__main__":
    refresh(*map(pathlib.Path, sys.argv[1:]))
