"""Sizes that data decide, as the number of frames of speech: torch's layers take them, and the graph is right for other data."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from packaging.version import Version
from torch import Tensor, nn

import onnxplain

REPEATS = torch.tensor([1, 2, 0, 3, 1])
OTHERS = [torch.tensor([4, 2, 2, 3, 3]), torch.tensor([0, 1, 1, 0, 0])]
SHAPES: dict[str, Callable[[Tensor], Tensor]] = {
    "last": lambda x: x,
    "images": lambda x: x.unsqueeze(2).expand(-1, -1, 8, -1),
    "sequences": lambda x: x.transpose(1, 2),
    "rows": lambda x: x[0].mT,
}


class Repeated(nn.Module):
    """Repeats the last dim as often as another input says."""

    def __init__(self, shape: str, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.shape, self.function = SHAPES[shape], function

    def forward(self, x: Tensor, repeats: Tensor) -> Tensor:
        return self.function(self.shape(x[..., torch.repeat_interleave(torch.arange(x.shape[-1]), repeats)]))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        attended: Tensor = self.attention(x, x, x, need_weights=False)[0]
        return attended


def masked(x: Tensor) -> Tensor:
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], attn_mask=mask)


TAKEN: dict[str, tuple[str, Callable[[], Callable[[Tensor], Tensor]]]] = {
    "batch norm": ("last", lambda: nn.BatchNorm1d(4)),
    "batch norm of images": ("images", lambda: nn.BatchNorm2d(4)),
    "batch norm of rows": ("rows", lambda: nn.BatchNorm1d(4)),
    "instance norm": ("last", lambda: nn.InstanceNorm1d(4, affine=True)),
    "instance norm with statistics": ("last", lambda: nn.InstanceNorm1d(4, track_running_stats=True)),
    "group norm of images": ("images", lambda: nn.GroupNorm(2, 4)),
    "average": ("last", lambda: nn.AdaptiveAvgPool1d(1)),
    "maximum": ("last", lambda: nn.AdaptiveMaxPool1d(1)),
    "circular padding": ("last", lambda: lambda x: F.pad(x, (1, 1), mode="circular")),
    "roll": ("last", lambda: lambda x: x.roll(1, -1)),
    "local response norm": ("last", lambda: nn.LocalResponseNorm(2)),
    "spectrum": ("last", lambda: lambda x: torch.fft.rfft(x).abs()),
    "unfold": ("images", lambda: lambda x: F.unfold(x, 3, padding=1)),
    "distances": ("rows", lambda: lambda x: torch.cdist(x, x)),
    "attention": ("sequences", Attention),
    "attention with a mask": ("sequences", lambda: masked),
    "encoder layer": ("sequences", lambda: nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)),
}


@pytest.mark.parametrize("name", TAKEN)
def test_layers_take_sizes_from_data(name: str) -> None:
    shape, function = TAKEN[name]
    model = Repeated(shape, function()).eval()
    x = torch.rand(2, 4, 5)
    program = onnxplain.export(model, (x, REPEATS))
    for repeats in (REPEATS, *OTHERS):
        try:
            expected = model(x, repeats)
        except ValueError:
            # NOTE: instance norm refuses a size of 1.
            continue
        torch.testing.assert_close(program(x, repeats)[0], expected, rtol=1e-4, atol=1e-4)


def test_the_models_own_branch_on_such_a_size_is_told() -> None:
    model = Repeated("last", lambda x: x * 2 if x.shape[-1] > 0 else x)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(model, (torch.rand(2, 4, 5), REPEATS))
    assert {finding.rule.id for finding in failed.value.findings if finding.fails} <= {"OXP1001", "OXP1002"}


class Lengths(nn.Module):
    """Masks by lengths that are all the size of the input, as in a model that takes no lengths."""

    def __init__(self, longest: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.longest = longest

    def forward(self, x: Tensor) -> Tensor:
        lengths = torch.full((x.shape[0],), x.shape[1], dtype=torch.long)
        mask = torch.arange(self.longest(lengths))[None] < lengths[:, None]
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask[:, None])


@pytest.mark.parametrize(
    "longest",
    [
        lambda lengths: lengths.max(),
        lambda lengths: lengths.view(-1, 1).int().amax(),
        lambda lengths: torch.stack([lengths.min(), lengths.max()]).max(),
    ],
)
def test_the_longest_of_equal_lengths_is_a_size(longest: Callable[[Tensor], Tensor]) -> None:
    model = Lengths(longest)
    program = onnxplain.export(model, (torch.rand(2, 5, 4),), dynamic_shapes=({0: "batch", 1: "length"},))
    # NOTE: torch 2.11 makes plain numbers of symbolic ones where code slices.
    is_old = Version(torch.__version__) < Version("2.12")
    assert [finding.rule.id for finding in program.diagnostics.findings] == (["OXP1023"] if is_old else [])
    for size in ((3, 7, 4), (1, 2, 4)):
        x = torch.rand(size)
        torch.testing.assert_close(program(x)[0], model(x))
