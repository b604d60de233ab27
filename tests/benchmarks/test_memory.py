"""An export allocates no memory that grows with the input, and no second copy of the weights."""

from __future__ import annotations

import pathlib

import pytest
import torch
from torch import nn

import onnxplain
from benchmarks.allocations import allocated, peak


def test_allocations_are_seen_where_they_happen() -> None:
    x = torch.randn(1000, 1000)
    assert peak(allocated(lambda: x.exp().sum())) == pytest.approx(x.nbytes, abs=1000)
    assert peak(allocated(lambda: nn.functional.gelu(x @ x))) == pytest.approx(2 * x.nbytes, rel=0.1)
    assert peak(allocated(lambda: (y := x.exp(), y.numpy().copy()), numpy=True)) == pytest.approx(2 * x.nbytes, abs=1000)
    with torch._subclasses.FakeTensorMode():
        assert peak(allocated(lambda: torch.empty(10**9) + 1)) < 1000


@pytest.mark.slow
@pytest.mark.parametrize("external_data", [False, True])
def test_highresnet_takes_next_to_nothing_and_the_batch_does_not_matter(external_data: bool, tmp_path: pathlib.Path) -> None:
    """The example of PyTorch's documentation, in its real size."""
    from monai.networks.nets import HighResNet

    model = HighResNet(spatial_dims=3, in_channels=1, out_channels=3, norm_type="batch").eval()
    peaks = []
    for batch in (1, 30):
        data = torch.zeros(batch, 1, 48, 48, 48)
        path = tmp_path / f"{batch}.onnx"
        # NOTE: with gradients asked for, which must make no difference.
        measured = [allocated(lambda: onnxplain.export(model, (data,), path, external_data=external_data)) for _ in range(2)]  # noqa: B023  called at once
        assert path.exists()
        # NOTE: what else happens in this process in the meantime, such as the end of earlier tests' objects, shows in one of them.
        peaks.append(min(map(peak, measured)))
    assert max(peaks) < 10 * 10**6
    assert max(peaks) < sum(parameter.nbytes for parameter in model.parameters()) / 2
    assert abs(peaks[1] - peaks[0]) < data.nbytes / 1000


def test_a_merged_batch_normalization_scales_the_weights_in_blocks(tmp_path: pathlib.Path) -> None:
    import onnx

    model = nn.Sequential(nn.Conv2d(256, 512, 3), nn.BatchNorm2d(512)).eval()
    conv, norm = model
    nn.init.uniform_(norm.running_var, 0.5, 2)
    nn.init.uniform_(norm.weight, -1, 1)
    path = tmp_path / "m.onnx"
    assert peak(allocated(lambda: onnxplain.export(model, (torch.zeros(1, 256, 8, 8),), path))) < 3 * 2**20 < conv.weight.nbytes
    saved = {each.name: torch.from_numpy(onnx.numpy_helper.to_array(each).copy()) for each in onnx.load(path).graph.initializer}
    expected = torch.nn.utils.fusion.fuse_conv_bn_eval(conv, norm)
    (weight,) = (tensor for tensor in saved.values() if tensor.shape == conv.weight.shape)
    torch.testing.assert_close(weight, expected.weight.detach())


class Table(nn.Module):
    def __init__(self, values: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("values", values)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.values.float()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2])
def test_nan_in_a_weight_is_found_and_infinities_are_none(dtype: torch.dtype) -> None:
    infinite = torch.tensor([1.0, float("inf"), float("-inf")]).to(dtype)
    x = torch.zeros(3)
    assert [each.rule.id for each in onnxplain.export(Table(infinite), (x,)).diagnostics.findings] == []
    spoilt = torch.tensor([1.0, float("nan"), float("-inf")]).to(dtype)
    assert [each.rule.id for each in onnxplain.export(Table(spoilt), (x,)).diagnostics.findings] == ["OXP4006"]
