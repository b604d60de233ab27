"""Numbers that code computes of sizes by way of small tensors stay dynamic."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from packaging.version import Version
from torch import nn
from torch.nn import functional

import onnxplain

DIMS = ({0: torch.export.Dim("batch"), 1: torch.export.Dim("length")},)


class Convolution(nn.Module):
    """Pads to whole frames, as codecs of audio do: by buffers with the kernel size and the stride."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kernel", torch.tensor(3), persistent=False)
        self.register_buffer("stride", torch.tensor(2), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        frames = torch.ceil((x.shape[-1] - self.kernel) / self.stride + 1).to(torch.int64) - 1
        extra = frames * self.stride + self.kernel - x.shape[-1]
        if x.shape[-1] <= max(extra, self.kernel):
            return x
        return functional.pad(x, (int(self.kernel) - 1, extra))


BODIES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "quotient": lambda x: x[:, : torch.div(x.shape[1], 2, rounding_mode="trunc")],
    "floor": lambda x: x[:, : torch.floor_divide(torch.tensor(x.shape[1]), 3)],
    "ceil": lambda x: functional.pad(x, (0, torch.ceil(torch.tensor(x.shape[1] / 4)).int() * 4 - x.shape[1])),
    "branch": lambda x: x * 2 if torch.tensor(x.shape[1]) * 2 > 3 else x,
    "least": lambda x: x[:, : int(torch.as_tensor(x.shape[1]).clamp(max=4))],
    "difference": lambda x: x.new_ones((9 - torch.tensor(x.shape[1]) % 4).item()) + x.sum(),
    "product": lambda x: x.reshape(torch.tensor(x.shape).prod()),
    "of several": lambda x: x.reshape(torch.tensor([x.shape[0], x.shape[1]])[0] * torch.stack([torch.tensor(x.shape[1])])[0]),
    "remainder": lambda x: x[:, torch.remainder(torch.tensor(x.shape[1]), 2) :],
    "written": lambda x: x[:, : torch.tensor(x.shape[1]).sub_(1).item()],
    "written through a view": lambda x: x[:, : _written(torch.tensor(x.shape)).item()],
}


def _written(sizes: torch.Tensor) -> torch.Tensor:
    length = sizes[1]
    sizes.view(-1).sub_(1)
    return length


@pytest.mark.parametrize("name", BODIES)
def test_a_number_stays_dynamic(name: str) -> None:
    if name in ("quotient", "floor", "least", "remainder") and Version(torch.__version__) < Version("2.13"):
        pytest.skip("torch before 2.13 takes such a number where code slices for one from data, and may refuse it")
    body = BODIES[name]
    program = onnxplain.export(body, (torch.randn(3, 8),), dynamic_shapes=DIMS)
    assert not any(finding.fails for finding in program.diagnostics.findings)
    for sizes in ((3, 8), (2, 11), (5, 6)):
        x = torch.randn(sizes)
        torch.testing.assert_close(program(x)[0], body(x))


def test_a_branch_on_buffers_and_sizes_is_known() -> None:
    model = Convolution()
    program = onnxplain.export(model, (torch.randn(3, 8),), dynamic_shapes=DIMS)
    for sizes in ((3, 8), (2, 11), (5, 6)):
        x = torch.randn(sizes)
        torch.testing.assert_close(program(x)[0], model(x))


def test_a_branch_that_other_sizes_take_otherwise_is_told() -> None:
    def body(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if torch.tensor(x.shape[1]) * 2 > 10 else x

    program = onnxplain.export(body, (torch.randn(3, 8),), dynamic_shapes=DIMS)
    (finding,) = program.diagnostics.findings
    assert (finding.rule.id, finding.location.line) == ("OXP1011", body.__code__.co_firstlineno + 1)
