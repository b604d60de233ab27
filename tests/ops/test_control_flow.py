"""torch.cond, while_loop, scan and map: the exported loop equals the eager one for other inputs, sizes and numbers of iterations."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import onnx
import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan_op
from torch._higher_order_ops.map import map as hop_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import onnxplain
from onnxplain.ops import control_flow

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]
Args = tuple[Any, ...]

DYNAMIC = torch.export.Dim.DYNAMIC
ZERO = torch.zeros((), dtype=torch.int64)


def times(n: int) -> torch.Tensor:
    return torch.tensor(n)


class Weighted(torch.nn.Module):
    """Weights, a buffer and a size from outside; a tensor and a Python int carried; a number of iterations that is data."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("shift", torch.randn(4))

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
        size = x.shape[0]

        def body(i: torch.Tensor, y: torch.Tensor, count: int) -> Any:
            return i + 1, self.linear(y).tanh() * size + self.shift, count + 2

        return while_loop(lambda i, y, count: i < n, body, (ZERO, x, 0))


class InPlace(torch.nn.Module):
    """Operators without a translation, mixed dtypes and an in-place operator inside."""

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
        def body(i: torch.Tensor, y: torch.Tensor) -> Any:
            z = torch.nn.functional.hardswish(y.clone())
            z.add_(i).mul_(0.5)
            return i + 1, torch.nn.functional.dropout(z, 0.5, training=False) - torch.diff(z, dim=0).sum()

        return while_loop(lambda i, y: (i < n) & (y.abs().max() < 100.0), body, (ZERO, x))


