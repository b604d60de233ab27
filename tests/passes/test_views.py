"""Writes to views: each kind of view is put back into its tensor, and other views see the write, as in eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import onnxplain

View = Callable[[torch.Tensor], torch.Tensor]
X = torch.randn(4, 3, 6, generator=torch.Generator().manual_seed(3))

VIEWS: dict[str, View] = {
    "select": lambda y: y.select(1, 2),
    "select from the end": lambda y: y.select(2, -2),
    "slice": lambda y: y[:, :, 1:5:2],
    "slice from the end": lambda y: y[-3:-1],
    "slice beyond the end": lambda y: y[1:99],
    "narrow": lambda y: y.narrow(2, 1, 3),
    "narrow from the end": lambda y: y.narrow(2, -3, 2),
    "diagonal": lambda y: y.diagonal(1, 0, 2),
    "permute": lambda y: y.permute(2, 0, 1),
    "permute from the end": lambda y: y.permute(-1, 0, -2),
    "movedim": lambda y: y.movedim((0, 1), (1, 2)),
    "moveaxis": lambda y: y.moveaxis(0, -1),
    "transpose": lambda y: y.transpose(0, -1),
    "swapaxes": lambda y: y.swapaxes(1, 2),
    "swapdims": lambda y: y.swapdims(0, 1),
    "mT": lambda y: y.mT,
    "view": lambda y: y.view(2, 2, -1),
    "view_as": lambda y: y.view_as(torch.empty(12, 6)),
    "reshape": lambda y: y.reshape(-1),
    "reshape_as": lambda y: y.reshape_as(torch.empty(2, 36)),
    "flatten": lambda y: y.flatten(1),
    "ravel": lambda y: y.ravel(),
    "unflatten": lambda y: y.unflatten(2, (2, 3)),
    "squeeze": lambda y: y[:1].squeeze(0),
    "unsqueeze": lambda y: y.unsqueeze(-2),
    "expand": lambda y: y.expand(1, 1, -1, -1, -1),
    "broadcast_to": lambda y: y.broadcast_to(1, 4, 3, 6),
    "detach": lambda y: y.detach(),
    "contiguous": lambda y: y.contiguous(),
    "unbind": lambda y: y.unbind(1)[2],
    "unbind from the end": lambda y: y.unbind(0)[-1],
    "chunk": lambda y: y.chunk(4, 2)[1],
    "chunk from the end": lambda y: y.chunk(3)[-1],
    "split": lambda y: y.split(2, -1)[1],
    "split into sizes": lambda y: y.split([1, 3, 2], 2)[2],
    "tensor_split": lambda y: y.tensor_split(4, 2)[1],
    "hsplit": lambda y: y.hsplit(3)[1],
    "vsplit": lambda y: y.vsplit(2)[1],
    "dsplit": lambda y: y.dsplit([1, 4])[1],
    "real view": lambda y: torch.view_as_real(torch.view_as_complex(y.unflatten(2, (3, 2)))),
    "view of a view of a view": lambda y: y.transpose(0, 1)[1:].flatten(1).select(0, -1),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_view_is_put_back(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x * 2
        before, written = view(y), view(y)
        written.mul_(3)
        old = y + 0
        y.add_(1)
        return y, old, before, written

    traced = []
    real = torch.export.ExportedProgram.run_decompositions
    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", lambda *args, **kw: traced.append(1) or real(*args, **kw))
    program = onnxplain.export(forward, (X,))
    for got, want in zip(program(X + 1), forward(X + 1), strict=True):
        torch.testing.assert_close(got, want)
    assert not traced
    assert program.diagnostics.findings == ()


def test_hsplit_of_one_dim() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.hsplit(3)[1].add_(1)
        return y

    x = torch.randn(6)
    torch.testing.assert_close(onnxplain.export(forward, (x,))(x)[0], forward(x))


DYNAMIC: dict[str, View] = {
    "select": lambda y: y.select(1, -1),
    "slice of the dynamic dim": lambda y: y[1:],
    "slice beside it": lambda y: y[:, :, 2:],
    "flatten": lambda y: y.flatten(1),
    "reshape": lambda y: y.reshape(-1, 6),
    "transpose": lambda y: y.transpose(0, 2),
    "split": lambda y: y.split(2, 2)[-1],
    "narrow to the size": lambda y: y.narrow(0, 1, y.shape[0] - 1),
    "narrow from the end": lambda y: y.narrow(0, -2, 1),
    "chunk of the dynamic dim": lambda y: y.chunk(2, 0)[0],
}


@pytest.mark.parametrize("view", DYNAMIC.values(), ids=DYNAMIC)
def test_a_view_of_a_dynamic_size_is_put_back(view: View) -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        view(y).mul_(3)
        return y

    program = onnxplain.export(forward, (X,), dynamic_shapes=({0: torch.export.Dim("rows", min=3)},))
    for rows in (4, 3, 9):
        x = torch.randn(rows, 3, 6)
        torch.testing.assert_close(program(x)[0], forward(x))
