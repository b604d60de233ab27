"""Modules as functions: the model is valid, computes the same as PyTorch, and its functions are those of the modules."""

from __future__ import annotations

import itertools
import pathlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import onnx
import onnxscript
import pytest
import torch
import zoo
from function_models import Around, Choices, Layer, MaskedStack, ResNet, Stack, UNet
from onnxscript import opset20 as op
from torch import nn

import onnxplain
from onnxplain.diagnostics import InvalidArgument

BATCH = torch.export.Dim("batch", max=64)


def exported(model: Any, args: Sequence[torch.Tensor], shapes: Any = None, **options: Any) -> onnxplain.ONNXProgram:
    program = onnxplain.export(model, tuple(args), dynamic_shapes=shapes, **{"functions": "modules", **options})
    onnx.checker.check_model(program.model_proto, full_check=True)
    return program


def check_same(program: onnxplain.ONNXProgram, model: Any, *examples: Sequence[torch.Tensor]) -> None:
    for example in examples:
        expected = model(*example)
        got = program(*example)
        for one, other in zip(got, expected if isinstance(expected, tuple) else (expected,), strict=True):
            torch.testing.assert_close(one, other.detach(), rtol=1e-4, atol=1e-5)


def called(program: onnxplain.ONNXProgram, name: str = "") -> Counter[str]:
    """How often a function calls other functions, or the main graph does."""
    functions = {function.name: function for function in program.model.functions.values()}
    nodes = functions[name] if name else program.model.graph
    return Counter(node.op_type for node in nodes if node.domain)


IMAGES = [{0: BATCH, 2: torch.export.Dim.AUTO}]


@pytest.mark.parametrize(
    ("make", "args", "shapes", "others"),
    [
        pytest.param(
            lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)),
            (torch.randn(3, 4),),
            [{0: BATCH}],
            [(torch.randn(1, 4),), (torch.randn(7, 4),)],
            id="mlp",
        ),
        pytest.param(ResNet, (torch.randn(2, 3, 16, 16),), IMAGES, [(torch.randn(1, 3, 24, 16),)], id="resnet"),
        pytest.param(
            UNet,
            (torch.randn(2, 2, 16, 16),),
            [{0: BATCH, 2: 4 * torch.export.Dim("height", min=2)}],
            [(torch.randn(3, 2, 24, 16),)],
            id="unet",
        ),
        pytest.param(lambda: Stack(3), (torch.randn(2, 4),), [{0: BATCH}], [(torch.randn(5, 4),)], id="twice"),
        pytest.param(Choices, (torch.ones(2, 4),), [{0: BATCH}], [(-torch.ones(5, 4),), (torch.ones(1, 4),)], id="control flow"),
        pytest.param(
            MaskedStack,
            (torch.randn(2, 3, 4), torch.tensor([1, 3])),
            [{0: BATCH, 1: torch.export.Dim("length")}, {0: BATCH}],
            [(torch.randn(3, 6, 4), torch.tensor([0, 6, 2]))],
            id="shared values",
        ),
        pytest.param(
            Around,
            (torch.randn(2, 4), torch.randn(2, 4)),
            [{0: BATCH}, {0: BATCH}],
            [(torch.randn(3, 4), torch.randn(3, 4))],
            id="outputs",
        ),
    ],
)
def test_models_compute_the_same(make: Any, args: Any, shapes: Any, others: Any) -> None:
    model = make().eval()
    program = exported(model, args, shapes)
    check_same(program, model, args, *others)
    assert program.model.functions
    assert not program.diagnostics.findings


def test_a_transformer_encoder_shares_its_layers() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    zoo.randomize(model)
    program = exported(model, [torch.randn(2, 5, 8)], [{0: BATCH, 1: torch.export.Dim("length")}])
    check_same(program, model, [torch.randn(3, 7, 8)], [torch.randn(1, 2, 8)])
    assert called(program) == {"TransformerEncoderLayer": 3}


def test_functions_nest_and_take_weights_as_inputs() -> None:
    program = exported(Stack(2), [torch.randn(2, 4)])
    functions = {function.name: function for function in program.model.functions.values()}
    assert called(program) == {"Layer": 3}
    assert called(program, "Layer") == {"Linear": 1, "LayerNorm": 1}
    assert functions["Layer"].domain == Layer.__module__
    assert functions["Linear"].domain == "torch.nn.modules.linear"
    names = [value.name for value in functions["Layer"].inputs]
    assert names == ["x", "linear.weight", "linear.bias", "norm.weight", "norm.bias"]
    assert [node.name for node in program.model.graph] == ["layers.0", "layers.1", "layers.0_1"]
    assert set(program.model.graph.initializers) == set(dict(Stack(2).named_parameters()))


