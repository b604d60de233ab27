"""The bytes of a tensor as another dtype."""

from __future__ import annotations

import linecache
from collections.abc import Callable

import onnxruntime
import pytest
import torch
from packaging.version import Version
from parity import check

import onnxplain

BYTES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor]] = {
    "whole-numbers-of-floats": (lambda x: x.view(torch.int32) & 7, torch.randn(2, 4)),
    "bytes-of-floats": (lambda x: x.view(torch.uint8) & 7, torch.randn(2, 4)),
    "floats-of-whole-numbers": (lambda x: x.view(torch.float32) * 2, torch.randn(2, 4).view(torch.int32)),
    "halves-of-large-numbers": (lambda x: x.view(torch.float16) * 2, torch.randn(2, 4).half().view(torch.int64)),
}


@pytest.mark.parametrize("title", BYTES)
def test_bytes_of_floats_need_opset_26(title: str) -> None:
    function, x = BYTES[title]
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(function, (x,), opset_version=25)
    (finding,) = failed.value.findings
    assert (finding.rule.id, finding.rule.needed, finding.rule.asked) == ("OXP3003", 26, 25)
    assert "opset_version=25" in linecache.getline(__file__, finding.location.line)
    if Version(onnxruntime.__version__) >= Version("1.31"):
        check(function, onnxplain.export(function, (x,), opset_version=26), (x,), 0)