class Recurrent(torch.nn.Module):
    """A cell over time, from the last step to the first; carry and outputs are nested."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = torch.nn.Linear(7, 4)

    def forward(self, start: dict[str, torch.Tensor], xs: torch.Tensor) -> Any:
        length = xs.shape[1]

        def step(carry: dict[str, torch.Tensor], x: torch.Tensor) -> Any:
            hidden = torch.lerp(carry["hidden"], self.cell(torch.cat([carry["hidden"], x], 1)).tanh(), 0.3)
            return {"hidden": hidden, "seen": carry["seen"] + 1}, (hidden * length, {"sum": x.sum(), "large": x > 0.5})

        return scan(step, start, xs, dim=1, reverse=True)


def integers(x: torch.Tensor) -> Any:
    """The loop carries only ints, one of them a size; code outside uses the results."""
    count, total = while_loop(lambda c, t: c < x.shape[0], lambda c, t: (c + 1, t + c * x.shape[1]), (0, x.shape[1]))
    return count + 1, total, x * total


def constant_carry(x: torch.Tensor) -> Any:
    """The number of iterations is a constant, and the carried values begin as constants; dtypes differ."""

    def body(i: torch.Tensor, total: torch.Tensor, seen: torch.Tensor) -> Any:
        return i + 1, total + x.double().sum(), seen | (x[0] > i)

    return while_loop(
        lambda i, total, seen: i < 3, body, (ZERO, torch.tensor(0.5, dtype=torch.float64), torch.zeros(x.shape[1], dtype=torch.bool))
    )


def swapped(x: torch.Tensor, y: torch.Tensor, n: torch.Tensor) -> Any:
    """The body returns its inputs, in another order and twice, and a value from outside."""
    return while_loop(
        lambda i, a, b, c, d: i < n, lambda i, a, b, c, d: (i + 1, b.clone(), a.clone(), a.clone(), y.clone()), (ZERO, x, y, x + 1, x)
    )


def python_condition(x: torch.Tensor) -> torch.Tensor:
    return while_loop(lambda i, y: i + 1 < y.shape[0], lambda i, y: (i + 1, y + i), (0, x))[1]  # type: ignore[no-any-return]


def nested(x: torch.Tensor, n: torch.Tensor) -> Any:
    """A loop and a branch in a loop, and a branch around a loop; inner graphs read values of all outer ones."""

    def body(i: torch.Tensor, y: torch.Tensor) -> Any:
        doubled = y * 2

        def inner(j: torch.Tensor, z: torch.Tensor) -> Any:
            return j + 1, torch.cond(z.sum() > i, lambda z: z * 0.25 - doubled, lambda z: z + x, (z,))

        return i + 1, while_loop(lambda j, z: j < i, inner, (ZERO, y))[1] + doubled

    def looped(x: torch.Tensor) -> torch.Tensor:
        return while_loop(lambda i, y: i < n, body, (ZERO, x))[1]  # type: ignore[no-any-return]

    return torch.cond(x.sum() > 0, looped, lambda x: x - n, (x,))


def two_loops(x: torch.Tensor, n: torch.Tensor) -> Any:
    """Two loops with equal bodies, the second over the results of the first; a condition that does not depend on the body."""

    def body(i: torch.Tensor, y: torch.Tensor) -> Any:
        return i + 1, (y @ y.T).softmax(-1) @ y

    def test(i: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return i < n

    first = while_loop(test, body, (ZERO, x))
    return first, while_loop(test, body, (ZERO, first[1] + 1))[1]


def running(start: torch.Tensor, xs: torch.Tensor, ys: torch.Tensor) -> Any:
    """Two sequences at once. The body also reads a whole sequence."""

    def step(carry: torch.Tensor, each: tuple[torch.Tensor, torch.Tensor]) -> Any:
        x, y = each
        new = carry * 0.5 + x @ y + xs.mean()
        return new, new.clone()

    return scan(step, start, (xs, ys))


def unchanged(start: torch.Tensor, xs: torch.Tensor) -> Any:
    """The body computes nothing: it passes the carry on and returns the slices."""
    return scan(lambda carry, x: (carry.clone(), (x.clone(), carry.clone())), start, xs)


def loop_in_scan(start: torch.Tensor, xs: torch.Tensor, n: torch.Tensor) -> Any:
    def step(carry: torch.Tensor, x: torch.Tensor) -> Any:
        new = while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 0.5 + x), (ZERO, carry))[1]
        return new, new.sin()

    return scan(step, start, xs)


def combined(xs: torch.Tensor, y: torch.Tensor) -> Any:
    # NOTE: on a GPU `associative_scan` itself becomes this operator; on the CPU torch decomposes it.
    def combine(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor, y: torch.Tensor) -> Any:
        return torch.maximum(a, c), b + d + y

    return associative_scan_op(combine, (xs, (xs * 4).long()), (y,))


class Mapped(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)

    def forward(self, xs: torch.Tensor, y: torch.Tensor) -> Any:
        size = xs.shape[0]
        return hop_map(lambda x, y: {"a": self.linear(x["a"]) * size + y, "b": x["b"].sum()}, {"a": xs, "b": xs > 0}, y)


def start(batch: int) -> dict[str, torch.Tensor]:
    return {"hidden": torch.randn(batch, 4), "seen": torch.zeros(2, dtype=torch.int64)}


CASES: dict[str, tuple[Callable[..., Any], Any, list[Args]]] = {
    "weights": (Weighted(), ({0: DYNAMIC}, None), [(torch.randn(size, 4), times(n)) for size, n in ((3, 4), (5, 0), (2, 9))]),
    "decomposed": (InPlace(), ({0: DYNAMIC}, None), [(torch.randn(size, 4), times(n)) for size, n in ((3, 4), (5, 0), (2, 6))]),
    "integers": (integers, ({0: DYNAMIC, 1: DYNAMIC},), [(torch.randn(sizes),) for sizes in ((3, 4), (2, 7), (6, 2))]),
    "constants": (constant_carry, ({0: DYNAMIC, 1: DYNAMIC},), [(torch.randn(sizes),) for sizes in ((3, 4), (2, 7))]),
    "swapped": (
        swapped,
        ({0: (size := torch.export.Dim("size"))}, {0: size}, None),
        [(torch.randn(size), torch.randn(size), times(n)) for size, n in ((3, 1), (2, 0), (4, 2), (4, 5))],
    ),
    "python-condition": (python_condition, ({0: DYNAMIC},), [(torch.randn(size, 2),) for size in (4, 1, 7)]),
    "nested": (
        nested,
        ({0: DYNAMIC}, None),
        [(torch.rand(size, 2) - sign, times(n)) for size, n, sign in ((3, 3, 0), (2, 5, 0), (4, 2, 1))],
    ),
    "two-loops": (two_loops, ({0: DYNAMIC}, None), [(torch.randn(size, 2), times(n)) for size, n in ((3, 2), (4, 0), (2, 3))]),
    "reversed-scan": (
        Recurrent(),
        ({"hidden": {0: (batch := torch.export.Dim("batch"))}, "seen": None}, {0: batch, 1: DYNAMIC}),
        [(start(size), torch.randn(size, length, 3)) for size, length in ((2, 5), (3, 1), (4, 8))],
    ),
    "scan-of-two": (
        running,
        (None, {0: (length := torch.export.Dim("length"))}, {0: length}),
        [(torch.randn(2), torch.randn(n, 2, 3), torch.randn(n, 3)) for n in (4, 1, 6)],
    ),
    "unchanged": (unchanged, ({0: DYNAMIC}, {0: DYNAMIC}), [(torch.randn(2 * n), torch.randn(n, 2)) for n in (4, 1, 6)]),
    "loop-in-scan": (loop_in_scan, (None, {0: DYNAMIC}, None), [(torch.randn(2), torch.randn(n, 2), times(n)) for n in (4, 1, 6)]),
    "associative-scan": (combined, ({0: DYNAMIC}, None), [(torch.randn(n, 3), times(n)) for n in (4, 1, 7)]),
    "complex": (
        lambda x, n: while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * torch.tensor(1j)), (ZERO, torch.complex(x, x)))[1].real,
        ({0: DYNAMIC}, None),
        [(torch.randn(size), times(n)) for size, n in ((3, 2), (4, 0), (2, 3))],
    ),
    "constant-next": (
        lambda x, n: while_loop(lambda i, c, y: i < n, lambda i, c, y: (i + 1, 7, y * c), (ZERO, 2, x)),
        ({0: DYNAMIC}, None),
        [(torch.randn(size), times(n)) for size, n in ((3, 2), (4, 0), (2, 3))],
    ),
    "scan-of-scalars": (
        lambda xs: scan(lambda carry, x: (carry * 0.5 + x, carry + x), torch.zeros(()), xs),
        ({0: DYNAMIC},),
        [(torch.randn(size),) for size in (3, 1, 5)],
    ),
    "map": (Mapped(), ({0: DYNAMIC}, None), [(torch.randn(n, 3, 4), torch.randn(2)) for n in (4, 1, 6)]),
}


@pytest.fixture(autouse=True)
def forgetful_dynamo() -> None:
    """TorchDynamo traces torch's own `scan` and `while_loop` and remembers which sizes of earlier calls differed, which may break it:
    after a scan over several lengths it fails on a while_loop inside of one, even in eager mode (torch 2.13)."""
    torch._dynamo.reset()


def check(function: Callable[..., Any], program: onnxplain.ONNXProgram, args: Args) -> None:
    with torch.no_grad():
        expected = torch.utils._pytree.tree_leaves(function(*args))
    results = program(*args)
    assert len(results) == len(expected)
    for got, want in zip(results, expected, strict=True):
        torch.testing.assert_close(got, torch.as_tensor(want), rtol=1e-4, atol=1e-4)


@functools.cache
def exported(name: str) -> onnxplain.ONNXProgram:
    function, shapes, inputs = CASES[name]
    torch._dynamo.reset()
    return onnxplain.export(function, inputs[0], dynamic_shapes=shapes, verify=True)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.falls_back
def test_equals_eager(name: str) -> None:
    function, _, inputs = CASES[name]
    program = exported(name)
    assert {each.rule.id for each in program.diagnostics.findings} == ({"OXP1040"} if name == "constants" else set())
    assert all("onnxplain.operator" in node.metadata_props for node in program.model.graph.all_nodes())
    for args in inputs:
        check(function, program, args)


@pytest.mark.parametrize("operator", control_flow.TRANSLATIONS)
def test_a_case_uses_the_translation(operator: str) -> None:
    operators = {node.metadata_props["onnxplain.operator"] for name in CASES for node in exported(name).model.graph.all_nodes()}
    assert operator in operators


@pytest.mark.parametrize("name", ["weights", "nested", "reversed-scan", "map"])
def test_equals_eager_with_fixed_sizes_as_captured_by_dynamo(name: str) -> None:
    function, _, inputs = CASES[name]
    program = onnxplain.export(function, inputs[0], strategies=("strict",), optimize=False)
    check(function, program, inputs[0])


UNSUPPORTED = """
    import torch
    from torch._higher_order_ops.scan import scan
    from torch._higher_order_ops.while_loop import while_loop

    def helper(x):
        return torch.nextafter(x, x)  # test

    class Net(torch.nn.Module):
        def forward(self, x):
            def test(i, y):
                return helper(y.sum()) < i

            def body(i, y):
                z = torch.conv_tbc(y[None], torch.eye(2)[None], torch.zeros(2))[0]  # body
                return i + 1, z * 2

            def step(carry, y):
                new = carry + torch.linalg.eigvals(torch.outer(y, y)).real  # step
                return new, new.clone()

            zero = torch.zeros((), dtype=torch.int64)
            y = while_loop(test, body, (zero, x))[1]  # loop
            return scan(step, y[0], y)  # scan