def test_a_weight_named_like_a_value_in_the_function_has_a_name_of_its_own() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.relu = nn.Parameter(torch.rand(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x * 2 + 1) * self.relu

    model = nn.Sequential(Scaled(), Scaled())
    program = exported(model, [torch.randn(2, 4)])
    check_same(program, model, [torch.randn(2, 4)])
    (function,) = program.model.functions.values()
    names = [value.name for value in [*function.inputs, *(value for node in function for value in node.outputs)]]
    assert len(names) == len(set(names))
    assert "relu_" in names


def test_nodes_keep_what_they_tell_of_their_origin() -> None:
    model, args = Stack(1), (torch.randn(2, 4),)
    flat = [dict(node.metadata_props) for node in onnxplain.export(model, args).model.graph]
    program = exported(model, args, export_modules_as_functions={nn.Linear}, functions="none", verify=True)
    assert not program.diagnostics.findings
    (linear,) = program.model.functions.values()
    inside = [dict(node.metadata_props) for node in linear]
    outside = [dict(node.metadata_props) for node in program.model.graph if not node.domain]
    assert all(each in flat for each in [*inside, *outside])
    (props,) = {tuple(sorted(node.metadata_props.items())) for node in program.model.graph if node.domain}
    assert dict(props)["onnxplain.module"] == "layers.0.linear"


@pytest.mark.parametrize("depth", [2, 12])
def test_the_number_of_functions_does_not_grow_with_the_layers(depth: int) -> None:
    program = exported(Stack(depth), [torch.randn(2, 4)])
    assert sorted(function.name for function in program.model.functions.values()) == ["Layer", "LayerNorm", "Linear"]


def test_layers_of_other_attributes_or_shapes_have_their_own_functions() -> None:
    model = nn.Sequential(Layer(4), Layer(4), nn.Linear(4, 6), Layer(6), nn.LeakyReLU(0.1), nn.LeakyReLU(0.2))
    program = exported(model, [torch.randn(2, 4)])
    check_same(program, model, [torch.randn(2, 4)])
    assert called(program) == {"Layer": 2, "Linear_1": 1, "Layer_1": 1, "LeakyReLU": 1, "LeakyReLU_1": 1}


class Affine(nn.Module):
    """A layer whose numbers are no weights: some are attributes of the nodes, others constants."""

    def __init__(self, factor: float, shift: torch.Tensor, slope: float = 0.5) -> None:
        super().__init__()
        self.factor, self.shift, self.slope = factor, shift, slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.leaky_relu(x * self.factor, self.slope) + self.shift


def test_layers_of_other_constants_have_their_own_functions() -> None:
    shift, other = torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 2.0]])
    layers = [Affine(2.0, shift), Affine(3.0, shift), Affine(2.0, other), Affine(2.0, shift, 0.1), Affine(2.0, shift.clone())]
    model = nn.Sequential(*layers)
    program = exported(model, [torch.randn(3, 2)], [{0: BATCH}])
    check_same(program, model, [torch.randn(4, 2)])
    assert sorted(called(program).values()) == [1, 1, 1, 2]


class Branch(nn.Module):
    def __init__(self, factor: int) -> None:
        super().__init__()
        # NOTE: with a float that differs among modules, torch.cond itself fails in torch 2.15.
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x * self.factor, torch.neg, (x,))


def test_layers_of_other_branches_have_their_own_functions() -> None:
    model = nn.Sequential(Branch(2), Branch(3), Branch(2))
    program = exported(model, [torch.ones(3)])
    check_same(program, model, [torch.ones(3)], [-torch.ones(3)])
    assert sorted(called(program).values()) == [1, 2]


def test_only_the_chosen_classes_become_functions() -> None:
    program = exported(Stack(2), [torch.randn(2, 4)], export_modules_as_functions={nn.LayerNorm}, functions="none")
    assert [function.name for function in program.model.functions.values()] == ["LayerNorm"]
    assert not exported(Stack(2), [torch.randn(2, 4)], functions="none").model.functions
    assert exported(Stack(2), [torch.randn(2, 4)], export_modules_as_functions=True, functions="none").model.functions


@pytest.mark.parametrize("wrong", [{"functions": "all"}, {"export_modules_as_functions": "Linear"}, {"export_modules_as_functions": {3}}])
def test_wrong_arguments_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(wrong))):
        onnxplain.export(nn.ReLU(), (torch.ones(2),), **wrong)


@pytest.mark.parametrize(("opset", "has_functions"), [(13, False), (15, True), (17, True), (23, True)])
def test_opsets(opset: int, has_functions: bool) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    program = exported(model, [torch.randn(2, 4)], opset_version=opset)
    check_same(program, model, [torch.randn(2, 4)])
    assert bool(program.model.functions) == has_functions
    assert [finding.rule.id for finding in program.diagnostics.findings] == ([] if has_functions else ["OXP1010"])


