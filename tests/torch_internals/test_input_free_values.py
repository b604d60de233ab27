"""Branches on tensors that no input decides: the exports follow them, and no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import onnxplain

Forward = Callable[[Tensor], Tensor]


class Net(nn.Module):
    """A model of one function."""

    def __init__(self, function: Forward) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def _mask_of_ones(x: Tensor) -> Tensor:
    mask = torch.ones(x.shape[0], x.shape[1])
    return x * 2 if (mask == 0).any() else x * 3


def _extended_mask(x: Tensor) -> Tensor:
    extended = (1.0 - torch.ones_like(x)[:, None, None].to(x.dtype)) * torch.finfo(x.dtype).min
    return x * 2 if (extended > 0).flatten().any().item() else x + extended[:, 0, 0]


def _all_true(x: Tensor) -> Tensor:
    mask = torch.full_like(x, True, dtype=torch.bool)
    return x * 2 if (mask & ~torch.zeros_like(mask)).all() else x * 3


def _sum_of_zeros(x: Tensor) -> Tensor:
    return x * 2 if torch.zeros_like(x).expand(2, -1, -1).sum() else x * 3


def _largest_of_all(x: Tensor) -> Tensor:
    lengths = torch.cat([torch.full((x.shape[0],), 3), x.new_full((x.shape[0],), 3, dtype=torch.int64)])
    return x[:, : int(lengths.amax())]


def _largest_after_large_results(x: Tensor) -> Tensor:
    large = x.sum() + torch.zeros(1 << 10, 1 << 10)
    for _ in range(20):
        large = large * 2
    return x * 2 if torch.arange(3).flip(0).amax() > 2 else x + large[0, 0] * 1e-9


def _joined(x: Tensor) -> Tensor:
    ones = torch.stack([torch.ones_like(x), torch.ones_like(x)])
    return x * 2 if ones.isnan().any() else x * 3


def _parts(x: Tensor) -> Tensor:
    one, other = torch.stack([torch.ones_like(x), torch.ones_like(x)]).unbind()
    return x * 2 if (one > other).any() else x * 3


def _larger_of_two(x: Tensor) -> Tensor:
    return x * 2 if torch.max(torch.zeros_like(x), torch.ones_like(x)).any() else x * 3


def _smaller_of_two(x: Tensor) -> Tensor:
    return x * 2 if torch.min(torch.ones_like(x), torch.zeros_like(x)).any() else x * 3


def _chosen(x: Tensor) -> Tensor:
    mask = torch.tensor([[True, False, False], [True, True, False]])
    return x[:, None, :3].expand(-1, 2, -1)[:, mask].reshape(-1, 3)


def _picked(x: Tensor) -> Tensor:
    rows, columns = torch.arange(x.shape[0])[:, None], torch.arange(x.shape[1])
    picked = torch.ones(x.shape[0], x.shape[1])[rows, columns].bool() & torch.ones(3, 1, 1, dtype=torch.bool)
    return x * 2 if (picked.take(x.long().abs() * 0) == 0).any() else x * 3


def _written_nowhere(x: Tensor) -> Tensor:
    mask = torch.zeros_like(x)
    mask[torch.ones_like(x) == 2] = 7.0
    mask.masked_fill_(mask > 3, 5.0)
    return x * 2 if mask.any() else x * 3


EVERY_SIZE = [
    _picked,
    _written_nowhere,
    _mask_of_ones,
    _extended_mask,
    _all_true,
    _sum_of_zeros,
    _largest_of_all,
    _largest_after_large_results,
    _joined,
    _parts,
    _larger_of_two,
    _smaller_of_two,
    _chosen,
]


def _triangle(x: Tensor) -> Tensor:
    mask = torch.tril(torch.ones(4, 4)).bool()
    return x if mask.all() else x @ mask.to(x.dtype)


def _written(x: Tensor) -> Tensor:
    mask = torch.zeros(x.shape[0], 4, dtype=torch.long)
    mask[:, 0] = 1
    return x * 2 if mask.max() > 0 else x * 3


def _written_through_a_view(x: Tensor) -> Tensor:
    mask = torch.zeros(4, 4)
    mask.diagonal().fill_(7)
    return x[:, : int(mask.sum() / 14)]


def _arange(x: Tensor) -> Tensor:
    positions = torch.arange(4)
    return x * nn.functional.one_hot(positions, int(positions.max()) + 1).sum(0)


def _literals_differ(x: Tensor) -> Tensor:
    return x * 2 if torch.equal(torch.tensor([1, 2]), torch.arange(2)) else x * 3


def _over_a_tensor(x: Tensor) -> Tensor:
    for i in torch.arange(1, 3):
        x = x * [2, 3, 5][i]
    return x


def _random_but_unread(x: Tensor) -> Tensor:
    return x * 2 if torch.zeros(3).isnan().any() else x * 3


def _rows_that_are_set(x: Tensor) -> Tensor:
    places = torch.tril(torch.ones(4, 4))[:2].nonzero()
    rows = [places[places[:, 0] == row] for row in places[:, 0].unique()]
    return torch.stack([x[:, each[:, 1]].sum(1) * len(each) for each in rows])


def _repeated(x: Tensor) -> Tensor:
    places = torch.repeat_interleave(torch.tensor([1, 0, 2]))
    y = x.expand(3, -1, -1).clone()
    y.as_strided((2, 2), (1, 1)).abs_()
    return y[places].reshape(3, -1) * (torch.arange(5) % 3).bincount().reshape(3, 1)


STATIC = [
    _triangle,
    _written,
    _written_through_a_view,
    _arange,
    _literals_differ,
    _over_a_tensor,
    _random_but_unread,
    _rows_that_are_set,
    _repeated,
]


@pytest.mark.parametrize("function", EVERY_SIZE)
def test_values_at_every_size(function: Forward) -> None:
    program = onnxplain.export(Net(function), (torch.randn(2, 6),), dynamic_shapes=({0: Dim.DYNAMIC, 1: Dim.DYNAMIC},))
    assert not program.diagnostics.findings
    for shape in ((2, 6), (1, 4), (5, 3), (3, 9)):
        x = torch.randn(shape)
        torch.testing.assert_close(program(x)[0], function(x))


@pytest.mark.parametrize("function", [*EVERY_SIZE, *STATIC])
def test_values(function: Forward) -> None:
    program = onnxplain.export(Net(function), (torch.randn(2, 4),))
    assert not program.diagnostics.findings
    x = torch.randn(2, 4)
    torch.testing.assert_close(program(x)[0], function(x))


def _filled_from_the_input(x: Tensor) -> Tensor:
    mask = torch.zeros(2, 4)
    mask[0] = x[0]
    return x * 2 if mask.max() > 0 else x * 3


def _filled_through_another_name(x: Tensor) -> Tensor:
    mask = torch.zeros(2, 4)
    row = mask[0]
    row.add_(x[0])
    return x * 2 if mask.max() > 0 else x * 3


def _filled_before_a_view(x: Tensor) -> Tensor:
    mask = torch.zeros_like(x)
    view = mask.reshape(-1)
    mask.copy_(x)
    return x * 2 if view.max() > 0 else x * 3


def _written_where_the_input_says(x: Tensor) -> Tensor:
    mask = torch.zeros_like(x)
    mask[x > 0] = 1.0
    return x * 2 if mask.any() else x * 3


def _picked_from_numbers(x: Tensor) -> Tensor:
    return x * 2 if (torch.arange(4) > 2)[x.long().abs() % 4].any() else x * 3


def _one_of_two(x: Tensor) -> Tensor:
    return x * 2 if torch.where(x > 0, torch.zeros_like(x), torch.ones_like(x)).sum() > 3 else x * 3


def _random(x: Tensor) -> Tensor:
    return x * 2 if torch.rand(3).sum() > 1.5 else x * 3


def _chosen_by_the_input(x: Tensor) -> Tensor:
    return x * 2 if (torch.ones_like(x) * x).nonzero().sum() > 3 else x * 3


def _random_in_place(x: Tensor) -> Tensor:
    return x * 2 if torch.zeros(3).uniform_().sum() > 1.5 else x * 3


@torch.library.custom_op("onnxplain_tests::put", mutates_args=("memory",))
def _put(memory: Tensor, value: float) -> None:
    memory.fill_(value)


def _written_by_another_library(x: Tensor) -> Tensor:
    memory = torch.zeros(3)
    _put(memory, 1.0)
    return x * 2 if memory.sum() > 0 else x * 3


def _uninitialized(x: Tensor) -> Tensor:
    memory = torch.empty(3)
    memory.copy_(x[0, :3])
    return x * 2 if memory.sum() > 0 else x * 3


@pytest.mark.parametrize(
    "function",
    [
        _filled_from_the_input,
        _filled_through_another_name,
        _filled_before_a_view,
        _written_where_the_input_says,
        _picked_from_numbers,
        _one_of_two,
        _random,
        _random_in_place,
        _chosen_by_the_input,
        _written_by_another_library,
        _uninitialized,
    ],
)
@pytest.mark.parametrize("dims", [(), (0, 1)])
def test_inputs_and_chance_decide(function: Forward, dims: Sequence[int]) -> None:
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(Net(function), (torch.randn(2, 4),), dynamic_shapes=(dict.fromkeys(dims, Dim.DYNAMIC),), try_fixes=False)
    assert "OXP1001" in {finding.rule.id for finding in failed.value.log.findings}


def _any_of_maybe_none(x: Tensor) -> Tensor:
    return x * 2 if torch.ones_like(x[:, 3:]).any() else x * 3


def _written_at_some_sizes(x: Tensor) -> Tensor:
    mask = torch.zeros_like(x)
    mask[:, 3:] = 1
    return x * 2 if mask.any() else x * 3


@pytest.mark.parametrize("function", [_any_of_maybe_none, _written_at_some_sizes])
def test_sizes_decide(function: Forward) -> None:
    """At most three columns leave nothing to be true: no answer holds for all sizes."""
    with pytest.raises(onnxplain.ExportFailed):
        onnxplain.export(Net(function), (torch.randn(2, 6),), dynamic_shapes=({1: Dim("n", min=2, max=9)},), try_fixes=False)
