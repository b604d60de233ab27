"""Scripts in these tests are whole and run once; `test_minimise.py` takes lines out of them."""

from __future__ import annotations

import pytest

from onnxplain.diagnostics import Diagnostic
from onnxplain.process import Budget
from onnxplain.repro import minimise
from onnxplain.repro.minimise import Minimised


@pytest.fixture
def whole_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves scripts as long as they are: to make them shorter takes dozens of runs."""

    def unchanged(script: str, finding: Diagnostic, budget: Budget) -> Minimised:
        del finding, budget
        return Minimised(script)

    monkeypatch.setattr(minimise, "minimised", unchanged)
