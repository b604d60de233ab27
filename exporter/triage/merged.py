"""The logs of all models as SARIF files with a run for each model, within the limits of GitHub code scanning."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

from onnxplain.diagnostics import UnreadableLog, opened_sarif, replace_file

RUN_LIMIT = 20
RESULT_LIMIT = 25_000
"""The most runs and results that GitHub takes in one file."""
SIZE_LIMIT = 32 * 10**6
"""Bytes of a file: readers of onnxplain take 64 MB."""
_FILES = "triage-*.sarif"


def write(logs: Iterable[pathlib.Path], folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes the runs of `logs` to `triage-1.sarif`, `triage-2.sarif` and so on, in place of those of an earlier triage.

    Raises:
        OSError: A file cannot be written.
    """
    made: list[pathlib.Path] = []
    for content in _contents(logs):
        path = folder / f"triage-{len(made) + 1}.sarif"
        replace_file(path, content.encode())
        made.append(path)
    for path in folder.glob(_FILES):
        if path not in made:
            path.unlink()
    return made


def _contents(logs: Iterable[pathlib.Path]) -> Iterator[str]:
    head: dict[str, Any] = {}
    runs: list[str] = []
    results = 0
    for log in logs:
        try:
            with opened_sarif(log) as document:
                head = {key: value for key, value in document.items() if key != "runs"}
                of_log = [(json.dumps(run), len(run["results"])) for run in document["runs"]]
        except UnreadableLog:
            continue  # It was removed, and the next triage exports its model again.
        for text, count in of_log:
            if runs and (len(runs) == RUN_LIMIT or results + count > RESULT_LIMIT or sum(map(len, runs)) + len(text) > SIZE_LIMIT):
                yield _joined(head, runs)
                runs, results = [], 0
            runs.append(text)
            results += count
    if runs:
        yield _joined(head, runs)


def _joined(head: dict[str, Any], runs: list[str]) -> str:
    return f'{json.dumps(head)[:-1]}, "runs": [{",".join(runs)}]}}\n'
