"""The options of `onnxplain triage` that are sizes."""

from __future__ import annotations

import click
import pytest

from onnxplain.cli import main


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
