"""Runs a script in an empty folder and compares its failure with that of the export."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from onnxplain.diagnostics import Diagnostic, Temporary, make_folder
from onnxplain.process import Budget
from onnxplain.source import locations

_LEAST_SECONDS = 60.0
"""How long a script may run at least, in seconds, even if less of the budget is left: its process has to load torch first."""

_SCRIPT = """\
import os, runpy, threading
parent = os.dup(0)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
threading.Thread(target=lambda: (os.read(parent, 1), os._exit(1)), daemon=True).start()
runpy.run_path("repro.py", run_name="__main__")
"""
"""A program that runs the script, and ends with the process that started it: its standard input ends then."""

_FINDING = re.compile(r"ExportFailed: error\[(OXP\d+)\]")
_PLACE = re.compile(r"^\s*--> (.+?):(\d+)", re.MULTILINE)


def difference(script: str, finding: Diagnostic, budget: Budget) -> str:
    """How the end of a script differs from a finding, in a sentence; an empty text if it ends with that finding.

    Args:
        script: The script, which is run.
        finding: The finding.
        budget: How long the script may run.
    """
    wanted = finding.rule.id
    limit, began = max(_LEAST_SECONDS, budget.seconds), time.monotonic()
    with empty_folder() as folder:
        path = folder / "repro.py"
        path.write_text(script, encoding="utf-8", errors="backslashreplace")
        read, write = os.pipe()
        try:
            ran = subprocess.run(
                [sys.executable, "-c", _SCRIPT],
                cwd=folder,
                env=environment(),
                stdin=read,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"This script was stopped after {limit:.0f} s; whether it fails with {wanted} is not known."
        finally:
            budget.spend(time.monotonic() - began)
            os.close(read)
            os.close(write)
    found = _FINDING.search(ran.stderr)
    if found is None:
        ended = (ran.stderr.strip().splitlines() or ["no exception"])[-1]
        return f"This script does not fail with {wanted}: it ends with {ended if ran.returncode else 'no exception'}"
    if found[1] != wanted:
        return f"This script fails with {found[1]}, not with {wanted}."
    place = _PLACE.search(ran.stderr, found.end())
    if place is not None and place[1] == path.name and not is_line_of(script.splitlines()[int(place[2]) - 1], finding):
        return f"This script fails with {wanted}, at another line than the model."
    return ""


def is_line_of(line: str, finding: Diagnostic) -> bool:
    """Whether a line of a script is the one that a finding is at. A finding at the call of the export is at that of the script."""
    expected = finding.location.snippet if finding.location is not None else ""
    # NOTE: the script's comments may lack paths and strings of the user.
    return not expected or line.strip().partition("#")[0] == expected.partition("#")[0] or "onnxplain.export(" in line


@contextlib.contextmanager
def empty_folder() -> Iterator[pathlib.Path]:
    """A temporary folder. If this process is killed, the next export removes the folder."""
    held = Temporary(pathlib.Path(tempfile.gettempdir()), make_folder)
    try:
        yield held.path
    finally:
        held.remove()


def environment() -> dict[str, str]:
    """The environment without the paths that lead to the user's modules."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    kept = [path for path in paths if path and locations.origin(str(pathlib.Path(path, "_"))) is not locations.Origin.USER]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(kept), "PYTHONIOENCODING": "utf-8"}