def test_a_call_whose_nodes_cannot_stand_together_stays_flat() -> None:
    model = Stack(1)
    program = torch.export.export(model, (torch.randn(2, 4),))
    # NOTE: a node between those of the module, as a pass might leave it.
    relu = next(node for node in program.graph.nodes if "relu" in str(node.target))
    relu.meta["nn_module_stack"] = dict(itertools.islice(relu.meta["nn_module_stack"].items(), 1))
    exported_program = exported(program, [])
    check_same(exported_program, model, [torch.randn(2, 4)])
    assert called(exported_program) == {"Linear": 1, "LayerNorm": 1, "Layer": 1}
    assert any("layers.0" in event.text for event in exported_program.diagnostics.events)


def test_names_of_classes_become_valid() -> None:
    class Größe(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    odd = type("a b<c>::d", (Größe,), {"__module__": "my pack.é"})
    program = exported(nn.Sequential(Größe(), odd()), [torch.randn(2, 4)])
    check_same(program, lambda x: x * 4, [torch.randn(2, 4)])
    for function in program.model.functions.values():
        assert all(part.isidentifier() and part.isascii() for part in (function.name, *function.domain.split(".")))


def test_operators_of_other_domains_are_imported() -> None:
    opset = onnxscript.values.Opset("custom.domain", 3)

    @onnxscript.script(opset)
    def twice(x: Any) -> Any:
        return op.Add(x, x)

    def translation(x: Any) -> Any:
        return twice(x)

    program = onnxplain.export(
        nn.Sequential(nn.Tanh()),
        (torch.randn(2),),
        functions="modules",
        custom_translation_table={torch.ops.aten.tanh.default: translation},
    )
    (function,) = program.model.functions.values()
    assert {"", *(node.domain for node in function)} <= set(function.opset_imports)


@pytest.mark.parametrize("external", [True, False])
def test_saved_models_run(tmp_path: pathlib.Path, external: bool) -> None:
    import onnxruntime

    model, x = Stack(2), torch.randn(2, 4)
    path = tmp_path / "model.onnx"
    exported(model, [x], f=path, external_data=external)
    assert onnx.load(path).functions
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x).detach(), rtol=1e-4, atol=1e-5)


def test_a_program_with_functions_takes_weights_and_names_and_saves_without_weights(tmp_path: pathlib.Path) -> None:
    other = ResNet().eval()
    program = exported(ResNet().eval(), [torch.randn(2, 3, 8, 8)], [{0: BATCH}])
    program.apply_weights(other.state_dict())
    program.rename_axes({"batch": "rows"})
    program.optimize()
    check_same(program, other, [torch.randn(3, 3, 8, 8)])
    shapes = [str(value.shape) for function in program.model.functions.values() for value in function.inputs]
    assert any("rows" in shape for shape in shapes)
    assert not any("batch" in shape for shape in shapes)
    program.save(tmp_path / "bare.onnx", include_initializers=False, keep_initializers_as_inputs=True)
    bare = onnx.load(tmp_path / "bare.onnx")
    onnx.checker.check_model(bare, full_check=True)
    assert set(other.state_dict()) >= {value.name for value in bare.graph.input} - {"x"}


def test_the_command_line_takes_functions(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from onnxplain.cli import main

    monkeypatch.chdir(tmp_path)
    pathlib.Path("net.py").write_text("import torch\n\ndef build():\n    return torch.nn.Sequential(torch.nn.ReLU()), (torch.ones(2),)\n")
    result = CliRunner().invoke(main, ["export", "net.py:build", "-o", "net.onnx", "--functions", "modules"])
    assert result.exit_code == 0, result.output
    assert [function.name for function in onnx.load("net.onnx").functions] == ["ReLU"]


@pytest.mark.parametrize("functions", ["none", "modules"])
def test_translations_of_users_stay_functions_on_request(functions: str) -> None:
    @onnxscript.script()
    def softly(x: Any) -> Any:
        return op.Div(x, op.Add(op.Abs(x), op.Constant(value_float=1.0)))

    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.softsign(x.tanh()) + (x * 2).tanh()

    registry = onnxplain.OnnxRegistry()
    registry.register_op(softly, "aten", "tanh", inline=False)
    program = exported(nn.Sequential(Model()), [torch.randn(3)], functions=functions, _registry=registry)
    check_same(program, lambda x: nn.functional.softsign(nn.functional.softsign(x)) + nn.functional.softsign(2 * x), [torch.randn(3)])
    assert called(program, "Model" if functions == "modules" else "")["softly"] == 2
    with pytest.raises(InvalidArgument, match="inline"):
        registry.register_op(softly, "aten", "tanh", inline=1)  # type: ignore[arg-type]
