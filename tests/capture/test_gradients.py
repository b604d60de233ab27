"""Models that differentiate in `forward`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import onnxplain

BATCH = torch.export.Dim.DYNAMIC


class Slopes(nn.Module):
    """The sum of a network's outputs, and its gradient."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.network = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            energy = self.network(x).sum()
            (slope,) = torch.autograd.grad(energy, x)
        return energy, slope


class Forces(nn.Module):
    """The energy of atoms and the forces on them, by messages along edges."""

    def __init__(self) -> None:
        super().__init__()
        self.kind, self.filter, self.out = nn.Embedding(5, 8), nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 8)), nn.Linear(8, 1)

    def forward(self, positions: Tensor, kinds: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        positions.requires_grad_(True)
        source, target = edges
        apart = (positions[source] - positions[target]).norm(dim=-1)
        near = torch.exp(-((apart[:, None] - torch.linspace(0, 3, 4)) ** 2)) * (apart < 5)[:, None]
        atoms = self.kind(kinds)
        atoms = atoms + torch.zeros_like(atoms).index_add(0, source, atoms[target] * self.filter(near))
        energy = self.out(functional.silu(atoms)).sum()
        return energy, -torch.autograd.grad([energy], [positions], create_graph=True)[0]


class Curvature(nn.Module):
    """A matrix of second derivatives for each row."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = x.requires_grad_()
        (slope,) = torch.autograd.grad(self.layer(x).tanh().pow(2).sum(), x, create_graph=True)
        return torch.stack([torch.autograd.grad(slope[:, i].sum(), x, retain_graph=True)[0] for i in range(3)], 1)


class Adapted(nn.Module):
    """A layer after one step of training."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        weights = dict(self.layer.named_parameters())
        slopes = torch.func.grad(lambda given: functional.mse_loss(torch.func.functional_call(self.layer, given, (x,)), x.sin()))(weights)
        return torch.func.functional_call(self.layer, {name: weights[name] - 0.1 * slopes[name] for name in weights}, (x,))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[Tensor, ...]]] = {
    "layers": (lambda: Slopes(nn.Linear(8, 6), nn.SiLU(), nn.LayerNorm(6), nn.Linear(6, 4), nn.Tanh(), nn.PReLU()), (torch.rand(3, 8),)),
    "convolutions": (
        lambda: Slopes(
            nn.Conv2d(3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(4, 2)
        ),
        (torch.rand(3, 3, 8, 8),),
    ),
    "attention": (lambda: Slopes(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)), (torch.rand(3, 5, 8),)),
    "recurrent": (lambda: Slopes(nn.Conv1d(3, 8, 3), Last(nn.LSTM(6, 4, batch_first=True))), (torch.rand(3, 3, 8),)),
    "second derivatives": (Curvature, (torch.rand(3, 3),)),
    "a step of training": (Adapted, (torch.rand(3, 3),)),
    "torch.func.hessian": (
        lambda: Function(lambda x: torch.func.hessian(lambda row: row.sin().prod())(x[0]) + x.sum()),
        (torch.rand(3, 2),),
    ),
    "torch.func.jacfwd": (lambda: Function(lambda x: torch.func.jacfwd(torch.tanh)(x[0]) + x.sum()), (torch.rand(3, 2),)),
    "torch.func.vjp": (lambda: Function(lambda x: torch.func.vjp(torch.sigmoid, x)[1](x.cos())[0]), (torch.rand(3, 2),)),
}


class Last(nn.Module):
    """The first result of a layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0]  # type: ignore[no-any-return]


class Function(nn.Module):
    """A function as a model."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


@pytest.mark.parametrize("name", MODELS)
def test_equals_eager_at_other_sizes(name: str) -> None:
    torch.manual_seed(0)
    make, args = MODELS[name]
    model = make().eval()
    program = onnxplain.export(model, tuple(each.clone() for each in args), dynamic_shapes=({0: BATCH},))
    assert {each.rule.id for each in program.diagnostics.findings} <= {"OXP1022"}
    for count in (1, 2):
        given = [torch.cat([torch.rand_like(each)] * count) for each in args]
        wanted = model(*(each.clone() for each in given))
        for got, want in zip(program(*given), [wanted] if isinstance(wanted, Tensor) else wanted, strict=True):
            torch.testing.assert_close(got, want.detach(), rtol=1e-4, atol=1e-4)


def test_forces_between_atoms() -> None:
    model = Forces().eval()
    example = torch.randn(6, 3), torch.randint(0, 5, (6,)), torch.randint(0, 6, (2, 10))
    shapes = ({0: "atoms"}, {0: "atoms"}, {1: "edges"})
    before = [each.clone() for each in example]
    program = onnxplain.export(model, example, dynamic_shapes=shapes)
    assert torch.is_grad_enabled()
    assert all(map(torch.equal, before, example))
    given = torch.randn(9, 3), torch.randint(0, 5, (9,)), torch.randint(0, 9, (2, 17))
    for got, want in zip(program(*given), model(*given), strict=True):
        torch.testing.assert_close(got, want.detach(), rtol=1e-4, atol=1e-4)


def test_a_failure_leaves_the_mode_of_gradients() -> None:
    class Fails(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(x.exp().sum(), x)
            raise ValueError(slope.shape)

    with torch.no_grad():
        with pytest.raises(onnxplain.ExportFailed) as failed:
            onnxplain.export(Fails(), (torch.ones(3),))
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    assert not Fails()._forward_hooks
    assert "OXP1005" in {each.rule.id for each in failed.value.findings}


class CallsItself(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor, depth: int = 0) -> Tensor:
        if depth == 1:
            return self.layer(x).tanh()  # type: ignore[no-any-return]  # a tensor
        x = x.detach().requires_grad_(True)
        return torch.autograd.grad(self(x, 1).sum(), x)[0]


def test_a_model_that_calls_itself() -> None:
    model, x = CallsItself().eval(), torch.rand(2, 3)
    program = onnxplain.export(model, (torch.rand(2, 3),))
    torch.testing.assert_close(program(x)[0], model(x))
