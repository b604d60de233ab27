"""The options of findings: the wrong one is named."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from onnxplain.diagnostics import DiagnosticOptions, InvalidArgument, Level


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"verbosity_level": "INFO"}, "verbosity_level"),
        ({"warnings_as_errors": 1}, "warnings_as_errors"),
        ({"levels": [("OXP1001", Level.NOTE)]}, "levels"),
        ({"levels": {"OXP1001": "note"}}, r"levels\['OXP1001'\]"),
        ({"levels": {3: Level.NOTE}}, "levels"),
        ({"select": "OXP1"}, "select"),
        ({"ignore": b"OXP1"}, "ignore"),
        ({"ignore": 3}, "ignore"),
        ({"select": ("OXP1", 3)}, "select"),
        ({"ignore": ("OXP10011",)}, "ignore"),
        ({"ignore": ("oxp1",)}, "ignore"),
    ],
)
def test_the_wrong_option_is_named(options: dict[str, Any], argument: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{argument}: "):
        DiagnosticOptions(**options)


@pytest.mark.parametrize("option", ["levels", "select", "ignore"])
def test_options_name_rules_of_the_book(option: str) -> None:
    for prefix, known in (("OXP", True), ("OXP1", True), ("OXP1001", True), ("OXP9", False), ("OXP1999", False)):
        value: Any = {prefix: Level.NOTE} if option == "levels" else [prefix]
        options = DiagnosticOptions(**{option: value})
        if known:
            options.check_known()
            continue
        with pytest.raises(InvalidArgument, match=f"^{option}: "):
            options.check_known()


def test_what_differs_from_the_defaults() -> None:
    assert DiagnosticOptions().changed() == {}
    options = DiagnosticOptions(verbosity_level=logging.DEBUG, warnings_as_errors=True, select={"OXP1"}, ignore=["OXP1001"])  # type: ignore[arg-type]
    assert options.changed() == {"verbosity_level": 10, "warnings_as_errors": True, "select": ("OXP1",), "ignore": ("OXP1001",)}
