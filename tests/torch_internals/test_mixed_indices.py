"""Indices of several kinds: the exported model reads and writes the same elements as eager, for every size, number and truth."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from packaging.version import Version
from torch import Tensor

import onnxplain

Reading = Callable[[Tensor, Tensor, Tensor], Tensor]
Writing = Callable[[Tensor, Tensor, Tensor], object]

# NOTE: other sizes, another number (counted from the end), other places.
EXAMPLE = (torch.randn(3, 4, 5), torch.tensor(1), torch.tensor([0, 2]))
OTHER = (torch.randn(4, 6, 3), torch.tensor(-3), torch.tensor([2, 1]))

READINGS: dict[str, Reading] = {
    "number, slice, places": lambda x, i, j: x[i, :, j],
    "places, slice, number": lambda x, i, j: x[j, 1:, i],
    "number, list": lambda x, i, j: x[i, [0, 1]],
    "size, new dim, mask": lambda x, i, j: x[x.shape[0] // 2, None, x[0, :, 0] > 0],
    "places, ellipsis, size": lambda x, i, j: x[j, ..., x.shape[2] - 1],
    "ellipsis, size, places": lambda x, i, j: x[..., x.shape[1] - 1, j],
    "plain number, number, places": lambda x, i, j: x[-1, i, j],
    "numbers in a list": lambda x, i, j: x[:, [i, 0], (0, j[1])],
    "only numbers, in a list": lambda x, i, j: x[[i, j[0]]],
    "sizes in a list": lambda x, i, j: x[[x.shape[0] // 2, 0, -1]] * x[:, [x.shape[1] // 2]].sum() + j.sum(),
    "sizes and numbers in tuples": lambda x, i, j: x[(x.shape[0] // 2, i), (i, 2)],
    "a truth": lambda x, i, j: x[x.sum() > 0],
    "a truth, a slice, a number": lambda x, i, j: x[x.sum() > 0, 1:, i],
}


@pytest.mark.parametrize("name", READINGS)
def test_reads(name: str) -> None:
    if name.startswith("only numbers") and Version(torch.__version__) < Version("2.12"):
        pytest.skip("torch 2.11 asks for the data of several numbers")
    _compare(READINGS[name])


def _number(x: Tensor, i: Tensor, j: Tensor) -> None:
    x[i] = x[0] * 2


def _column(x: Tensor, i: Tensor, j: Tensor) -> None:
    x[:, i] = 7.0


def _last(x: Tensor, i: Tensor, j: Tensor) -> None:
    x[..., i] += 1


def _middle(x: Tensor, i: Tensor, j: Tensor) -> None:
    x[:, x.shape[1] // 2] = x[:, 0]


def _element(x: Tensor, i: Tensor, j: Tensor) -> None:
    x[x.shape[0] // 2, x.shape[1] - 1, i] *= 3


def _pairs(x: Tensor, i: Tensor, j: Tensor) -> None:
    rows, columns = zip(*j.reshape(1, 2), strict=True)
    x[rows, columns] = 5.0
    x[:, [i, x.shape[1] // 2]] = x[:, :1] * 2


def _places(x: Tensor, i: Tensor, j: Tensor) -> None:
    x[i, :, j] = 5.0


def _list(x: Tensor, i: Tensor, j: Tensor) -> None:
    x[[0, 1], None, x.shape[1] - 1] = -1.0


def _mask(x: Tensor, i: Tensor, j: Tensor) -> None:
    x[i, 1:, x[0, 0] > 0] = 2.0


def _row(x: Tensor, i: Tensor, j: Tensor) -> None:
    x[i.int(), (x[0, :, 0] > 0)] = 2.0


def _truth(x: Tensor, i: Tensor, j: Tensor) -> None:
    x[x.sum() > 0] = 0.0
    x[x[0].sum() > 0, ..., i] = 1.0


KNOWN = pytest.mark.skipif(Version(torch.__version__) < Version("2.12"), reason="torch 2.11 asks for the data before such a write")
WRITINGS = (
    _number,
    _column,
    pytest.param(_last, marks=KNOWN),
    _middle,
    pytest.param(_element, marks=KNOWN),
    _places,
    _pairs,
    _list,
    _mask,
    _row,
    _truth,
)


@pytest.mark.parametrize("write", WRITINGS, ids=lambda write: write.__name__)
def test_writes(write: Writing) -> None:
    def function(x: Tensor, i: Tensor, j: Tensor) -> Tensor:
        x = x.clone()
        write(x, i, j)
        return x

    _compare(function)


def test_kinds_that_torch_alone_knows() -> None:
    x = torch.randn(3, 4)

    def function(x: Tensor) -> Tensor:
        return x[torch.tensor(1), [True, False, True, False]] + x[range(2), torch.tensor(2)]

    torch.testing.assert_close(onnxplain.export(function, (x,))(x)[0], function(x))


def _compare(function: Reading) -> None:
    size = torch.export.Dim.DYNAMIC
    program = onnxplain.export(function, EXAMPLE, dynamic_shapes=({0: size, 1: size, 2: size}, {}, {}))
    assert {finding.rule.id for finding in program.diagnostics.findings} <= {"OXP4002"}
    for args in (EXAMPLE, OTHER, (-EXAMPLE[0], *EXAMPLE[1:]), (-OTHER[0], *OTHER[1:])):
        torch.testing.assert_close(program(*args)[0], function(*args))
