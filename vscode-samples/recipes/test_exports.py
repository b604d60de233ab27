"""Every models/*.py exports, and computes in ONNX Runtime what it computes in PyTorch. For your tests; pytest shows the findings."""

from __future__ import annotations

import pathlib
import runpy

import pytest

from onnxplain.testing import assert_exports

MODELS = pathlib.Path("models")


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.py")), ids=lambda path: path.stem)
def test_exports(path: pathlib.Path) -> None:
    model, args, kwargs, dynamic_shapes = (*runpy.run_path(str(path))["build"](), None, None)[:4]
    assert_exports(model, args, kwargs=kwargs, dynamic_shapes=dynamic_shapes)