"""


@pytest.mark.parametrize("strategy", ["non-strict", "strict"])
def test_unsupported_operators_inside_are_found_at_their_lines(load: Load, marked: Marked, strategy: str) -> None:
    model = load(UNSUPPORTED).Net().eval()
    with pytest.raises(onnxplain.ExportFailed) as raised:
        onnxplain.export(model, (torch.rand(3, 2),), strategies=(strategy,))
    findings = raised.value.log.findings
    assert {each.rule.id for each in findings} == {"OXP3001"}
    lines = {each.location.line: [frame.line for frame in each.stack] for each in findings if each.location}
    (test,), (body,), (step,), (loop,), (scanned,) = map(marked, ("test", "body", "step", "loop", "scan"))
    assert set(lines) == {test, body, step}
    assert lines[body] == [loop, body]
    assert lines[step] == [scanned, step]


def test_nodes_inside_know_their_lines(load: Load, marked: Marked) -> None:
    module = load(
        """
        import torch
        from torch._higher_order_ops.while_loop import while_loop

        def forward(x, n):
            def test(i, y):
                return i < n  # test

            def body(i, y):
                return i + 1, y.sin()  # body

            return while_loop(test, body, (torch.zeros((), dtype=torch.int64), x))  # loop
        """
    )
    program = onnxplain.export(module.forward, (torch.randn(2), torch.tensor(3)))
    lines = [(node.op_type, int(node.metadata_props["onnxplain.source"].rpartition(":")[2])) for node in program.model.graph.all_nodes()]
    (test,), (body,), (loop,) = map(marked, ("test", "body", "loop"))
    assert lines == [("Less", test), ("Loop", loop), ("Add", body), ("Sin", body), ("Less", test)]


def test_failing_translation_inside_is_reported_once(load: Load, marked: Marked) -> None:
    module = load(
        """
        import torch
        from torch._higher_order_ops.while_loop import while_loop

        def translation(self):
            raise ValueError("no")  # here

        def forward(x, n):
            return while_loop(lambda i, y: y.sin().sum() < n, lambda i, y: (i + 1, y * 2), (torch.zeros((), dtype=torch.int64), x))
        """
    )
    with pytest.raises(onnxplain.ExportFailed) as raised:
        onnxplain.export(
            module.forward, (torch.randn(2), times(3)), custom_translation_table={torch.ops.aten.sin.default: module.translation}
        )
    (finding,) = raised.value.log.findings
    assert finding.rule.id == "OXP3004"
    assert finding.location is not None
    assert finding.location.line == marked("here")[0]


def test_writing_to_what_is_outside_is_refused() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
            def body(i: torch.Tensor, y: torch.Tensor) -> Any:
                self.count.add_(1)  # type: ignore[operator]
                return i + 1, y + self.count

            return while_loop(lambda i, y: i < n, body, (ZERO, x))

    with torch.no_grad(), pytest.raises(onnxplain.ExportFailed) as raised:
        onnxplain.export(Counting(), (torch.randn(2), times(3)))
    # NOTE: some versions of torch refuse the model while they capture it.
    assert {each.rule.id for each in raised.value.log.findings} <= {"OXP1005", "OXP1009", "OXP1029", "OXP2001"}


@pytest.mark.parametrize("opset", [15, 18, 21, 23])
def test_opsets(tmp_path: pathlib.Path, opset: int) -> None:
    def both(x: torch.Tensor, n: torch.Tensor) -> Any:
        y = while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * 2), (ZERO, x))[1]
        return scan(lambda carry, each: (carry + each, carry.sin()), y[0], y)

    program = onnxplain.export(both, (torch.randn(2, 3), times(3)), tmp_path / "m.onnx", opset_version=opset, verify=True)
    assert onnx.load(tmp_path / "m.onnx").opset_import[0].version == opset
    check(both, program, (torch.randn(2, 3), times(5)))


def test_what_needs_weights_only_is_not_computed_in_each_iteration() -> None:
    program = onnxplain.export(Mapped(), (torch.randn(5, 3, 4), torch.randn(2)))
    (inside,) = program.model.graph.subgraphs()
    assert "Transpose" not in [node.op_type for node in inside]


def test_weights_of_a_loops_test_are_in_the_file_once(tmp_path: pathlib.Path) -> None:
    class Until(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(256, 256, bias=False)

        def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
            return while_loop(lambda y: self.linear(y).sum().abs() < n, lambda y: (y * 2 + 1,), (x,))

    model = Until()
    program = onnxplain.export(model, (torch.rand(256), times(3)), tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").stat().st_size < 1.5 * model.linear.weight.nbytes
    check(model, program, (torch.rand(256), times(5)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: torch.cond(x.sum() > 0, lambda x: -x, lambda x: x.abs(), (x,)),
        lambda x, y: while_loop(lambda y: y.sum() > 0, lambda y: (-y,), (x,))[0],
        lambda x, y: scan(lambda carry, each: (carry.sin(), each.cos()), y, x)[1],
    ],
    ids=["cond", "while_loop", "scan"],
)
def test_the_oldest_opset(function: Callable[..., Any]) -> None:
    args = torch.rand(2, 3), torch.rand(3)
    check(function, onnxplain.export(function, args, opset_version=11), args)
    with pytest.raises(onnxplain.ExportFailed) as failed:
        onnxplain.export(function, args, opset_version=10)
    assert "OXP3003" in {each.rule.id for each in failed.value.findings}
