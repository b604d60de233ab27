"""Faults that are planted deep in models: each is found on its line, and its cause is told apart from others."""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from onnxscript import opset20 as op

import onnxplain
from onnxplain import ExportFailed
from onnxplain.diagnostics import Diagnostic, Log
from onnxplain.runtime import causes

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]
aten = torch.ops.aten


def verified(model: Any, args: tuple[Any, ...], table: dict[Any, Callable[..., Any]] | None = None, **options: Any) -> Log:
    torch.manual_seed(0)
    try:
        return onnxplain.export(model, args, custom_translation_table=table, verify=True, **options).diagnostics
    except ExportFailed as failed:
        return failed.log


def finding(log: Log, rule: str, line: list[int]) -> Diagnostic:
    """The only finding of a log, which must be of this rule at this line."""
    (found,) = log.findings
    assert (found.rule.id, found.location and [found.location.line]) == (rule, line)
    return found


def script_of(found: Diagnostic) -> str:
    """The script in the notes of a finding."""
    (script,) = (note.partition("\n")[2] for note in found.notes if "\nimport onnx" in note)
    return script


def differences_of_script(script: str) -> list[float]:
    """What the script prints: how far ONNX Runtime and the reference evaluator are from PyTorch."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(script, "<script>", "exec"), {})
    return [float(line.split()[-1]) for line in printed.getvalue().splitlines()]


BERT = """
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
            self.up, self.down = nn.Linear(16, width), nn.Linear(width, 16)
            self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)

        def forward(self, x, mask):
            q, k, v = self.qkv(x).unflatten(-1, (3, 4, 4)).permute(2, 0, 3, 1, 4)
            scores = (q @ k.transpose(-1, -2) / 2).masked_fill(mask[:, None, None] == 0, -1e9)
            x = self.first(x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)))
            return self.second(x + self.down(nn.functional.gelu(self.up(x))))  # gelu

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.position = nn.Embedding(50, 16), nn.Embedding(8, 16)
            self.layers = nn.ModuleList(map(Layer, (32, 32, 40)))
            self.pool = nn.Linear(16, 16)

        def forward(self, ids, mask):
            x = self.embed(ids) + self.position(torch.arange(ids.shape[1]))
            for layer in self.layers:
                x = layer(x, mask)
            return x, self.pool(x[:, 0]).tanh()  # tanh
"""
TOKENS = (torch.arange(12).reshape(2, 6), torch.tensor([[1] * 6, [1] * 4 + [0] * 2]))

HIGHRESNET = """
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, given, width, dilation):
            super().__init__()
            self.norms = nn.ModuleList([nn.BatchNorm2d(given), nn.BatchNorm2d(width)])
            self.convs = nn.ModuleList([nn.Conv2d(n, width, 3, padding=dilation, dilation=dilation) for n in (given, width)])
            self.more = width - given

        def forward(self, x):
            y = x
            for norm, conv in zip(self.norms, self.convs):
                y = conv(norm(y).relu())  # relu
            return nn.functional.pad(x, (0, 0, 0, 0, 0, self.more)) + y

    class HighResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Conv2d(1, 4, 3, padding=1)
            self.blocks = nn.Sequential(Block(4, 4, 1), Block(4, 8, 2), Block(8, 16, 4), Block(16, 16, 4))
            self.head = nn.Conv2d(16, 3, 1)

        def forward(self, x):
            return self.head(self.blocks(self.stem(x)))
