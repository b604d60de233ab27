"""`python -m onnxplain.rules FOLDER` refreshes the pages of the rule book; with `--release VERSION` it freezes a release."""

from __future__ import annotations

import argparse
import pathlib
import sys

from .book import FOLDER, refresh
from .release import NotReleased, release


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m onnxplain.rules", description="Write the pages of the rule book.")
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default=FOLDER, help="the rules folder of a checkout")
    parser.add_argument("--release", metavar="VERSION", help="freeze the unshipped table of RELEASES.md under VERSION")
    arguments = parser.parse_args()
    if arguments.release is None:
        refresh(arguments.folder)
        return
    try:
        release(arguments.release, arguments.folder)
    except NotReleased as error:
        sys.exit(f"Not released: {error}.")


if __name__ == "__main__":
    main()
