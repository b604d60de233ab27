"""Equal layers are translated a few times and copied: the model is the same as one of which every layer was translated."""

from __future__ import annotations

import functools
import re
import runpy
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxscript
import pytest
import torch
from marks import skip_if_old_runtime
from torch import nn
from typing_extensions import override

import onnxplain
import onnxplain.pipeline
from onnxplain.repeats import copies

LIBRARY = torch.library.Library("repeats", "DEF")
LIBRARY.define("lonely(Tensor x) -> Tensor")
LIBRARY.impl("lonely", torch.empty_like, "Meta")

LAYERS = 7
WIDTH = 8


class Block(nn.Module):
    def __init__(self, eps: float = 1e-5, scale: float = 0.5) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH, eps=eps)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.scale = scale

    @override
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y) * self.scale


class Turned(Block):
    """The same operators on the same values in another order."""

    @override
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        y = nn.functional.scaled_dot_product_attention(k, q, v, is_causal=True)
        return x + self.out(y) * self.scale


class Late(Block):
    """A layer, or only its end."""

    def __init__(self, *, is_whole: bool = True) -> None:
        super().__init__()
        self.is_whole = is_whole

    @override
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) if self.is_whole else x + self.out(x) * self.scale


class Joined(Block):
    """A layer that reads a list of values."""

    order = 1

    @override
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        both = torch.cat([x, super().forward(x)][:: self.order], -1)
        return both[..., 2 : 2 + WIDTH]


class Swapped(Joined):
    """The same values in another order."""

    order = -1


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
        self.norm = nn.BatchNorm1d(WIDTH)
        self.gate = nn.Conv1d(WIDTH, WIDTH, 1)

    @override
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.conv(x.transpose(1, 2))).relu()
        return x + (y * self.gate(y).sigmoid()).transpose(1, 2)


class Cached(Block):
    """A layer that also returns what it computed."""

    @override
    def forward(self, x: torch.Tensor) -> Any:
        y = super().forward(x)
        return y, y.mean(-1)


class Stack(nn.Module):
    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    @override
    def forward(self, x: torch.Tensor) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class Collected(Stack):
    """All layers' results are used after the last one."""

    @override
    def forward(self, x: torch.Tensor) -> Any:
        found = []
        for layer in self.layers:
            x, more = layer(x)
            found.append(more)
        return x, *found


class Skipping(Stack):
    """Each layer also reads the result of the layer before the one before it."""

    @override
    def forward(self, x: torch.Tensor) -> Any:
        before = x
        for layer in self.layers:
            x, before = layer(x) + before, x
        return x


class Masked(Stack):
    """All layers read one mask, and compute the same from it."""

    @override
    def forward(self, x: torch.Tensor) -> Any:
        mask = (x.sum(-1, keepdim=True) > 0).float()
        for layer in self.layers:
            x = layer(x) * (1 - mask).clamp(0.25, 1)
        return x


class Decomposed(Block):
    """A layer with an operator that passes decompose."""

    @override
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + x.diff(dim=-1).sum(-1, keepdim=True)


class WithRegion(Stack):
    """Before the layers, operators come out of a region without gradients. They have names like those in the layers."""

    @override
    def forward(self, x: torch.Tensor) -> Any:
        with torch.no_grad():
            scale = (x * 0.5).sum(-1, keepdim=True) * 0.125
        return super().forward(x + scale.to(torch.float64).to(torch.float32) * 0.5)


