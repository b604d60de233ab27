"""The options of `onnxplain triage`: those that are sizes, and what the engine gets."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import click
import pytest
from click.testing import CliRunner

from onnxplain.cli import main
from onnxplain.triage import Limits, Workers


@pytest.mark.parametrize(
    ("given", "expected"), [("4GB", 4 * 2**30), ("1.5 gib", 3 * 2**29), ("200m", 200 * 2**20), ("2K", 2048), ("7", 7), (None, None)]
)
def test_sizes_are_bytes(given: str | None, expected: int | None) -> None:
    command = main.get_command(click.Context(main), "triage")
    assert command is not None
    options = [] if given is None else ["--memory-limit", given]
    assert command.make_context("triage", ["nets.py", *options]).params["memory_limit"] == expected


@pytest.mark.parametrize("given", ["", "much", "-4GB", "4XB", "1.GB"])
def test_other_texts_are_refused(given: str) -> None:
    command = main.get_command(click.Context(main), "triage")
    assert command is not None
    with pytest.raises(click.BadParameter):
        command.make_context("triage", ["nets.py", "--memory-limit", given])


def test_the_engine_gets_jobs_and_limits(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that runs nothing stands in for the one on this machine."""
    given: list[object] = []

    def run_here(jobs: Sequence[Any], limits: Limits, workers: Workers) -> Iterator[Any]:
        given.extend([[job.model.name for job in jobs], limits, workers.number])
        return iter(())

    monkeypatch.setattr("onnxplain.cli.triage.run_here", run_here)
    (folder / "nets.py").write_text("def build(): ...\n\n\ndef build_large(): ...\n", encoding="utf-8")
    options = ("--jobs", "3", "--time-limit", "7", "--memory-limit", "1GB")
    result = CliRunner().invoke(main, ["triage", "nets.py", *options])
    assert result.exit_code == 0, result.output
    assert given == [["nets:build", "nets:build_large"], Limits(7, 2**30), 3]
    given.clear()
    assert CliRunner().invoke(main, ["triage", "nets.py", *options, "--address", "auto"]).exit_code == 2
    assert not given
