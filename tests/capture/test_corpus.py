"""What each case of our corpus tells, as golden files: as given, and with all dims dynamic."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from corpora import OWN, Corpus, found
from marks import needs_columns
from packaging.version import Version
from scoreboard import case as cases
from scoreboard.case import Case
from scoreboard.run import explaining
from told import told

import onnxplain

pytestmark = [
    pytest.mark.skipif(Version(torch.__version__).release[:2] != (2, 13), reason="the golden files hold what torch 2.13 decides"),
    needs_columns,
]

# NOTE: what these add takes half a minute: weights of 2 GB, and a hundred steps of a loop.
_LONG = {"o37_large_without_external_data", "o58_many_steps"}
_BY_THE_CLOCK = "o41_time_of_day"
"""Whether its outputs differ between two runs depends on the time."""
CASES = found(OWN)


@pytest.mark.slow
@pytest.mark.parametrize("name", [case.name for case in CASES if case.name != _BY_THE_CLOCK])
def test_tells_as_given(name: str, own_corpus: Corpus, golden: Callable[[str, str], None]) -> None:
    golden(f"corpus/given/{name}.txt", own_corpus.outcomes[name][1]["told"])


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES if case.name not in _LONG])
@pytest.mark.falls_back
def test_tells_with_all_dims_dynamic(case: Case, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    # NOTE: cases import each other's helpers, as scripts in one folder.
    monkeypatch.syspath_prepend(str(OWN))
    torch.manual_seed(0)
    model, args, kwargs, options = cases.build(cases.load(case.path))
    try:
        program = onnxplain.export(model, args, kwargs=kwargs, **{**options, **explaining(case), "dynamic_shapes": True})
    except onnxplain.ExportFailed as failed:
        findings = failed.findings
    else:
        findings = program.diagnostics.findings
    golden(f"corpus/dynamic/{case.name}.txt", told(findings, __file__))
