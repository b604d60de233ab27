"""The modules that an export loads, and the state that it restores, including garbage collection."""

from __future__ import annotations

import gc
import io
import pathlib
import subprocess
import sys
from typing import Any

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
            onnxplain.export(model, (torch.randn(2),), control_flow="report")
        except onnxplain.ExportFailed:
            assert isinstance(model, Fails)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


def test_graphs_are_built_without_garbage_collection() -> None:
    from onnxscript import opset18 as op

    collecting: dict[str, bool] = {}
    # NOTE: an export puts back dicts that `forward` itself changes.
    note = collecting.__setitem__

    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            note("capture", gc.isenabled())
            return x.sin()

    def translate(x: object) -> object:
        collecting["build"] = gc.isenabled()
        return op.Sin(x)

    onnxplain.export(Net(), (torch.randn(2),), custom_translation_table={torch.ops.aten.sin.default: translate})
    assert collecting == {"capture": True, "build": False}


def test_a_large_transposed_weight_is_saved_in_blocks(tmp_path: pathlib.Path) -> None:
    import onnx

    layer = nn.Linear(700, 900, bias=False)
    program = onnxplain.export(layer, (torch.randn(1, 2, 700),), tmp_path / "m.onnx", external_data=True)
    (saved,) = onnx.load(tmp_path / "m.onnx").graph.initializer
    assert [node.op_type for node in program.model.graph] == ["MatMul"]
    (weight,) = program.model.graph.initializers.values()
    written: list[int] = []

    class File(io.RawIOBase):
        def write(self, data: Any) -> int:
            written.append(memoryview(data).nbytes)
            return written[-1]

    assert weight.const_value is not None
    weight.const_value.tofile(File())
    assert sum(written) == weight.const_value.nbytes
    assert max(written) <= 2**20
    torch.testing.assert_close(torch.from_numpy(onnx.numpy_helper.to_array(saved).copy()), layer.weight.detach().T)
    x = torch.randn(3, 2, 700)[:1]
    torch.testing.assert_close(program(x)[0], layer(x).detach(), rtol=1e-4, atol=1e-4)


class Weights(nn.Module):
    """Weights of many dtypes and shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors = nn.ParameterDict(
            {
                "w_half": nn.Parameter(torch.randn(3, 4).half()),
                "w_brain": nn.Parameter(torch.randn(300, 2).bfloat16()),
                "w_double": nn.Parameter(torch.randn(()).double()),
                "w_bytes": nn.Parameter(torch.arange(5, dtype=torch.int8), requires_grad=False),
                "w_flags": nn.Parameter(torch.tensor([True, False]), requires_grad=False),
                "w_view": nn.Parameter(torch.randn(5, 4).t()[1:]),
                "w_nothing": nn.Parameter(torch.zeros(0, 3)),
            }
        )

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x + tensor.sum().float() if name != "w_flags" else x * tensor.any() for name, tensor in self.tensors.items()]


def test_one_file_holds_the_weights_as_they_are(tmp_path: pathlib.Path) -> None:
    import onnx
    import onnx_ir as ir

    model = Weights()
    program = onnxplain.export(model, (torch.randn(3),), tmp_path / "m.onnx")
    saved = ir.load(tmp_path / "m.onnx")
    onnx.checker.check_model(tmp_path / "m.onnx", full_check=True)
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    names = {f"tensors.{name}" for name in model.tensors}
    assert names <= set(saved.graph.initializers)
    for name, value in program.model.graph.initializers.items():
        assert value.const_value is not None
        read = saved.graph.initializers[name].const_value
        assert read is not None
        assert (read.dtype, read.shape, read.tobytes()) == (value.const_value.dtype, value.const_value.shape, value.const_value.tobytes())
    assert [node.op_type for node in saved.graph] == [node.op_type for node in program.model.graph]
