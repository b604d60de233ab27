"""A dynamic dim of size 1 in the example does not become fixed because code or torch treats that size in a special way."""

from __future__ import annotations

import pytest
import torch

import onnxplain
from onnxplain.rules import ConstraintViolated
from onnxplain.testing import assert_exports

BATCH = torch.export.Dim("batch")


class Branches(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y if x.shape[0] == 1 else x * 2 + y


class SameWays(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] == 1 else x + x


def encoder() -> torch.nn.Module:
    layer = torch.nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=8, batch_first=True)
    return torch.nn.TransformerEncoder(layer, num_layers=1, enable_nested_tensor=True).eval()


def test_nested_tensors_with_a_batch_of_one() -> None:
    model, mask = encoder(), torch.zeros(1, 5, dtype=torch.bool)
    kwargs = {"src_key_padding_mask": mask}
    shapes = {"src": {0: "batch"}, "src_key_padding_mask": {0: "batch"}}
    program = assert_exports(model, (torch.randn(1, 5, 8),), kwargs=kwargs, dynamic_shapes=shapes)
    x = torch.randn(3, 5, 8)
    (got,) = program(x, src_key_padding_mask=mask.expand(3, -1))
    torch.testing.assert_close(got, model(x, src_key_padding_mask=mask.expand(3, -1)), rtol=1e-4, atol=1e-4)


