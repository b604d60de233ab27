"""What each case of our corpus tells, as golden files: as given, and with all dims dynamic."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from corpora import OWN, found
from packaging.version import Version
from scoreboard import case as cases
from scoreboard.case import Case
from told import told

import onnxplain

pytestmark = [
    pytest.mark.skipif(Version(torch.__version__).release[:2] != (2, 13), reason="the golden files hold what torch 2.13 decides"),
    pytest.mark.skipif(sys.version_info < (3, 11), reason="Python knows no columns before 3.11"),
]

# NOTE: what these add takes half a minute: weights of 2 GB, and a hundred steps of a loop.
_LONG = {("dynamic", "o37_large_without_external_data"), ("dynamic", "o58_many_steps")}
WAYS: dict[str, dict[str, Any]] = {"given": {}, "dynamic": {"dynamic_shapes": True}}


@pytest.mark.parametrize(
    ("way", "case"),
    [pytest.param(way, case, id=f"{case.name}-{way}") for way in WAYS for case in found(OWN) if (way, case.name) not in _LONG],
)
def test_tells(way: str, case: Case, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    # NOTE: cases import each other's helpers, as scripts in one folder.
    monkeypatch.syspath_prepend(str(OWN))
    torch.manual_seed(0)
    model, args, kwargs, options = cases.build(cases.load(case.path))
    try:
        findings = onnxplain.export(model, args, kwargs=kwargs, **{**options, **WAYS[way]}).diagnostics.findings
    except onnxplain.ExportFailed as failed:
        findings = failed.findings
    golden(f"corpus/{way}/{case.name}.txt", told(findings, __file__))
