"""Real architectures: the saved file computes the same as eager PyTorch, also for other values and sizes, and there are no findings."""

from __future__ import annotations

import pathlib

import onnxruntime
import pytest
import torch
from sarif_checks import check_log
from zoo import CASES, Case, Inputs

import onnxplain
from onnxplain.diagnostics import Level


def _run(session: onnxruntime.InferenceSession, inputs: Inputs) -> list[torch.Tensor]:
    feeds = {given.name: tensor.numpy() for given, tensor in zip(session.get_inputs(), inputs.tensors, strict=True)}
    return [torch.from_numpy(output) for output in session.run(None, feeds)]


LONGEST = {"diffusers_unet", "monai_highresnet", "t5", "whisper"}
"""Architectures that are exported with dynamic sizes only."""


@pytest.mark.parametrize(
    ("case", "dynamic"),
    [
        pytest.param(case, dynamic, id=f"{case.name}-{'dynamic' if dynamic else 'static'}")
        for case in CASES
        for dynamic in (False, True)
        if dynamic or case.name not in LONGEST
    ],
)
def test_zoo(case: Case, dynamic: bool, tmp_path: pathlib.Path) -> None:
    pytest.importorskip(case.needs, exc_type=ImportError)
    built = case.build()
    path, sarif = tmp_path / "model.onnx", tmp_path / "model.sarif"
    shapes = dict(case.dynamic) if dynamic else None

    program = onnxplain.export(built.model, built.args, path, kwargs=dict(built.kwargs), dynamic_shapes=shapes, sarif=sarif)

    assert [finding.message for finding in program.diagnostics.findings if finding.level is not Level.NOTE] == []
    check_log(sarif)

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    symbolic = [{dim for dim, size in enumerate(given.shape) if isinstance(size, str)} for given in session.get_inputs()]
    assert symbolic == [set(dims) if dynamic else set() for dims in case.dynamic.values() if dims is not None]

    for inputs in (built.other, *(built.resized if dynamic else ())):
        expected = inputs.outputs_of(built.model)
        actual = _run(session, inputs)
        assert len(actual) == len(expected)
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-4)