"""

LLAMA = """
    import torch
    from torch import nn

    class RMSNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(16))

        def forward(self, x):
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight  # pow

    def rotate(x):
        angle = torch.arange(x.shape[2])[:, None] / 100 ** (torch.arange(2) / 2)
        a, b, angle = *x.chunk(2, -1), angle.to(x.dtype)
        return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)

    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.qkv, self.out = nn.Linear(16, 48, bias=False), nn.Linear(16, 16, bias=False)
            self.gate, self.up, self.down = nn.Linear(16, width), nn.Linear(16, width), nn.Linear(width, 16)
            self.first, self.second = RMSNorm(), RMSNorm()

        def forward(self, x):
            q, k, v = self.qkv(self.first(x)).unflatten(-1, (3, 4, 4)).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            y = self.second(x)
            return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))  # silu

    class Llama(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.norm = nn.Embedding(50, 16), RMSNorm()
            self.layers = nn.ModuleList(map(Layer, (32, 32, 40)))

        def forward(self, ids):
            x = self.embed(ids)
            for layer in self.layers:
                x = layer(x)
            return self.norm(x) @ self.embed.weight.T
"""
DYNAMIC = {"dynamic_shapes": ({0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens")},)}


def wrong_where(is_there: Callable[[Any], bool], right: Callable[[Any], Any]) -> Callable[..., Any]:
    """A translation of a function of one value that is wrong by a hundredth for some shapes."""
    return lambda x, *_, **__: op.Mul(right(x), op.Constant(value_float=1.01)) if is_there(x.shape) else right(x)


def test_a_wrong_translation_deep_in_bert(load: Load, marked: Marked) -> None:
    table = {aten.gelu.default: wrong_where(lambda shape: shape[-1] == 40, op.Gelu)}
    found = finding(verified(load(BERT).Bert().eval(), TOKENS, table), "OXP6008", marked("gelu"))
    rule: Any = found.rule
    assert found.location is not None
    assert found.location.module == "layers.2"
    assert len(rule.outputs) == 2
    assert rule.before < 1e-6 < rule.tolerance < rule.difference < 0.01
    onnx_runtime, standard = differences_of_script(script_of(found))
    assert onnx_runtime > rule.tolerance
    assert standard == pytest.approx(onnx_runtime, rel=0.1), "both compute the translation"


def test_it_is_told_where_the_reference_evaluator_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def notes() -> int:
        (found,) = verified(lambda x: x.abs(), (torch.ones(3),), {aten.abs.default: wrong_where(lambda _: True, op.Abs)}).findings
        return len(found.notes)

    computed = notes()
    monkeypatch.setattr(causes, "by_reference", lambda *_: None)
    assert notes() == computed + 1


def test_a_wrong_translation_deep_in_a_convolutional_network(load: Load, marked: Marked) -> None:
    table = {aten.relu.default: wrong_where(lambda shape: shape[1] == 16, op.Relu)}
    log = verified(load(HIGHRESNET).HighResNet().eval(), (torch.randn(1, 1, 12, 12),), table)
    found = finding(log, "OXP6008", marked("relu"))
    assert found.location is not None
    assert found.location.module == "blocks.2"


def test_a_wrong_translation_deep_in_a_dynamic_llama(load: Load, marked: Marked) -> None:
    table = {aten.silu.default: wrong_where(lambda shape: shape[-1] == 40, lambda x: op.Mul(x, op.Sigmoid(x)))}
    log = verified(load(LLAMA).Llama().eval(), TOKENS[:1], table, **DYNAMIC)
    found = finding(log, "OXP6008", marked("silu"))
    assert found.location is not None
    assert found.location.module == "layers.2"


def test_an_overflow_of_float16_in_pytorch(load: Load, marked: Marked) -> None:
    model = load(LLAMA).Llama().eval()
    with torch.no_grad():
        model.embed.weight.mul_(300)
    found = finding(verified(model.half(), TOKENS[:1]), "OXP6010", marked("pow"))
    assert found.rule.side == "PyTorch"  # type: ignore[attr-defined]


def patched(monkeypatch: pytest.MonkeyPatch, change: Callable[[onnx.NodeProto], None]) -> list[int]:
    """Changes each node that ONNX Runtime loads. Returns the number of nodes of each session, which grows."""
    real, loaded = onnxruntime.InferenceSession, list[int]()

    def session(model: bytes | str, *args: Any, **kwargs: Any) -> onnxruntime.InferenceSession:
        proto = onnx.load(model) if isinstance(model, str) else onnx.load_from_string(model)
        loaded.append(len(proto.graph.node))
        for node in proto.graph.node:
            change(node)
        return real(proto.SerializeToString(), *args, **kwargs)

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    return loaded


def test_a_kernel_that_computes_something_else(load: Load, marked: Marked, monkeypatch: pytest.MonkeyPatch) -> None:
    def tanh_as_sigmoid(node: onnx.NodeProto) -> None:
        node.op_type = {"Tanh": "Sigmoid"}.get(node.op_type, node.op_type)

    patched(monkeypatch, tanh_as_sigmoid)
    found = finding(verified(load(BERT).Bert().eval(), TOKENS), "OXP6011", marked("tanh"))
    rule: Any = found.rule
    assert rule.nodes == ("Tanh",)
    assert len(rule.outputs) == 1
    onnx_runtime, standard = differences_of_script(script_of(found))
    assert standard < 1e-6 < onnx_runtime


NEIGHBOURS = """
    import torch

    class Net(torch.nn.Module):
        def forward(self, x):
            y = x.abs() + 1
            z = (y * 2).sin()
            return z.cos() * 3 + y  # cos
"""


def test_an_optimization_of_two_nodes_that_computes_something_else(load: Load, marked: Marked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Cos of a Sin is an Exp of it where an optimization could merge the two: nothing else needs what is between them."""
    real = onnxruntime.InferenceSession

    def session(model: bytes, options: onnxruntime.SessionOptions, **kwargs: Any) -> onnxruntime.InferenceSession:
        proto = onnx.load_from_string(model)
        outputs = {each.name for each in proto.graph.output}
        between = {value for node in proto.graph.node if node.op_type == "Sin" for value in node.output} - outputs
        if options.graph_optimization_level != onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL:
            for node in proto.graph.node:
                if node.op_type == "Cos" and between & {*node.input}:
                    node.op_type = "Exp"
        return real(proto.SerializeToString(), options, **kwargs)

    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    log = verified(load(NEIGHBOURS).Net(), (torch.rand(5),))
    found = finding(log, "OXP6012", marked("cos"))
    rule: Any = found.rule
    assert (rule.nodes, len(rule.outputs)) == (("Sin", "Cos"), 1)
    (text,) = (each.text for each in log.attachments if each.name == "differences.csv")
    assert [line.split(",")[1] for line in text.splitlines() if line.endswith("OXP6012")] == ["aten::cos"]


SMALL = """
    import torch

    class Net(torch.nn.Module):
        def forward(self, x):
            y = x.abs()  # abs
            z = (y * 3).sin()
            return (z * 9).cos() * (z + y).exp()  # exp
"""


def test_a_small_fault_that_grows_behind_its_operator(load: Load, marked: Marked) -> None:
    table = {aten.abs.default: lambda x: op.Add(op.Abs(x), op.Constant(value_float=8e-5))}
    found = finding(verified(load(SMALL).Net(), (torch.zeros(5),), table), "OXP6008", marked("abs"))
    assert found.rule.difference == pytest.approx(8e-5, rel=0.01)  # type: ignore[attr-defined]


def test_two_faults_in_one_run(load: Load, marked: Marked) -> None:
    table = {each: wrong_where(lambda _: True, right) for each, right in ((aten.abs.default, op.Abs), (aten.exp.default, op.Exp))}
    log = verified(load(SMALL).Net(), (torch.rand(5),), table)
    assert [(each.rule.id, each.location and [each.location.line]) for each in log.findings] == [
        ("OXP6008", marked("abs")),
        ("OXP6008", marked("exp")),
    ]


REPEATED = """
    import torch

    class Net(torch.nn.Module):
        def forward(self, x):
            y = x.abs() * 2  # first
            return (y - 1)[:, None].abs()  # second
"""


@pytest.mark.parametrize(("wrong", "more"), [(((5,), (5, 1)), 1), (((5,),), 0)])
def test_further_calls_of_a_wrong_operator_are_told(load: Load, marked: Marked, wrong: tuple[Any, ...], more: int) -> None:
    table = {aten.abs.default: wrong_where(lambda shape: tuple(shape) in wrong, op.Abs)}
    found = finding(verified(load(REPEATED).Net(), (torch.rand(5),), table), "OXP6008", marked("first"))
    assert [each.line for each in found.related if [each.line] == marked("second")] == marked("second") * more
    assert [note.partition(" ")[0] for note in found.notes if note[0].isdigit()] == ["1"] * more


def whole(x: Any) -> Any:
    return op.Cast(x, to=onnx.TensorProto.INT32)


def floating(x: Any) -> Any:
    return op.Cast(x, to=onnx.TensorProto.FLOAT)


@pytest.mark.parametrize(
    "translation", [lambda x: floating(op.Abs(whole(x))), lambda x: op.Abs(floating(whole(x)))], ids=["in it", "before it"]
)
def test_a_result_of_another_dtype(load: Load, marked: Marked, translation: Callable[[Any], Any]) -> None:
    table = {aten.abs.default: translation}
    found = finding(verified(load(SMALL).Net(), (torch.rand(5) * 4,), table), "OXP6009", marked("abs"))
    assert found.rule.dtype == "int32"  # type: ignore[attr-defined]


def test_the_script_of_an_operator_with_an_infinite_number() -> None:
    wrong = {aten.nan_to_num.default: lambda x, *_: op.Add(x, op.Constant(value_float=0.5))}
    (found,) = verified(lambda x: x.nan_to_num(math.nan, math.inf), (torch.ones(3),), wrong).findings
    assert differences_of_script(script_of(found)) == [0.5, 0.5]


def test_an_overflow_of_float16_in_one_node() -> None:
    x = torch.tensor([20, 1], dtype=torch.float16)
    (found,) = verified(lambda x: x.abs(), (x,), {aten.abs.default: op.Exp}).findings
    assert (found.rule.id, found.rule.side) == ("OXP6010", "the exported model")  # type: ignore[attr-defined]


class Fan(torch.nn.Module):
    """A value, and several outputs that it is in."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.abs()
        return tuple(y + number for number in range(1, self.outputs + 1))


def test_a_wrong_float16_is_no_overflow_where_both_results_are_finite() -> None:
    """The translation overflows on its way only."""

    def translation(x: Any) -> Any:
        return op.Add(op.Add(op.Abs(x), op.CastLike(100, x)), op.Reciprocal(op.Mul(x, x)))

    x = torch.full((3,), 300.0, dtype=torch.float16)
    (found,) = verified(lambda x: x.abs(), (x,), {aten.abs.default: translation}).findings
    assert found.rule.id == "OXP6008"


@pytest.mark.parametrize(("outputs", "told", "more"), [(5, 5, []), (6, 5, ["1"]), (9, 5, ["4"])])
def test_five_outputs_are_told_and_the_others_counted(outputs: int, told: int, more: list[str]) -> None:
    (found,) = verified(Fan(outputs), (torch.rand(5),), {aten.abs.default: wrong_where(lambda _: True, op.Abs)}).findings
    assert len(found.rule.outputs) == outputs  # type: ignore[attr-defined]
    notes = [note for note in found.notes if "output" in note and "\n" not in note]
    assert [note.partition(" ")[0] for note in notes if note[0].isdigit()] == more
    assert len(notes) == told + len(more)


@pytest.mark.parametrize(("x", "drawn"), [(torch.rand(3, 2), ["x0", "x3"]), (torch.rand(101, 2), ["x0", "x3"])], ids=["small", "large"])
def test_the_script_has_random_numbers_for_data_only(x: torch.Tensor, drawn: list[str]) -> None:
    """What the translation brings along stays, but for several floats, which may be weights."""

    def translation(x: Any) -> Any:
        swapped = op.Gather(op.Abs(x), op.Constant(value_ints=[1, 0]), axis=1)
        return op.Mul(op.Add(swapped, op.Constant(value_float=0.5)), op.Constant(value_floats=[3.0, 4.0]))

    (found,) = verified(lambda x: x.abs(), (x,), {aten.abs.default: translation}).findings
    script = script_of(found)
    made = dict(line.split(" = ", 1) for line in script.splitlines() if line.startswith("x"))
    assert [name for name, code in made.items() if "torch.rand" in code] == drawn
    assert [eval(code, {"torch": torch}).tolist() for code in (made["x1"], made["x2"])] == [[1, 0], 0.5]
    assert min(differences_of_script(script)) > 1


class Chain(torch.nn.Module):
    """Many operators, of which the last is `abs`."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number in range(110):
            x = (x * (1 + number / 1000)).sin() + 0.1
        return x.abs()


def unchanged(node: onnx.NodeProto) -> None:
    del node


def test_only_a_difference_costs_more_and_less_than_ten_verifications(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = patched(monkeypatch, unchanged)
    log = verified(Chain(), (torch.rand(5),))
    (whole,) = loaded
    assert not log.attachments
    loaded.clear()
    log = verified(Chain(), (torch.rand(5),), {aten.abs.default: wrong_where(lambda _: True, op.Abs)})
    assert [each.rule.id for each in log.findings if each.fails] == ["OXP6008"]
    assert whole > 300
    # NOTE: the verification itself, the comparison operator by operator, and a few runs of one operator.
    assert 2 * whole < sum(loaded) < 2.2 * whole
    assert max(loaded[1:]) < 100, "no further run keeps the values of all operators"


@pytest.fixture
def rows(load: Load) -> list[list[str]]:
    table = {aten.gelu.default: wrong_where(lambda shape: shape[-1] == 40, op.Gelu)}
    log = verified(load(BERT).Bert().eval(), TOKENS, table)
    (text,) = (each.text for each in log.attachments if each.name == "differences.csv")
    return [line.split(",") for line in text.splitlines()]


def test_the_differences_along_the_model(rows: list[list[str]]) -> None:
    head, *values = rows
    assert head == ["node", "operator", "module", "line", "difference", "own", "tolerance", "rule"]
    blamed = [row for row in values if row[-1]]
    assert [row[1:3] + row[-1:] for row in blamed] == [["aten::gelu", "layers.2", "OXP6008"]]
    place = values.index(blamed[0])
    assert all(float(row[4]) < 1e-5 for row in values[:place])
    assert all(float(row[4]) > 1e-5 for row in values[place:] if row[1] in ("aten::layer_norm", "aten::tanh"))
    assert all(float(row[5]) < 1e-5 for row in values if row is not blamed[0])


def test_the_model_stays_as_it_is_while_parts_are_computed_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[set[str]] = []
    by_reference = causes.by_reference

    def watched(part: Any, model: Any, values: Any) -> Any:
        nodes = [value for node in model.graph for value in node.outputs]
        found.append({value.dtype.name for value in (*model.graph.inputs, *model.graph.initializers.values(), *nodes)})
        return by_reference(part, model, values)

    monkeypatch.setattr(causes, "by_reference", watched)
    wrong = {torch.ops.aten.sinh.default: lambda x: op.Add(op.Sinh(x), op.CastLike(op.Constant(value_float=0.01), x))}
    with pytest.raises(onnxplain.ExportFailed):
        onnxplain.export(torch.sinh, (torch.randn(2, 4),), custom_translation_table=wrong, verify=True)
    assert found == [{"FLOAT"}]
