"""Tensors that broadcasting makes large and a reduction collapses: where they are reported, and how `optimize="memory"` computes them."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import measured_memory
import pytest
import torch
from torch import nn

import onnxplain
from onnxplain.memory import estimate
from onnxplain.rules import BroadcastCollapsed, ComputedInChunks

GIB = 2**30
SIMILARITY = """
    import torch

    class Similarity(torch.nn.Module):
        def forward(self, x, y):
            xy = x[:, :, None] - y[:, None, :]  # here
            xy = xy.abs().lt(1).sum(axis=0)
            return xy
"""


def similarity(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x[:, :, None] - y[:, None, :]).abs().lt(1).sum(dim=0)


def pair(*shape: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)


def found(program: onnxplain.ONNXProgram) -> list[str]:
    return [finding.rule.id for finding in program.diagnostics.findings]


def operators(program: onnxplain.ONNXProgram) -> set[str]:
    return {node.op_type for node in program.model.graph}


def test_the_finding_is_at_the_line_that_broadcasts(load: Callable[[str], ModuleType], marked: Callable[[str], list[int]]) -> None:
    program = onnxplain.export(load(SIMILARITY).Similarity(), pair(256, 2000))
    (finding,) = program.diagnostics.findings
    assert isinstance(finding.rule, BroadcastCollapsed)
    assert finding.location is not None
    assert [finding.location.line] == marked("here")
    assert finding.fixes
    # NOTE: one tensor of 3.81 GiB is float; the largest is the sum's int64, beside the bool that it is made of.
    assert estimate(program.model, {}).peak == pytest.approx(7.63 * GIB, rel=0.2)


@pytest.mark.parametrize(
    ("model", "args"),
    [
        (similarity, pair(256, 20)),
        (nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval(), (torch.ones(32, 512, 32),)),
        (lambda x, y: (x[:, None] * y).sum(-1), (torch.ones(2, 4096, 512), torch.ones(4096, 512))),
        (lambda x, y: (x[:, None] - y[None]).abs(), (torch.ones(4096, 64), torch.ones(256, 64))),
        (nn.Sequential(nn.Conv2d(3, 64, 3), nn.BatchNorm2d(64), nn.AdaptiveAvgPool2d(1)).eval(), (torch.ones(4, 3, 512, 512),)),
        (lambda x: nn.functional.normalize(x - x.mean(0)).logsumexp(1), (torch.ones(20_000, 1024),)),
    ],
    ids=["small", "attention", "few", "kept", "convolution", "normalization"],
)
def test_nothing_is_reported_where_no_reduction_collapses_a_large_tensor(model: Any, args: tuple[torch.Tensor, ...]) -> None:
    assert found(onnxplain.export(model, args, verify=False)) == []


def test_several_reductions_of_one_tensor_are_one_finding() -> None:
    def both(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        apart = (x[:, :, None] - y[:, None, :]).abs()
        return apart.sum(0), apart.amax(0)

    (finding,) = onnxplain.export(both, pair(256, 2000)).diagnostics.findings
    assert isinstance(finding.rule, BroadcastCollapsed)
    assert (finding.count, finding.rule.reduction) == (1, "ReduceSum and ReduceMax")


CASES: dict[str, Callable[..., Any]] = {
    "a dim that the result keeps": similarity,
    "all dims": lambda x, y: (x[:, :, None] - y[:, None, :]).abs().sum(),
    "several dims": lambda x, y: (x[:, :, None] * y[:, None, :]).exp().mean(dim=(0, 1)),
    "a mean of all": lambda x, y: (x[:, :, None] - y[:, None, :]).square().mean(),
    "kept dims": lambda x, y: torch.maximum(x[:, :, None], y[:, None, :]).amax(dim=(1, 2), keepdim=True),
    "the nearest": lambda x, y: (x[:, :, None] - y[:, None, :]).abs().argmin(dim=1),
    "a diamond": lambda x, y: ((d := x[:, :, None] - y[:, None, :]) * d.sigmoid()).sum(-1),
    "a mask": lambda x, y: torch.where(x[:, :, None] > y[:, None, :], x[:, :, None], 0.5).prod(0),
    "a norm": lambda x, y: (x[:, :, None] - y[:, None, :]).norm(dim=0),
    "an outer value": lambda x, y: (x[:, :, None] - y[:, None, :] + x.mean()).sum(0) + y.sum(),
}


@pytest.mark.parametrize("case", CASES)
def test_the_chunks_compute_the_same(case: str) -> None:
    # NOTE: 523 is prime, so that no chunks of equal length fit.
    args = pair(67, 523)
    program = onnxplain.export(CASES[case], args, optimize="memory")
    assert found(program) == [ComputedInChunks.id]
    assert "Scan" in operators(program)
    torch.testing.assert_close(program(*args)[0], CASES[case](*args), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1, 7, 300])
def test_dynamic_sizes(size: int) -> None:
    shapes = {"x": {0: "d", 1: "n"}, "y": {0: "d", 1: "m"}}
    program = dynamic_program(shapes)
    x, y = torch.randn(33, size), torch.randn(33, 2 * size)
    assert torch.equal(program(x, y)[0], similarity(x, y))


def pairs(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a[:, None] - b[None]


SPREAD: dict[str, Callable[..., Any]] = {
    "expand": lambda a, b: (a[:, None].expand(-1, b.shape[0], -1) - b[None].expand(a.shape[0], -1, -1)).abs().sum(-1),
    "repeat": lambda a, b: (a[:, None].repeat(1, b.shape[0], 1) - b[None].repeat(a.shape[0], 1, 1)).abs().sum(-1),
    "repeat_interleave": lambda a, b: (a[:, None].repeat_interleave(b.shape[0], 1) - b).abs().sum(-1),
    "tile": lambda a, b: (a[:, None].tile(1, b.shape[0], 1) - b).abs().sum(-1),
    "std": lambda a, b: pairs(a, b).std(-1),
    "var_mean": lambda a, b: torch.var_mean(pairs(a, b), -1),
    "var_mean with kept dims": lambda a, b: torch.var_mean(pairs(a, b), -1, keepdim=True),
    "cosine_similarity": lambda a, b: nn.functional.cosine_similarity(a[:, None], b[None], dim=-1),
    "cdist, p=1": lambda a, b: torch.cdist(a, b, p=1.0),
    "cdist, p=3": lambda a, b: torch.cdist(a, b, p=3.0),
    "cdist, p=inf": lambda a, b: torch.cdist(a, b, p=math.inf),
    "max with indices": lambda a, b: pairs(a, b).abs().max(dim=-1),
    "min with indices": lambda a, b: pairs(a, b).abs().min(dim=1),
    "two reductions": lambda a, b: ((d := pairs(a, b)).sum(-1), d.amax(-1)),
    "centred": lambda a, b: ((d := pairs(a, b)) - d.mean(-1, keepdim=True)).pow(3).mean(-1),
    "a mean that is used before": lambda a, b: ((d := pairs(a, b)).mean(-1) + 1, (d - d.mean(-1, keepdim=True)).abs().sum(-1)),
    "one after the other": lambda a, b: (pairs(a, b).abs().sum(-1)[:, :, None] * a.sum(0) / 100).sigmoid().amax(-1),
}


@pytest.mark.parametrize("case", SPREAD)
def test_what_repeats_and_what_is_reduced_several_times(case: str) -> None:
    """The finding says what helps, and the rewritten model is equal to PyTorch for all sizes."""
    model, generator = SPREAD[case], torch.Generator().manual_seed(0)

    def inputs(n: int, m: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(n, 32, generator=generator), torch.randn(m, 32, generator=generator)

    finding, *_ = onnxplain.export(model, inputs(900, 800)).diagnostics.findings
    assert isinstance(finding.rule, BroadcastCollapsed)
    assert [fix.snippet for fix in finding.fixes] == ['onnxplain.export(..., optimize="memory")']
    program = onnxplain.export(model, inputs(40, 30), dynamic_shapes={"a": {0: "n"}, "b": {0: "m"}}, optimize="memory")
    assert {*found(program)} == {ComputedInChunks.id}
    for args in (inputs(40, 30), inputs(700, 650), inputs(1, 5), inputs(300, 1)):
        expected = model(*args)
        for output, each in zip(program(*args), [expected] if isinstance(expected, torch.Tensor) else expected, strict=True):
            torch.testing.assert_close(output, each, rtol=1e-4, atol=1e-4)
    assert estimate(program.model, {"n": 900, "m": 800}).peak < 32 * 2**20


@pytest.mark.parametrize(
    "model",
    [
        lambda a, b: ((d := pairs(a, b)).sum(-1), d.amax(1), d.mean(0)),
        lambda a, b: (a.repeat(b.shape[0], 1) * b.sum()).abs().sum(-1),
        lambda a, b: pairs(a, b).var(),
    ],
    ids=["each dim is reduced", "rows are repeated", "a variance of all"],
)
def test_what_cannot_be_computed_in_chunks(model: Callable[..., Any]) -> None:
    """The option is no advice then, and changes nothing."""
    args = (torch.randn(900, 32), torch.randn(800, 32))
    for optimize in (True, "memory"):
        program = onnxplain.export(model, args, optimize=optimize)  # type: ignore[arg-type]
        (finding,) = program.diagnostics.findings
        assert isinstance(finding.rule, BroadcastCollapsed)
        assert [fix.snippet for fix in finding.fixes] == [""]
        assert "Scan" not in operators(program)
    # NOTE: what is small for the example is not told.
    small = (torch.randn(40, 32), torch.randn(30, 32))
    assert found(onnxplain.export(model, small, dynamic_shapes=({0: "n"}, {0: "m"}), optimize="memory")) == []


def dynamic_program(shapes: Any, known: dict[str, onnxplain.ONNXProgram] = {}) -> onnxplain.ONNXProgram:  # noqa: B006  exported once
    if not known:
        known["it"] = onnxplain.export(
            lambda x, y: similarity(x, y), (torch.randn(20, 40), torch.randn(20, 30)), dynamic_shapes=shapes, optimize="memory"
        )
    return known["it"]


def test_no_rows() -> None:
    program = onnxplain.export(
        lambda x, y: (x[:, None] - y[None]).abs().sum(-1).sum(0),
        (torch.randn(20, 40), torch.randn(30, 40)),
        dynamic_shapes={"x": {0: "n"}, "y": None},
        optimize="memory",
    )
    y = torch.randn(30, 40)
    torch.testing.assert_close(program(torch.empty(0, 40), y)[0], torch.zeros(30))


@pytest.mark.skipif(not measured_memory.IS_POSSIBLE, reason="the system does not tell the peak of a process")
def test_the_rewritten_model_takes_little_memory(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.onnx"
    shapes = {"x": {1: "n"}, "y": {1: "m"}}
    program = onnxplain.export(lambda x, y: similarity(x, y), pair(256, 800), path, dynamic_shapes=shapes, optimize="memory")
    (finding,) = program.diagnostics.findings
    assert isinstance(finding.rule, ComputedInChunks)
    names = [value.name or "" for value in program.model.graph.inputs]
    large, small = ({name: arg.numpy() for name, arg in zip(names, pair(256, size), strict=True)} for size in (800, 9))
    peak = measured_memory.peak_of(path, large, small)
    assert peak < 64 * 2**20
    assert estimate(program.model, {"n": 800, "m": 800}).peak == pytest.approx(peak, rel=0.2)