class Constant(nn.Module):
    """A layer with a number in its code that no state dict knows."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("number", torch.tensor([number, 1.0]), persistent=False)

    @override
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).tanh() * self.number[0] + x.cos() * self.number[1]


def _cast(block: nn.Module) -> nn.Module:
    class Double(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = block.double()

        @override
        def forward(self, x: torch.Tensor) -> Any:
            return self.inner(x.double()).float()

    return Double()


def blocks(**given: Any) -> list[nn.Module]:
    return [Block(**given) for _ in range(LAYERS)]


def replaced(index: int, block: nn.Module) -> list[nn.Module]:
    return [*blocks()[:index], block, *blocks()[index + 1 :]]


def tied() -> list[nn.Module]:
    layers = blocks()
    for each in layers[1::2]:
        each.qkv = layers[0].qkv
    return layers


MODELS: dict[str, tuple[Callable[[], nn.Module], bool]] = {
    "equal": (lambda: Stack(blocks()), True),
    "convolutions": (lambda: Stack([Convolution() for _ in range(LAYERS)]), True),
    "alternating": (lambda: Stack([Block(scale=0.5 if index % 2 else 0.25) for index in range(2 * LAYERS - 2)]), True),
    "masked": (lambda: Masked(blocks()), True),
    "decomposed": (lambda: Stack([Decomposed() for _ in range(LAYERS)]), True),
    "with a region": (lambda: WithRegion(blocks()), True),
    "one shared layer": (lambda: Stack([Block()] * LAYERS), True),
    "collected": (lambda: Collected([Cached() for _ in range(LAYERS)]), False),
    "skipping": (lambda: Skipping(blocks()), False),
    "other operands": (lambda: Stack(replaced(3, Turned())), False),
    "another eps": (lambda: Stack(replaced(3, Block(eps=1e-3))), False),
    "another constant": (lambda: Stack(replaced(3, Block(scale=0.125))), False),
    "another order in a list": (lambda: Stack([Swapped() if index == 3 else Joined() for index in range(LAYERS)]), False),
    "another dtype": (lambda: Stack(replaced(3, _cast(Block()))), False),
    "another weight's place": (lambda: Stack(tied()), False),
    "other numbers": (lambda: Stack([Constant(0.5 if index == 3 else 0.75) for index in range(LAYERS)]), False),
}
"""Models, and whether layers of them are copied. In the others a layer differs too much from its neighbours."""


def _captured(model: nn.Module) -> torch.export.ExportedProgram:
    dynamic = torch.export.Dim.DYNAMIC
    return torch.export.export(model, (torch.randn(2, 5, WIDTH),), dynamic_shapes=({0: dynamic, 1: dynamic},), strict=False)


def _whole(monkeypatch: pytest.MonkeyPatch, model: torch.export.ExportedProgram, **options: Any) -> onnxplain.ONNXProgram:
    """The export without copies."""
    with monkeypatch.context() as patch:
        patch.setattr(onnxplain.pipeline, "find", lambda *_: ())
        return onnxplain.export(model, **options)


def _copies(program: onnxplain.ONNXProgram) -> bool:
    return any("were copied" in event.text for event in program.diagnostics.events)


def _described(node: ir.Node) -> object:
    operator = node.meta.get("fx_node")
    outputs = [(str(value.type), str(value.shape), str(value.meta.get("fx_node"))) for value in node.outputs]
    attributes = {name: str(each.value) for name, each in node.attributes.items()}
    return node.op_identifier(), attributes, dict(node.metadata_props), str(operator), outputs


def _named(node: ir.Node) -> list[str]:
    """The names after operators; those of other values are numbers."""
    return [value.name for value in node.outputs if value.name and not value.name.startswith("val_")]


@pytest.mark.parametrize("name", MODELS)
def test_copies_are_what_a_translation_makes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_if_old_runtime(name, "another dtype")
    build, copied = MODELS[name]
    torch.manual_seed(0)
    model = build().eval()
    captured = _captured(model)
    program, whole = onnxplain.export(captured), _whole(monkeypatch, captured)
    assert _copies(program) is copied
    assert not _copies(whole)
    assert list(map(_described, program.model.graph)) == list(map(_described, whole.model.graph))
    assert list(map(_named, program.model.graph)) == list(map(_named, whole.model.graph))
    assert set(program.model.graph.initializers) == set(whole.model.graph.initializers)
    onnx.checker.check_model(program.model_proto, full_check=True)
    for shape in ((3, 7, WIDTH), (1, 1, WIDTH)):
        x = torch.randn(shape)
        expected = model(x)
        results = program(x)
        for result, want in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
            np.testing.assert_allclose(result.numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("layers", "copied"), [(lambda: [Turned(), *blocks()], LAYERS + 1 - 4), (lambda: [*blocks(), Turned()], LAYERS - 4)]
)
def test_what_the_first_block_reads_does_not_matter(layers: Callable[[], list[nn.Module]], copied: int) -> None:
    """What the last one reads does: the layer at the end is in no block."""
    program = onnxplain.export(_captured(Stack(layers()).eval()))
    (told,) = (event.text for event in program.diagnostics.events if "were copied" in event.text)
    assert re.findall(r"(\d+) times", told) == [str(copied)]


def test_nodes_of_another_onnx_ir_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_known() -> object:
        return runpy.run_path(str(copies.__file__))["_IS_KNOWN"]

    assert is_known()
    with monkeypatch.context() as patch:
        patch.setattr(ir.Node, "__slots__", (*ir.Node.__slots__, "new"))
        assert not is_known()
    monkeypatch.delattr(ir.Value, "_add_usage")
    assert not is_known()


def test_a_copied_node_is_what_the_constructor_of_onnx_ir_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    captured = _captured(Stack(blocks()).eval())
    assert copies._IS_KNOWN, "onnx_ir has changed: see what its constructor of a node does now"
    fields = []
    for known in (True, False):
        monkeypatch.setattr(copies, "_IS_KNOWN", known)
        nodes = [node for node in onnxplain.export(captured).model.graph if isinstance(node, copies.CopiedNode)]
        assert nodes
        fields.append([{name: repr(getattr(node, name)) for name in ir.Node.__slots__ if name != "_graph"} for node in nodes])
        for node in nodes:
            assert node.graph is not None
            assert node.attributes._owner is node
            assert all((node, index) in value.uses() for index, value in enumerate(node.inputs) if value is not None)
            assert all(value.producer() is node and value.index() == index for index, value in enumerate(node.outputs))
    assert fields[0] == fields[1]


def test_functions_and_older_opsets_have_copies_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Stack(blocks()).eval()
    captured = _captured(model)
    x = torch.randn(3, 4, WIDTH)
    for options in ({"functions": "modules"}, {"opset_version": 13}, {"optimize": False}):
        program, whole = onnxplain.export(captured, **options), _whole(monkeypatch, captured, **options)
        assert _copies(program)
        assert [node.op_identifier() for node in program.model.graph] == [node.op_identifier() for node in whole.model.graph]
        assert sorted(map(str, program.model.functions)) == sorted(map(str, whole.model.functions))
        np.testing.assert_allclose(program(x)[0].numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)


class Renamed(Block):
    """The same operators in calls of another class."""


def _with_body(program: onnxplain.ONNXProgram) -> object:
    graphs = program.model.graph, *program.model.functions.values()
    # NOTE: the names of some nodes have numbers.
    names = [[(_described(node), _named(node), (node.name or "").partition("_val_")[0]) for node in graph] for graph in graphs]
    return names, list(program.model.functions)


@pytest.mark.parametrize(
    ("layers", "copied"),
    [
        (blocks, True),
        (lambda: [Convolution() for _ in range(LAYERS)], True),
        (lambda: replaced(3, Renamed()), False),
    ],
)
def test_a_copied_call_is_what_an_outlined_layer_is(
    layers: Callable[[], list[nn.Module]], copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = _captured(Stack(layers()).eval())
    program, whole = onnxplain.export(captured, functions="modules"), _whole(monkeypatch, captured, functions="modules")
    assert _with_body(program) == _with_body(whole)
    told = next(event.text for event in program.diagnostics.events if "were copied" in event.text)
    assert ("the 1 ONNX nodes" in told) is copied


def test_a_finding_names_the_operator_of_every_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unsupported(Block):
        @override
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + torch.ops.repeats.lonely(x)

    captured = _captured(Stack([Unsupported() for _ in range(LAYERS)]).eval())
    found = []
    for export in (onnxplain.export, functools.partial(_whole, monkeypatch)):
        with pytest.raises(onnxplain.ExportFailed) as failed:
            export(captured)
        found.append([(each.rule.id, each.count, each.location, each.occurrences) for each in failed.value.log.findings])
    assert found[0] == found[1]
    assert [(rule, count) for rule, count, *_ in found[0]] == [("OXP3001", LAYERS)]


def _findings(export: Callable[[], onnxplain.ONNXProgram]) -> list[object]:
    return [(each.rule, each.count, each.location) for each in export().diagnostics.findings]


def test_a_weight_with_nan_is_told_for_a_copied_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Stack(blocks()).eval()
    with torch.no_grad():
        model.layers[4].out.weight[0, 0] = float("nan")
    captured = _captured(model)
    assert _copies(onnxplain.export(captured))
    found = _findings(lambda: onnxplain.export(captured))
    assert found == _findings(lambda: _whole(monkeypatch, captured))
    assert any("layers.4.out.weight" in str(each) for each in found)


def test_an_input_that_a_copied_layer_reads_is_used() -> None:
    class Biased(Stack):
        @override
        def forward(self, x: torch.Tensor, biases: list[torch.Tensor]) -> Any:
            for layer, bias in zip(self.layers, biases, strict=False):
                x = layer(x) + bias
            return x

    model = Biased(blocks()).eval()
    args = torch.randn(2, 5, WIDTH), [torch.randn(WIDTH) for _ in range(LAYERS + 1)]
    program = onnxplain.export(torch.export.export(model, args, strict=False))
    assert _copies(program)
    assert [getattr(each.rule, "name", "") for each in program.diagnostics.findings] == [f"biases_{LAYERS}"]
    np.testing.assert_allclose(program(*args)[0].numpy(), model(*args).detach().numpy(), rtol=1e-4, atol=1e-5)


def shifted() -> list[nn.Module]:
    """Layers whose equal blocks begin within the first layer, so that each has a part of two layers."""
    return [Late(is_whole=False), *(Late() for _ in range(LAYERS))]


@pytest.mark.parametrize(("layers", "options", "products"), [(blocks, {}, 2 * 4), (shifted, {"functions": "modules"}, 2 * 4 + 1)])
def test_passes_see_a_few_layers(
    layers: Callable[[], list[nn.Module]], options: dict[str, Any], products: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    run = onnxplain.pipeline.passes.run_without
    monkeypatch.setattr(onnxplain.pipeline.passes, "run_without", lambda *given: made.append(run(*given)) or made[-1])
    monkeypatch.setattr(onnxplain.pipeline.passes, "run", lambda *_: pytest.fail("passes see all layers"))
    program = onnxplain.export(_captured(Stack(layers()).eval()), **options)
    assert _copies(program)
    (part,) = made
    weights = [each for each in part.graph_module.graph.nodes if each.op == "call_function" and "linear" in each.name]
    assert len(weights) == products


@pytest.mark.parametrize(("far", "copied"), [(11, True), (12, False)])
def test_twelve_lengths_of_blocks_are_tried(far: int, copied: bool) -> None:
    """Operators that come once more at the end are equal over distances that cover more of the graph than those between the layers."""

    class Framed(Stack):
        @override
        def forward(self, x: torch.Tensor) -> Any:
            functions = [torch.sin, torch.cos, torch.tanh, torch.exp, torch.relu, torch.sigmoid]
            functions += [torch.erf, torch.abs, torch.square, torch.atan, torch.sinh, torch.neg]
            for function in functions[:far]:
                x = function(x)
            x = super().forward(x)
            for number in range(100):
                x = x + number
            for function in functions[far - 1 :: -1]:
                x = function(x)
            return x

    program = onnxplain.export(_captured(Framed([nn.Sequential(nn.Softplus(), nn.ELU(), nn.SELU()) for _ in range(10)]).eval()))
    assert _copies(program) is copied


def test_new_weights_reach_the_copies() -> None:
    torch.manual_seed(1)
    program, other = onnxplain.export(_captured(Stack(blocks()).eval())), Stack(blocks()).eval()
    program.apply_weights(other.state_dict())
    x = torch.randn(2, 3, WIDTH)
    np.testing.assert_allclose(program(x)[0].numpy(), other(x).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_a_dropped_name_of_a_dim_is_told_once() -> None:
    shapes = {"x": {0: "batch", 1: "batch2"}}

    class Square(Stack):
        @override
        def forward(self, x: torch.Tensor) -> Any:
            return super().forward(x + x.sum(-1).transpose(0, 1).unsqueeze(-1))

    program = onnxplain.export(Square(blocks()).eval(), (torch.randn(4, 4, WIDTH),), dynamic_shapes=shapes)
    assert _copies(program)
    assert [each.count for each in program.diagnostics.findings if each.rule.id == "OXP4001"] == [1]


def test_what_a_translation_of_the_user_does_is_done_for_each_layer() -> None:
    calls: list[Any] = []

    def translation(x: Any) -> Any:
        calls.append(x)
        return onnxscript.opset18.Mul(x, np.float32(len(calls)))

    model = nn.Sequential(*(nn.Sequential(Block(), nn.Sigmoid()) for _ in range(LAYERS)))
    x = torch.randn(2, 3, WIDTH)
    program = onnxplain.export(model, (x,), custom_translation_table={torch.ops.aten.sigmoid.default: translation})
    expected = x
    for number, (block, _) in enumerate(model, 1):
        expected = block(expected) * number
    assert len(calls) == LAYERS
    torch.testing.assert_close(program(x)[0], expected.detach(), rtol=1e-4, atol=1e-2)
