"""Loops over blocks of a dynamic dim, of which the last one may be shorter: an export keeps them as loops."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest
import torch
from packaging.version import Version

import onnxplain

Load = Callable[..., types.ModuleType]
Marked = Callable[..., list[int]]

NET = """
    import math

    import torch


    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)
            self.mixed = torch.nn.Linear(3, 9)
            self.length = 4
            self.register_buffer("decay", torch.linspace(0.5, 1.0, 4))

        def forward(self, x):
            {}
"""

FORWARDS = {
    "slices": """
        parts = []
        for i in range(0, x.shape[0], 4):  # HERE
            parts.append(self.linear(x[i : i + 4]) - x[i : i + 4].mean(0))
        return torch.cat(parts)
    """,
    "slices that end at the size": """
        n = x.shape[0]
        parts = []
        for i in range(0, n, self.length):  # HERE
            end = min(i + self.length, n)
            part = x[i:end]
            parts += [part.softmax(0)]
        return torch.cat(parts, dim=0)
    """,
    "blocks with numbers": """
        n = x.shape[0]
        state = torch.zeros(3, 3)
        parts = []
        for i in range((n + 3) // 4):  # HERE
            start = i * 4
            end = min(start + 4, n)
            part = x[start:end]
            parts.append(part @ state + (part @ part.T) @ part)
            state = state * 0.5 + part.T @ part
        return torch.cat(parts, 0), state
    """,
    "parts of one tensor, in one way of a branch": """
        q, k, v = self.mixed(x).chunk(3, dim=-1)
        if self.length:
            n = x.shape[0]
            state = torch.zeros(3, 3)
            parts = []
            for i in range(math.ceil(n / self.length)):  # HERE
                start = i * self.length
                end = min(start + self.length, n)
                rows = end - start
                q_i, k_i, v_i = q[start:end], k[start:end], v[start:end]
                decay = self.decay[:rows, None]
                parts.append((q_i * decay) @ state + q_i @ k_i.T @ v_i)
                state = state * self.decay[0] + (k_i * decay).T @ v_i
        else:
            parts = []
            for i in range(n):
                parts.append(q[i : i + 1])
        parts = torch.cat(parts, dim=-2)
        return parts
    """,
    "a comprehension": """
        return torch.cat([self.linear(x[i : i + 4]) for i in range(0, len(x), 4)], 0)
    """,
    "one result for each block": """
        sums = [x[i : i + 4].sum(0) for i in range(0, x.shape[0], 4)]
        return torch.stack(sums, dim=1)
    """,
    "columns": """
        y = x.T.unsqueeze(0)
        parts = []
        for i in range(0, y.size(-1), 4):  # HERE
            parts.append(y[:, :, i : i + 4].cumsum(-1))
        return torch.cat(parts, -1)
    """,
    "parts of a split": """
        parts = []
        for number, part in enumerate(x.split(4)):  # HERE
            parts.append(part.cumsum(0) * number)
        return torch.cat(parts)
    """,
    "a sum over the parts of a split": """
        return sum(self.linear(part).sum(0) for part in torch.split(x, self.length, dim=0))
    """,
    "parts with a name": """
        parts = list(x.split(4))  # HERE
        return torch.cat([self.linear(part).softmax(0) for part in parts])
    """,
    "attention": """
        q = self.linear(x)
        parts = []
        for i in range(0, q.size(0), 4):  # HERE
            scores = (q[i : i + 4] @ x.T).softmax(-1)
            fused = torch.nn.functional.scaled_dot_product_attention(q[i : i + 4][None], x[None], x[None])
            parts.append(scores @ x + fused[0] * torch.tensor(0.5))
        return torch.cat(parts)
    """,
    "items that are set": """
        y = torch.zeros_like(x)
        for i in range(0, x.shape[0], 4):  # HERE
            y[i : i + 4] = x[i : i + 4].softmax(0)
        return y
    """,
}
"""Bodies of `forward`, with the lines of statements that are rewritten."""


def exported(model: torch.nn.Module, rows: int = 6) -> onnxplain.ONNXProgram:
    torch.manual_seed(0)
    return onnxplain.export(model, (torch.randn(rows, 3),), dynamic_shapes=({0: "n"},))


def written(body: str) -> str:
    lines = body.strip("\n").splitlines()
    return "\n".join(line[8:] for line in lines).strip().replace("\n", "\n            ")


# NOTE: of each way to take blocks, one with an example of a single block.
SINGLE = ("slices", 4), ("slices that end at the size", 3), ("blocks with numbers", 3), ("a comprehension", 3), ("parts with a name", 3)


@pytest.mark.parametrize(("forward", "example"), [*((each, 6) for each in FORWARDS), *SINGLE])
def test_blocks_of_all_sizes(forward: str, example: int, load: Load, marked: Marked) -> None:
    """Also for fewer rows than a block has, where the loop over whole blocks does not run at all, and for an example of a single block."""
    if forward == "items that are set" and Version(torch.__version__) < Version("2.13"):
        pytest.skip("torch before 2.13 takes the sizes of the last slices for numbers from data, and refuses to compare them")
    model = load(NET.format(written(FORWARDS[forward]))).Net().eval()
    program = exported(model, example)
    findings = program.diagnostics.findings
    assert {each.rule.id for each in findings} == {"OXP1037"}
    assert {each.location.line for each in findings} >= set(marked("HERE"))
    for rows in (1, 2, 4, 5, 8, 9, 15):
        x = torch.randn(rows, 3)
        with torch.no_grad():
            expected = model(x)
        expected = expected if isinstance(expected, tuple) else (expected,)
        torch.testing.assert_close(tuple(program(x)), tuple(expected), rtol=1e-4, atol=1e-5)


def test_beside_another_dynamic_dim(load: Load) -> None:
    """What no iteration makes has the sizes of the other dims all the same."""
    body = """
        parts, state = [], x.sum(1)
        for i in range(0, x.shape[1], 4):
            part = x[:, i : i + 4]
            state = state * 0.5 + part.mean(1)
            parts.append(part * state[:, None])
        return torch.cat(parts, dim=1), state
    """
    model = load(NET.format(written(body))).Net()
    program = onnxplain.export(model, (torch.randn(3, 6),), dynamic_shapes=({0: "b", 1: "n"},))
    for shape in ((3, 6), (5, 2), (1, 4), (2, 9), (1, 1)):
        x = torch.randn(shape)
        torch.testing.assert_close(tuple(program(x)), model(x), rtol=1e-4, atol=1e-5)


ONE_BLOCK = """
        frames, scales = [], []
        n = x.shape[0]
        length = {}
        for i in range({}, n, length):  # HERE
            frame = x[i : i + length]
            scales.append(frame.abs().mean())
            if frame.shape[1] > 2:
                frame = self.linear(frame) / scales[-1]
            frames.append(frame.softmax(0))
        return torch.cat(frames), torch.stack(scales)
"""
"""A loop whose body does not become an operator."""


@pytest.mark.parametrize(("length", "start", "most"), [("n", 0, None), ("n", 1, None), ("self.length * 2", 0, 8), ("6", 2, 8)])
def test_a_loop_over_a_single_block(length: str, start: int, most: int | None, load: Load, marked: Marked) -> None:
    model = load(NET.format(written(ONE_BLOCK.format(length, start)))).Net().eval()
    program = exported(model, rows=5)
    findings = program.diagnostics.findings
    assert {each.rule.id for each in findings} == {"OXP1037"} | ({"OXP1011"} if most or start else set())
    assert {each.location.line for each in findings} == set(marked("HERE"))
    for rows in (2, 3, 5, 8, *(() if most else (15,))):
        if rows > start:
            x = torch.randn(rows, 3)
            torch.testing.assert_close(tuple(program(x)), tuple(model(x)), rtol=1e-4, atol=1e-5)


def test_a_loop_over_several_blocks_that_is_no_operator_is_refused(load: Load, marked: Marked) -> None:
    model = load(NET.format(written(ONE_BLOCK.format("4", 0)))).Net().eval()
    with pytest.raises(onnxplain.ExportFailed) as failed:
        exported(model, rows=6)
    assert [(each.rule.id, each.location.line) for each in failed.value.findings if each.level is onnxplain.Level.ERROR] == [
        ("OXP1003", marked("HERE")[0])
    ]


def test_two_statements_on_a_line_are_not_rewritten(load: Load) -> None:
    body = """
        frames, scales = [], []
        for i in range(0, x.shape[0], 4):
            frames.append(x[i : i + 4].softmax(0)); scales.append(x[i : i + 4].mean())
        return torch.cat(frames), torch.stack(scales)
    """
    with pytest.raises(onnxplain.ExportFailed) as failed:
        exported(load(NET.format(written(body))).Net())
    assert not any("frames_item" in each.snippet for finding in failed.value.findings for each in finding.fixes)


OTHERS = {
    "a state that no iteration leaves as it is": """
        total = x.sum(0)
        for i in range(0, x.shape[0], 4):
            total = total * 0.5 + x[i : i + 4].sum(0)
        return x + total
    """,
    "parts that overlap": """
        parts = []
        for i in range(0, x.shape[0], 4):
            parts.append(x[i : i + 6].sum(0))
        return torch.stack(parts)
    """,
    "a variable that the comprehension would change": """
        i = 2
        y = torch.cat([x[i : i + 4] * 2 for i in range(0, x.shape[0], 4)])
        return y * i
    """,
}


@pytest.mark.parametrize("body", OTHERS)
def test_other_loops_are_not_taken_for_such(body: str, load: Load) -> None:
    model = load(NET.format(written(OTHERS[body]))).Net()
    try:
        findings = exported(model).diagnostics.findings
    except onnxplain.ExportFailed as failed:
        findings = failed.findings
    assert {each.rule.id for each in findings} & {"OXP1003", "OXP1011"}
    assert "OXP1037" not in {each.rule.id for each in findings}


def test_whole_blocks_only(load: Load) -> None:
    """The rows behind the last whole block are left out, and fewer rows than a block are refused, as in eager mode."""
    body = """
        parts = []
        for i in range(x.shape[0] // 4):
            start = i * 4
            end = min(start + 4, x.shape[0])
            parts.append(x[start:end])
        return torch.cat(parts)
    """
    model = load(NET.format(written(body))).Net()
    program = exported(model)
    if {each.rule.id for each in program.diagnostics.findings} == {"OXP1011"}:
        # NOTE: torch 2.11 and 2.15 capture the loop as it is, for one number of blocks.
        assert Version(torch.__version__).release[:2] != (2, 13)
        return
    assert {each.rule.id for each in program.diagnostics.findings} == {"OXP1037"}
    for rows in (4, 5, 8, 11, 17):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(program(x)[0], model(x))