def test_random_numbers_with_a_batch_of_one() -> None:
    """They are those of eager mode, with which the export compares."""

    class Attends(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = torch.nn.MultiheadAttention(8, 2, dropout=0.3, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.attention(x, x, x, need_weights=False)[0]
            return result

    program = onnxplain.export(Attends(), (torch.randn(1, 3, 8),), dynamic_shapes=({0: "batch"},))
    assert "OXP1007" in {finding.rule.id for finding in program.diagnostics.findings}
    assert [value.shape[0] for value in program.model.graph.outputs] == ["batch"]


def test_a_branch_on_size_one_is_told() -> None:
    x = torch.ones(1, 3)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Branches(), (x, x), dynamic_shapes={"x": {0: BATCH}, "y": {0: BATCH}})
    assert {finding.rule.id for finding in failed.value.findings if finding.fails} == {"OXP1003"}


def test_only_dims_of_size_one_get_another_size() -> None:
    width = torch.export.Dim("width", max=4)
    program = onnxplain.export(SameWays(), (torch.ones(1, 3),), dynamic_shapes=({0: BATCH, 1: width},))
    for sizes in ((1, 3), (5, 4)):
        x = torch.rand(sizes)
        torch.testing.assert_close(program(x)[0], x * 2)


class ByBatch(torch.nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        # The mask of each row has one row itself, which torch cannot know: its batch is another size.
        return x @ x.mT + mask.view(x.shape[0], -1, mask.shape[-1])


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("batch", [1, 2])
def test_the_example_tells_which_computed_sizes_are_one(batch: int, named: bool) -> None:
    model, dims = ByBatch(), {0: BATCH, 1: torch.export.Dim("length")} if named else dict.fromkeys((0, 1), torch.export.Dim.DYNAMIC)
    program = onnxplain.export(model, (torch.rand(batch, 5, 4), torch.rand(batch, 5)), dynamic_shapes=(dims, dims))
    assert not any(finding.fails for finding in program.diagnostics.findings)
    for size in (1, 3):
        given = torch.rand(size, 7, 4), torch.rand(size, 7)
        torch.testing.assert_close(program(*given)[0], model(*given))


def test_a_computed_size_of_one_stays_computed() -> None:
    class Places(torch.nn.Module):
        """Of an image with one patch of 8 by 8, `flatten` asks for the number of patches, since the channels come last in memory."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            patches = torch.nn.functional.avg_pool2d(x, 1, 8)
            sums = torch.stack([patches.cumsum(2)[:, 0], patches.cumsum(3)[:, 0]], -1)
            places = sums.permute(0, 3, 1, 2).flatten(2).transpose(1, 2) + torch.ones(1, 1, 2)
            return places.reshape(places.shape[0], places.shape[1] * 2)

    program = assert_exports(Places(), (torch.randn(2, 1, 8, 8),), dynamic_shapes={"x": dict.fromkeys((0, 2, 3), torch.export.Dim.DYNAMIC)})
    assert not program.diagnostics.findings
    x = torch.randn(3, 1, 9, 30)
    torch.testing.assert_close(program(x)[0], Places()(x), rtol=1e-4, atol=1e-4)


class Pixels(torch.nn.Module):
    """`group_norm` of a part asks whether there is one pixel, and torch goes by the answer for all sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Sequential(*(torch.nn.Conv2d(8, 8, 3, stride=2, padding=1) for _ in range(3)))
        self.norm, self.qkv = torch.nn.GroupNorm(1, 4), torch.nn.Conv2d(4, 12, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.scale(x)
        batch, _, height, width = x.shape
        one, other = x.split([4, 4], 1)
        q, k, v = (each.flatten(2) for each in self.qkv(self.norm(one)).split([4, 4, 4], 1))
        one = (v @ (q.mT @ k).softmax(-1).mT).reshape(batch, 4, height, width)
        return torch.cat([one, other], 1)


@pytest.mark.parametrize(("batch", "height"), [(1, 8), (2, 7)])
def test_a_larger_example_shows_that_a_computed_size_is_not_always_one(batch: int, height: int) -> None:
    model = Pixels().eval()
    shapes = {"x": dict.fromkeys((0, 2, 3), torch.export.Dim.DYNAMIC)}
    program = assert_exports(model, (torch.randn(batch, 8, height, 8),), dynamic_shapes=shapes)
    assert not any(finding.fails or finding.level is onnxplain.Level.WARNING for finding in program.diagnostics.findings)
    for sizes in ((3, 8, 30, 17), (1, 8, 8, 8), (1, 8, 9, 5)):
        x = torch.randn(sizes)
        torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("most", "expected"), [(14, {"OXP1011"}), (15, set())])
def test_a_larger_example_is_one_that_the_dims_allow(most: int, expected: set[str]) -> None:
    model, x = Pixels().eval(), torch.randn(2, 8, 8, 8)
    height, width = (torch.export.Dim(name, max=most) for name in ("height", "width"))
    program = onnxplain.export(model, (x,), dynamic_shapes={"x": {0: BATCH, 2: height, 3: width}})
    assert {finding.rule.id for finding in program.diagnostics.findings} == expected
    for each in (x, x.repeat(2, 1, 2, 1)[:, :, :most]) if most == 15 else (x,):
        torch.testing.assert_close(program(each)[0], model(each), rtol=1e-4, atol=1e-4)


def test_other_limits_than_those_of_computed_sizes_stay() -> None:
    class Limited(Pixels):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x + 1 if x.shape[2] > 5 else x)

    shapes = {"x": dict.fromkeys((0, 2, 3), torch.export.Dim.DYNAMIC)}
    program = onnxplain.export(Limited().eval(), (torch.randn(2, 8, 8, 8),), dynamic_shapes=shapes)
    (finding,) = program.diagnostics.findings
    assert finding.rule == ConstraintViolated(dim="x.shape[2]", constraint="x.shape[2] > 5")


class Stages(torch.nn.Module):
    """A convolution asks whether height and width are more than 1; torch goes by that in `gelu`, or in `layer_norm` of all pixels."""

    def __init__(self, flat: bool) -> None:
        super().__init__()
        self.stem, self.norm = torch.nn.Conv2d(3, 8, 4, 4), torch.nn.LayerNorm(8)
        self.depthwise = torch.nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.widen, self.narrow = torch.nn.Conv2d(8, 16, 1), torch.nn.Conv2d(16, 8, 1)
        self.flat = flat

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.stem(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        if self.flat:
            y = self.norm((x + self.depthwise(x)).flatten(2).transpose(1, 2))
            return x + (x.flatten(2).transpose(1, 2) + y).transpose(1, 2).view(x.shape)
        for _ in range(2):
            y = self.norm(self.depthwise(x).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
            x = x + self.narrow(torch.nn.functional.gelu(self.widen(y)))
        return x


@pytest.mark.parametrize("tries", [True, False])
@pytest.mark.parametrize("flat", [True, False])
def test_what_torch_takes_for_one_pixel_is_told_or_kept_dynamic(flat: bool, tries: bool) -> None:
    model = Stages(flat).eval()
    shapes = {"x": dict.fromkeys((0, 2, 3), torch.export.Dim.DYNAMIC)}
    program = onnxplain.export(model, (torch.randn(2, 3, 4, 4),), dynamic_shapes=shapes, try_fixes=tries)
    warned = {each.rule.id for each in program.diagnostics.findings if each.level is onnxplain.Level.WARNING}
    for sizes in ((2, 3, 4, 4), (3, 3, 16, 24), (1, 3, 9, 12)):
        x = torch.randn(sizes)
        try:
            equal = torch.allclose(program(x)[0], model(x), rtol=1e-4, atol=1e-4)
        except (RuntimeError, onnxplain.OnnxExporterError):
            equal = False
        assert equal or "OXP1011" in warned, (sizes, warned)
    assert not (tries and warned)
