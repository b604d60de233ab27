"""What an export loads, and what it leaves as it was: garbage collection included."""

from __future__ import annotations

import gc
import pathlib
import subprocess
import sys

import pytest
import torch
from torch import nn

import onnxplain

_PROGRAM = """
import sys
import torch
from torch import nn
import onnxplain
assert "onnxplain.api" not in sys.modules
onnxplain.export(nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval(), (torch.randn(2, 8),), "m.onnx"{options})
print(*sorted({{name.partition(".")[0] for name in sys.modules}}))
"""


@pytest.mark.parametrize(("options", "loaded"), [("", set()), (", verify=True", {"onnxruntime"})])
def test_heavy_libraries_load_where_they_are_used(options: str, loaded: set[str], tmp_path: pathlib.Path) -> None:
    ran = subprocess.run([sys.executable, "-c", _PROGRAM.format(options=options)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) & {"onnxruntime", "onnxscript", "jinja2", "rich", "sarif_om"} == loaded


class Fails(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("model", [nn.ReLU(), Fails()], ids=["exports", "fails"])
def test_garbage_collection_is_as_it_was(model: nn.Module, enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        try:
            onnxplain.export(model, (torch.randn(2),))
        except onnxplain.ExportFailed:
            assert isinstance(model, Fails)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_a_large_transposed_weight_is_saved_in_blocks(tmp_path: pathlib.Path) -> None:
    import onnx

    layer = nn.Linear(700, 900, bias=False)
    program = onnxplain.export(layer, (torch.randn(1, 2, 700),), tmp_path / "m.onnx", external_data=True)
    (saved,) = onnx.load(tmp_path / "m.onnx").graph.initializer
    assert [node.op_type for node in program.model.graph] == ["MatMul"]
    torch.testing.assert_close(torch.from_numpy(onnx.numpy_helper.to_array(saved).copy()), layer.weight.detach().T)
    x = torch.randn(3, 2, 700)[:1]
    torch.testing.assert_close(program(x)[0], layer(x).detach(), rtol=1e-4, atol=1e-4)
