"""Attention without a tensor of all its scores: what `optimize="memory"` computes for some rows at a time, and what it leaves as it is."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import logs
import measured_memory
import onnx
import onnx_ir as ir
import pytest
import torch
import zoo
from torch import nn
from torch.nn import functional

import onnxplain
from onnxplain.memory import estimate, readable, review
from onnxplain.rules import ComputedInChunks

MIB = 2**20
LENGTH = {2: "length"}
ATTENTION = """
    import torch

    class Attention(torch.nn.Module):
        def forward(self, q, k, v):
            scores = q @ k.transpose(-1, -2) / 8  # here
            return scores.softmax(-1) @ v
"""


def heads(length: int, *, batch: int = 1, count: int = 2, size: int = 16, seed: int = 0) -> torch.Tensor:
    return torch.randn(batch, count, length, size, generator=torch.Generator().manual_seed(seed))


def three(length: int, other: int | None = None, **sizes: int) -> tuple[torch.Tensor, ...]:
    return tuple(heads(each, seed=seed, **sizes) for seed, each in enumerate((length, other or length, other or length)))


def found(program: onnxplain.ONNXProgram) -> list[str]:
    return [finding.rule.id for finding in program.diagnostics.findings]


def test_the_note_is_at_the_line_of_the_scores(load: Callable[[str], ModuleType], marked: Callable[[str], list[int]]) -> None:
    args = three(2048, count=8)
    program = onnxplain.export(load(ATTENTION).Attention(), args, optimize="memory")
    (finding,) = program.diagnostics.findings
    assert isinstance(finding.rule, ComputedInChunks)
    assert finding.rule.shape == "[1, 8, 2048, 2048]"
    assert finding.location is not None
    assert [finding.location.line] == marked("here")
    assert estimate(program.model, {}).peak < 32 * MIB
    torch.testing.assert_close(program(*args)[0], functional.scaled_dot_product_attention(*args, scale=1 / 8))


def rewritten(inputs: str, outputs: str, keys: str, shapes: Sequence[Sequence[int]]) -> list[str]:
    """The shapes of the scores that a review of a graph computes in chunks. Scores, keys and weights have no shapes there."""
    body = f"{keys} scores = MatMul (q, keys) weights = Softmax <axis = {len(shapes[1]) - 1}> (scores) out = MatMul (weights, v)"
    text = f'<ir_version: 9, opset_import: ["" : 20]> g ({inputs}) => ({outputs}) {{ {body} }}'
    model, context = ir.from_proto(onnx.parser.parse_model(text)), logs.context()
    review(context, model, shapes, rewrite=True)
    rules = [finding.rule for finding in context.log().findings]
    return [rule.shape for rule in rules if isinstance(rule, ComputedInChunks)]


@pytest.mark.parametrize(("length", "shapes"), [(4096, ["[4096, 4096]"]), (4095, [])])
def test_scores_of_64_mib_are_large(length: int, shapes: list[str]) -> None:
    inputs = ", ".join(f"float[{length}, 8] {name}" for name in "qkv")
    assert rewritten(inputs, f"float[{length}, 8] out", "keys = Transpose (k)", [(length, 8)] * 3) == shapes


@pytest.mark.parametrize(("rows", "shapes"), [(2816, []), (64, ["[4608, 4096]"])])
def test_chunks_must_save_64_mib(rows: int, shapes: list[str]) -> None:
    """The scores take 72 MiB. Before them, the keys come from a tensor that takes 44 MiB, or 1 MiB."""
    inputs = f"float[4608, 8] q, float[8, {rows}] k, float[4096, 8] v, float[{rows}, 8] a, float[8, 4096] b"
    sizes = [(4608, 8), (8, rows), (4096, 8), (rows, 8), (8, 4096)]
    assert rewritten(inputs, "float[4608, 8] out", "wide = MatMul (a, b) keys = MatMul (k, wide)", sizes) == shapes


@pytest.mark.parametrize(("batch", "shapes"), [("2", ["[2, 4096, 4096]"]), ("n", [])])
def test_a_dynamic_batch_of_keys_alone_is_left_as_it_is(batch: str, shapes: list[str]) -> None:
    """No tensor with a row for each row of the scores tells how large such a batch is."""
    inputs = f"float[4096, 8] q, float[{batch}, 8, 4096] k, float[{batch}, 4096, 8] v"
    sizes = [(4096, 8), (2, 8, 4096), (2, 4096, 8)]
    assert rewritten(inputs, f"float[{batch}, 4096, 8] out", "keys = Identity (k)", sizes) == shapes


def by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) * 0.3, -1) @ v


def masked_by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT).div(4).masked_fill(mask == 0, -math.inf).softmax(-1) @ v


def with_bias_of_positions(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    distance = torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])
    return (q @ k.mT - 0.1 * distance.abs()).softmax(-1) @ v


def sdpa(**options: Any) -> Callable[..., torch.Tensor]:
    return lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, **options)


PLAIN: dict[str, Callable[..., torch.Tensor]] = {
    "plain": sdpa(),
    "scale": sdpa(scale=0.7),
    "causal": sdpa(is_causal=True),
    "by hand": by_hand,
    "positions": with_bias_of_positions,
}


@pytest.mark.parametrize("case", PLAIN)
def test_dynamic_lengths(case: str) -> None:
    shapes = {"q": {0: "batch", 2: "rows"}, "k": {0: "batch", 2: "columns"}, "v": {0: "batch", 2: "columns"}}
    program = onnxplain.export(PLAIN[case], three(300, 280, batch=2), dynamic_shapes=tuple(shapes.values()), optimize="memory")
    assert found(program) == [ComputedInChunks.id]
    # NOTE: at 700 rows there are several chunks, the last of which is not full.
    for rows, columns, batch in ((700, 650, 40), (7, 300, 2), (1, 1, 1)):
        args = three(rows, columns, batch=batch)
        torch.testing.assert_close(program(*args)[0], PLAIN[case](*args), rtol=1e-4, atol=1e-5)


def masks() -> dict[str, tuple[Callable[..., torch.Tensor], Callable[[int], torch.Tensor]]]:
    def boolean(length: int) -> torch.Tensor:
        # NOTE: the first rows see nothing.
        return torch.rand(length, length, generator=torch.Generator().manual_seed(3)).gt(0.5) & (torch.arange(length) > 3)[:, None]

    def added(length: int) -> torch.Tensor:
        return torch.randn(1, 1, length, length, generator=torch.Generator().manual_seed(3))

    attention = functional.scaled_dot_product_attention
    return {
        "boolean": (attention, boolean),
        "additive": (attention, added),
        "for each head": (attention, lambda length: added(length).expand(1, 2, length, length).contiguous()),
        "padding": (attention, lambda length: (torch.arange(length) < length - 1)[None, None, None]),
        "filled": (masked_by_hand, lambda length: boolean(length) | torch.eye(length, dtype=torch.bool)),
    }


@pytest.mark.parametrize("case", masks())
def test_masks(case: str) -> None:
    attention, mask = masks()[case]
    args = (*three(64), mask(64))
    lengths = {axis: "length" for axis, size in enumerate(args[-1].shape) if size == 64}
    program = onnxplain.export(
        lambda q, k, v, m: attention(q, k, v, m), args, dynamic_shapes=(LENGTH, LENGTH, LENGTH, lengths), optimize="memory"
    )
    assert found(program) == [ComputedInChunks.id]
    for length in (64, 1500, 3):
        args = (*three(length), mask(length))
        torch.testing.assert_close(program(*args)[0], attention(*args), rtol=1e-4, atol=1e-5)


def test_a_layer_of_a_transformer() -> None:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    program = onnxplain.export(layer, (torch.randn(1, 2100, 32),), optimize="memory")
    assert found(program) == [ComputedInChunks.id]
    x = torch.randn(1, 2100, 32)
    torch.testing.assert_close(program(x)[0], layer(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["transformer_encoder", "bert", "llama", "t5"])
def test_attention_of_whole_models(name: str) -> None:
    case = next(case for case in zoo.CASES if case.name == name)
    built = case.build()
    program = onnxplain.export(built.model, built.args, kwargs=built.kwargs, dynamic_shapes=case.dynamic, optimize="memory")
    assert ComputedInChunks.id in found(program)
    assert "Softmax" not in {node.op_type for node in program.model.graph}
    for inputs in (built.other, *built.resized):
        expected = inputs.outputs_of(built.model)
        for output, each in zip(program(*inputs.args, **inputs.kwargs), expected, strict=False):
            torch.testing.assert_close(output, each, rtol=1e-4, atol=1e-5)


def of_shared_scores(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    weights = (q @ k.mT).softmax(-1)
    return weights @ v, weights


def over_rows(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT).softmax(-2) @ v


def of_centred_scores(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.mT
    return (scores - scores.mean(-2, keepdim=True)).softmax(-1) @ v


def of_weights_alone(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    weights = (q @ k.mT).softmax(-1)
    return weights @ weights + v.sum()


@pytest.mark.parametrize("model", [of_shared_scores, over_rows, of_centred_scores, of_weights_alone])
def test_what_does_not_go_by_rows_is_left_as_it_is(model: Callable[..., Any]) -> None:
    args = three(700)
    program = onnxplain.export(model, args, dynamic_shapes=(LENGTH,) * 3, optimize="memory")
    assert found(program) == []
    assert "Scan" not in {node.op_type for node in program.model.graph}


@pytest.mark.parametrize(
    ("args", "shapes"),
    [(three(1000, count=8), None), (three(128, count=1030), None), (three(32, batch=3), ({0: "batch"},) * 3)],
    ids=["small", "few rows", "windows"],
)
def test_short_attention_is_left_as_it_is(args: tuple[torch.Tensor, ...], shapes: Any) -> None:
    assert found(onnxplain.export(sdpa(), args, dynamic_shapes=shapes, optimize="memory")) == []


def test_nothing_is_said_or_changed_without_the_option() -> None:
    program = onnxplain.export(by_hand, three(2100, count=4))
    assert found(program) == []
    assert "Scan" not in {node.op_type for node in program.model.graph}


@pytest.mark.skipif(not measured_memory.IS_POSSIBLE, reason="the system does not tell the peak of a process")
def test_the_peak(tmp_path: pathlib.Path) -> None:
    args = three(2048, count=8, size=32)
    peaks = []
    for number, optimize in enumerate((True, "memory")):
        program = onnxplain.export(sdpa(), args, tmp_path / f"{number}.onnx", optimize=optimize)
        names = [value.name or "" for value in program.model.graph.inputs]
        feeds = {name: arg.numpy() for name, arg in zip(names, args, strict=True)}
        peaks.append(measured_memory.peak_of(tmp_path / f"{number}.onnx", feeds))
        assert estimate(program.model, {}).peak == pytest.approx(peaks[-1], rel=0.2)
    assert peaks[0] > 128 * MIB
    assert peaks[1] < 24 * MIB


@pytest.mark.skipif(not measured_memory.IS_POSSIBLE, reason="the system does not tell the peak of a process")
@pytest.mark.parametrize("case", ["plain", "causal", "by hand"])
def test_the_peak_of_dynamic_lengths(case: str, tmp_path: pathlib.Path) -> None:
    """The sizes of chunks are known for all sizes of dims, so that the estimate counts them."""
    shape = {0: "batch", 2: "length"}
    path = tmp_path / "model.onnx"
    program = onnxplain.export(PLAIN[case], three(2048, count=8, size=64), path, dynamic_shapes=(shape,) * 3, optimize="memory")
    # NOTE: that the batch is 1 in the example is a finding as well.
    (rule,) = (finding.rule for finding in program.diagnostics.findings if isinstance(finding.rule, ComputedInChunks))
    assert rule.after == readable(estimate(program.model, {"batch": 1, "length": 2048}).peak)
    names = [value.name or "" for value in program.model.graph.inputs]
    for length, batch in ((2048, 1), (1000, 2)):
        large, small = (
            dict(zip(names, (arg.numpy() for arg in three(each, batch=batch, count=8, size=64)), strict=True)) for each in (length, 9)
        )
        peak = measured_memory.peak_of(path, large, small)
        assert estimate(program.model, {"batch": batch, "length": length}).peak == pytest.approx(peak, rel=0.2)
