"""Random programs of views and writes: the prepared graph computes what eager PyTorch computes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
import torch
from logs import context

from onnxplain import passes
from onnxplain.registry import OnnxRegistry
from onnxplain.request import DimNames

Tensor = torch.Tensor
Step = Callable[[list[Tensor]], Tensor]
"""Computes a tensor from those before it, or writes to one of them and returns it."""


def _views(x: Tensor, rng: random.Random) -> list[Callable[[Tensor], Tensor]]:
    dim = rng.randrange(max(x.ndim, 1))
    size = x.shape[dim] if x.ndim else 1
    start = rng.randrange(-size, size)
    end, step = rng.choice([None, start + 1, start + 2, size]), rng.choice([1, 1, 2])
    order = rng.sample(range(x.ndim), x.ndim)
    shape = rng.choice([(-1,), (2, -1), (1, *x.shape), (*x.shape, 1)])
    cut, piece, other = rng.randrange(1, size + 1), rng.random(), rng.randrange(max(x.ndim, 1))
    return [
        lambda y: y.select(dim, start),
        lambda y: y[(slice(None),) * dim + (slice(start % size, end, step),)],
        lambda y: y.narrow(dim, start, 1),
        lambda y: y.transpose(dim, other),
        lambda y: y.permute(order),
        lambda y: y.movedim(dim, other),
        lambda y: y.mT,
        lambda y: y.view(shape),
        lambda y: y.reshape(shape),
        lambda y: y.flatten(),
        lambda y: y.contiguous(),
        lambda y: y.detach(),
        lambda y: y.to(torch.float32),
        lambda y: y.view_as(y),
        lambda y: y.unsqueeze(dim),
        lambda y: y.squeeze(),
        lambda y: y.squeeze(dim),
        lambda y: y.expand(1, *y.shape),
        lambda y: pick(y.split(cut, dim), piece),
        lambda y: pick(y.split([cut, size - cut], dim), piece),
        lambda y: pick(y.chunk(2, dim), piece),
        lambda y: pick(y.tensor_split(2, dim), piece),
        lambda y: pick(y.unbind(dim), piece),
    ]


def pick(pieces: Sequence[Tensor], share: float) -> Tensor:
    return pieces[int(share * len(pieces))]


def _writes(x: Tensor, rng: random.Random) -> list[Callable[[Tensor], Tensor]]:
    number = rng.randrange(1, 9)
    dim, index = rng.randrange(max(x.ndim, 1)), rng.randrange(max(len(x), 1)) if x.ndim else 0
    return [
        lambda y: y.add_(number),
        lambda y: y.mul_(-number),
        lambda y: y.relu_(),
        lambda y: y.fill_(number),
        lambda y: y.zero_(),
        lambda y: y.copy_(y * number),
        lambda y: y.copy_((y * number)[:1]),
        lambda y: y.copy_((y * number).double()),
        lambda y: y.masked_fill_(y > number, 0.5),
        lambda y: y.index_fill_(dim, torch.tensor([index]), number),
        lambda y: y.unsqueeze_(0),
        lambda y: y.t_(),
        lambda y: y.squeeze_(),
    ]


def _new(x: Tensor, rng: random.Random) -> list[Callable[[Tensor], Tensor]]:
    return [torch.sin, torch.neg, lambda y: y.sum(-1, keepdim=True), lambda y: torch.softmax(y, -1), lambda y: y.max(-1)[0]]


def _has_repeated_elements(x: Tensor) -> bool:
    return any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.shape, strict=True))


def _program(seed: int, count: int = 12) -> Callable[[Tensor], list[Tensor]]:
    """A function that eager PyTorch accepts. It takes a tensor of shape (3, 4), and returns all tensors that it makes."""
    rng = random.Random(seed)
    steps: list[Step] = []
    tensors = [torch.zeros(3, 4) + 1]
    while len(steps) < count:
        position = rng.randrange(len(tensors))
        kinds = rng.choices([_views, _writes, _new], [5, 4, 1])[0]
        function = rng.choice(kinds(tensors[position], rng))
        if kinds is _writes and (_has_repeated_elements(tensors[position])):
            continue

        def step(known: list[Tensor], function: Callable[[Tensor], Tensor] = function, position: int = position) -> Tensor:
            return function(known[position])

        try:
            made = step(tensors)
        except (RuntimeError, IndexError):
            continue
        if made.numel() > 0:
            tensors.append(made)
            steps.append(step)

    def run(x: Tensor) -> list[Tensor]:
        known = [x * 2]
        for each in steps:
            known.append(each(known))
        return known

    return run


class _Model(torch.nn.Module):
    """Runs a program on a product of its input, on a buffer or on its input."""

    def __init__(self, program: Callable[[Tensor], list[Tensor]], where: str) -> None:
        super().__init__()
        self.register_buffer("state", torch.linspace(-3, 4, 12).view(3, 4))
        self._program, self._where = program, where

    def forward(self, x: Tensor) -> list[Tensor]:
        return self._program({"new": x * 2, "buffer": self.state, "input": x}[self._where])


def _inputs(program: torch.export.ExportedProgram, x: Tensor) -> list[Tensor]:
    """New copies of the inputs of the program's graph."""
    lasting = {**program.state_dict, **program.constants}
    return [lasting[spec.target].clone() if spec.target else x.clone() for spec in program.graph_signature.input_specs]


@pytest.mark.parametrize("where", ["new", "buffer", "input"])
@pytest.mark.parametrize("block", range(1))
def test_random_programs_equal_eager(block: int, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []
    real = torch.export.ExportedProgram.run_decompositions
    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", lambda *args, **kw: traced.append(1) or real(*args, **kw))
    for seed in range(25 * block, 25 * (block + 1)):
        program = _program(seed)
        x = torch.linspace(-2, 3, 12).view(3, 4)
        captured = torch.export.export(_Model(program, where), (x.clone(),), strict=False)
        prepared = passes.run(context(), captured, OnnxRegistry(), DimNames())
        graph = prepared.graph_module
        assert not any(node.target._schema.is_mutable for node in graph.graph.nodes if isinstance(node.target, torch._ops.OpOverload)), seed
        got = torch.fx.Interpreter(graph).run(*_inputs(prepared.program, x))
        wanted = _Model(program, where)(x.clone())
        for one, other in zip(got[-len(wanted) :], wanted, strict=True):
            torch.testing.assert_close(one, other, msg=lambda text, seed=seed: f"seed {seed}: {text}")
    assert not traced
