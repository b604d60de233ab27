"""The folder or the database of a triage, where a command takes logs."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import click


def of_triages(logs: Sequence[pathlib.Path]) -> tuple[tuple[pathlib.Path, ...], frozenset[tuple[str, str]]]:
    """The logs, with those of its models in place of a triage. And the models and fingerprints of the findings that are flaky there.

    Raises:
        click.UsageError: A folder is not that of a triage.
    """
    if not any(path.is_dir() or path.suffix == ".sqlite" for path in logs):
        return tuple(logs), frozenset()
    from onnxplain.triage import TriageError, expanded

    try:
        found, flaky = expanded(logs)
    except TriageError as error:
        raise click.UsageError(str(error)) from error
    return tuple(found), flaky
