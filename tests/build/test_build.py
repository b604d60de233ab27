"""The built model: names, inputs, outputs, weights and the origin of nodes."""

from __future__ import annotations

import importlib.metadata
import pathlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import onnx
import pytest
import torch
from onnxscript import opset20 as op
from torch import nn
from torch._higher_order_ops.associative_scan import associative_scan_op

import onnxplain
from onnxplain import ExportFailed, ONNXProgram
from onnxplain.diagnostics import Diagnostic, Log
from onnxplain.recording import op as ours
from onnxplain.source.locations import FX_NODE

Load = Callable[..., ModuleType]
Marked = Callable[..., list[int]]


def export(model: Any, *args: Any, **options: Any) -> ONNXProgram:
    return onnxplain.export(model, args, **options)


def rules(log: Log) -> list[str]:
    return [finding.rule.id for finding in log.findings]


def facts(finding: Diagnostic, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(finding.rule, name) for name in names)


def inputs(program: ONNXProgram) -> list[str]:
    return [value.name or "" for value in program.model.graph.inputs]


def outputs(program: ONNXProgram) -> list[str]:
    return [value.name or "" for value in program.model.graph.outputs]


def all_names(program: ONNXProgram) -> list[str]:
    graph = program.model.graph
    values = [*graph.inputs, *graph.initializers.values(), *(value for node in graph.all_nodes() for value in node.outputs)]
    values += [value for subgraph in graph.subgraphs() for value in subgraph.inputs]
    return [value.name or "" for value in values]


def total(input: torch.Tensor, sum: torch.Tensor, x_1: torch.Tensor) -> torch.Tensor:
    return input + sum * x_1


def test_inputs_have_the_names_of_parameters() -> None:
    program = export(total, *torch.randn(3, 2))
    assert inputs(program) == ["input", "sum", "x_1"]


def test_names_that_were_asked_for() -> None:
    program = export(total, *torch.randn(3, 2), input_names=["left", "right"], output_names=["result"])
    assert (inputs(program), outputs(program)) == (["left", "right", "x_1"], ["result"])
    assert not program.diagnostics.findings
    # An empty name is none.
    assert inputs(export(total, *torch.randn(3, 2), input_names=["", "right"])) == ["input", "right", "x_1"]


@pytest.mark.parametrize("kind", ["input", "output"])
def test_names_without_a_value_are_a_finding_with_an_edit(load: Load, marked: Marked, kind: str) -> None:
    source = f"""
        import onnxplain
        import torch

        def build():
            return onnxplain.export(
                torch.relu,
                (torch.ones(2),),
                {kind}_names=["a", "b", "c"],  # names
            )
    """
    log = load(source).build().diagnostics
    assert rules(log) == ["OXP4003"] * 2
    assert [facts(finding, "kind", "name", "count") for finding in log.findings] == [(kind, "b", 1), (kind, "c", 1)]
    (edit,) = log.findings[0].fixes[0].edits
    assert edit.replacement == "['a']"
    assert edit.region.line == marked("names")[0]


def test_names_that_are_taken_change() -> None:
    def both(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + y, x - y

    program = export(both, *torch.randn(2, 2), input_names=["a", "a"], output_names=["a", "b"])
    assert (inputs(program), outputs(program)) == (["a", "a_1"], ["a_2", "b"])
    assert [facts(finding, "kind", "asked", "given") for finding in program.diagnostics.findings] == [
        ("input", "a", "a_1"),
        ("output", "a", "a_2"),
    ]


class Names(nn.Module):
    """A weight with the name of an input, and nodes in branches."""

    def __init__(self) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.randn(3))
        self.register_buffer("relu", torch.randn(3))

    def forward(self, x: torch.Tensor, relu: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x + self.x) + relu + self.relu
        return torch.cond(y.sum() > 0, lambda z: torch.relu(z) + 1, lambda z: torch.relu(z) - 1, (y,))


def test_every_value_has_a_different_name() -> None:
    model = Names()
    program = export(model, *torch.randn(2, 3))
    names = all_names(program)
    assert len({*names}) == len(names)
    assert "" not in names
    nodes = [node.name for node in program.model.graph.all_nodes()]
    assert len({*nodes}) == len(nodes)
    assert all(node.name == f"{node.op_type}_{node.outputs[0].name}" for node in program.model.graph.all_nodes())
    for args in (torch.ones(2, 3), -torch.ones(2, 3)):
        torch.testing.assert_close(program(*args)[0], model(*args).detach())


def test_inputs_that_nothing_uses() -> None:
    program = export(lambda x, y, z: x * 2, *torch.randn(3, 2))
    assert inputs(program) == ["x", "y", "z"]
    assert [facts(finding, "name") for finding in program.diagnostics.findings] == [("y",), ("z",)]
    assert set(rules(program.diagnostics)) == {"OXP4002"}


def test_an_input_that_is_a_constant_is_none() -> None:
    program = export(lambda x, scale, mode: x * scale, torch.ones(2), 3.0, "fast")
    assert inputs(program) == ["x"]
    assert program(torch.ones(2), 3.0, "fast")[0].tolist() == [3.0, 3.0]


def test_complex_values_become_real(load: Load, marked: Marked) -> None:
    source = """
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("phase", torch.polar(torch.ones(3), torch.ones(3)).to(torch.complex128))

            def forward(self, x):  # input
                return x * self.phase  # output
    """
    x = torch.complex(*torch.randn(2, 3))
    program = export(load(source).Net(), x)
    # NOTE: OXP1040 tells the double precision that the buffer brings in.
    findings = [finding for finding in program.diagnostics.findings if finding.rule.id == "OXP4007"]
    assert [facts(finding, "kind") for finding in findings] == [("input",), ("output",)]
    assert [finding.location and finding.location.line for finding in findings] == [*marked("input"), *marked("output")]
    (given,), (result,) = program.model.graph.inputs, program.model.graph.outputs
    assert (str(given.dtype), list(given.shape or ())) == ("FLOAT", [3, 2])
    assert (str(result.dtype), list(result.shape or ())) == ("DOUBLE", [3, 2])


OUTPUTS: dict[str, tuple[Callable[..., Any], int]] = {
    "an input": (lambda x: x, 1),
    "an input twice": (lambda x: (x, x), 2),
    "a value twice": (lambda x: (y := x * 2, y), 1),
    "a value and its part": (lambda x: (y := x * 2, y + 1), 0),
}


@pytest.mark.parametrize(("function", "copies"), OUTPUTS.values(), ids=OUTPUTS)
def test_each_output_is_a_value_of_its_own(function: Callable[..., Any], copies: int) -> None:
    program, x = export(function, torch.ones(3), optimize=False), torch.randn(3)
    assert len({*outputs(program)}) == len(outputs(program))
    assert not {*outputs(program)} & {*inputs(program)}
    assert [node.op_type for node in program.model.graph].count("Identity") == copies
    assert all(node.metadata_props["onnxplain.fx_node"] for node in program.model.graph)
    for got, want in zip(program(x), torch.utils._pytree.tree_leaves(function(x)), strict=True):
        assert torch.equal(got, want)


def test_outputs_that_onnx_does_not_have() -> None:
    program = export(lambda x: {"none": None, "sum": x.sum(), "text": "done", "size": x.shape[0]}, torch.ones(3))
    (left_out, constant) = program.diagnostics.findings
    assert (left_out.rule.id, facts(left_out, "values")) == ("OXP4005", (("None", "'done'"),))
    assert constant.rule.id == "OXP4004"
    assert [each.tolist() for each in program(torch.ones(3))] == [3.0, 3]


@pytest.mark.parametrize(
    ("result", "values"),
    [
        ("None", ("None",)),
        ("'text'", ("'text'",)),
        ("(None, ['text'])", ("None", "'text'")),
        ("()", ("tuple()",)),
        ("{'none': {}}", ("dict()",)),
    ],
)
def test_a_model_without_outputs_fails(load: Load, marked: Marked, result: str, values: tuple[str, ...]) -> None:
    source = f"""
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                y = x * 2
                return {result}  # here
    """
    with pytest.raises(ExportFailed) as failed:
        export(load(source).Net(), torch.ones(3))
    finding = failed.value.findings[0]
    assert (finding.rule.id, facts(finding, "values")) == ("OXP4005", (values,))
    assert (finding.location and finding.location.line) == marked("here")[0]


def test_a_model_that_only_writes_to_its_input_fails(load: Load, marked: Marked) -> None:
    source = """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):  # here
                x.add_(1)
    """
    with pytest.raises(ExportFailed) as failed:
        export(load(source).Net(), torch.ones(3))
    finding = failed.value.findings[0]
    assert (finding.rule.id, finding.location and finding.location.line) == ("OXP4005", *marked("here"))


def test_a_program_with_an_input_that_onnx_does_not_have() -> None:
    class Sparse(nn.Module):
        def forward(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
            return x + other.to_dense()

    program = torch.export.export(Sparse(), (torch.ones(2, 2), torch.ones(2, 2).to_sparse()))
    with pytest.raises(ExportFailed) as failed:
        export(program)
    assert [each.rule.id for each in failed.value.findings] == ["OXP1008"]


def test_an_output_that_is_the_same_for_all_inputs(load: Load, marked: Marked) -> None:
    source = """
        import torch

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(3))

            def forward(self, x):
                return x + 1, torch.zeros(2), self.weight  # returned
    """
    program = export(load(source).Net(), torch.ones(3))
    found = [finding for finding in program.diagnostics.findings if finding.rule.id == "OXP4004"]
    assert [facts(finding, "name") for finding in found] == [(outputs(program)[1],), (outputs(program)[2],)]
    assert found[0].location is not None
    assert found[0].location.line == marked("returned")[0]


def test_findings_name_outputs_as_the_model_does() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        constant = torch.ones(2) * 3
        return x + y, constant, constant

    program = export(function, torch.ones(3), torch.ones(3), input_names=["mul", "x"], output_names=["sum", "x"])
    found = [finding for finding in program.diagnostics.findings if finding.rule.id == "OXP4004"]
    assert outputs(program)[0] == "sum"
    assert [facts(finding, "name") for finding in found] == [(outputs(program)[1],), (outputs(program)[2],)]


class Weights(nn.Module):
    def __init__(self, **tensors: torch.Tensor) -> None:
        super().__init__()
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x + buffer.float().sum() for buffer in self.buffers()]


INF, NAN = float("inf"), float("nan")


def test_weights_that_are_no_numbers(load: Load, marked: Marked) -> None:
    large = torch.zeros(2**20)
    larger = torch.zeros(2**20 + 1)
    large[-1] = larger[-1] = NAN
    tensors = {
        "nan": torch.tensor([1.0, NAN]),
        "infinite": torch.tensor([INF, 1.0]),
        "both": torch.tensor([INF, -INF]),
        "integers": torch.tensor([1, 2]),
        "large": large,
        "larger": larger,
        "eight_bits": torch.tensor([NAN, 1.0]).to(torch.float8_e5m2),
    }
    log = export(Weights(**tensors), torch.zeros(1)).diagnostics
    found = [finding for finding in log.findings if finding.rule.id == "OXP4006"]
    assert [facts(finding, "name") for finding in found] == [("nan",), ("large",), ("eight_bits",)]


def test_weights_that_nothing_uses_are_left_out_and_may_be_anything() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model.register_buffer("spare", torch.tensor([NAN]))
    program = export(model, torch.ones(1, 2))
    assert not program.diagnostics.findings
    assert {*program.model.graph.initializers} == {"0.bias", "0.weight"} or len(program.model.graph.initializers) == 2


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) @ self.second.weight  # type: ignore[no-any-return]


def test_a_tied_weight_is_one_initializer_with_two_names() -> None:
    program, model = export(Tied(), torch.ones(2, 3), optimize=False), Tied()
    assert [*program.model.graph.initializers] == ["first.weight"]
    for name in ("first.weight", "second.weight"):
        program.apply_weights({name: model.first.weight}, strict=False)
        torch.testing.assert_close(program(torch.ones(2, 3))[0], model(torch.ones(2, 3)).detach())


SOURCE = """
    import torch

    class Inner(torch.nn.Module):
        def forward(self, x):
            return torch.diff(x)  # diff

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x)
"""


def test_nodes_tell_what_they_were_decomposed_from(load: Load, marked: Marked) -> None:
    program = export(load(SOURCE).Net(), torch.ones(4))
    entries = [dict(node.metadata_props) for node in program.model.graph]
    assert {each["onnxplain.parent"] for each in entries} == {"aten::diff"}
    assert {each["onnxplain.module"] for each in entries} == {"inner"}
    assert {each["onnxplain.source"].rpartition(":")[2] for each in entries} == {str(marked("diff")[0])}
    assert all(each["onnxplain.operator"] != "aten::diff" for each in entries)


def test_values_tell_which_fx_node_they_stand_for() -> None:
    program = export(lambda x: torch.diff(x).sin() + torch.topk(x, 1)[0], torch.ones(4), optimize=False)
    known = {value.name: value.meta[FX_NODE].name for node in program.model.graph for value in node.outputs if FX_NODE in value.meta}
    # One of several results is a node that selects it.
    assert known.pop("topk.0") == "getitem"
    assert {"sin", "add"} <= known.keys()
    assert all(name == fx_node for name, fx_node in known.items())


def test_what_translations_compute_gets_the_dtype_of_pytorch() -> None:
    table = {torch.ops.aten.abs.default: lambda x: op.Cast(op.Abs(x), to=11)}
    program = export(lambda x: x.abs() + 1, torch.ones(3), custom_translation_table=table)
    assert program(-torch.ones(3))[0].dtype is torch.float32
    assert {str(value.dtype) for value in program.model.graph.outputs} == {"FLOAT"}


WRONG: dict[str, Callable[..., Any]] = {
    "nothing": lambda x, k: None,
    "one of two": lambda x, k: op.Abs(x),
    "a number": lambda x, k: (op.Abs(x), 3),
    "three of two": lambda x, k: (op.Abs(x), op.Shape(x), op.Abs(x)),
    "an exception": lambda x, k: 1 / 0,
}


@pytest.mark.parametrize("translation", WRONG.values(), ids=WRONG)
def test_translations_that_return_something_else(translation: Callable[..., Any]) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        values, indices = torch.topk(x, 2)
        return values + indices

    with pytest.raises(ExportFailed) as failed:
        export(model, torch.randn(4), custom_translation_table={torch.ops.aten.topk.default: translation})
    (finding,) = failed.value.findings
    assert finding.rule.id == "OXP3004"
    assert finding.location is not None
    assert finding.location.file == __file__


def test_results_that_nothing_uses_need_no_value() -> None:
    program = export(
        lambda x: torch.topk(x, 2)[0], torch.randn(4), custom_translation_table={torch.ops.aten.topk.default: lambda x, k: (top(x), None)}
    )
    x = torch.tensor([3.0, 1.0, 4.0, 1.0])
    assert program(x)[0].tolist() == [4.0, 3.0]


def top(x: Any) -> Any:
    return op.TopK(x, op.Constant(value_ints=[2]))[0]


def test_all_translations_that_fail_are_listed(load: Load, marked: Marked) -> None:
    source = """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                y = x.abs()  # first
                values, _ = torch.topk(y, 2)  # second
                return values.sum() + y
    """

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise KeyError("no such thing")

    table = {torch.ops.aten.abs.default: broken, torch.ops.aten.topk.default: broken}
    with pytest.raises(ExportFailed) as failed:
        export(load(source).Net(), torch.randn(4), custom_translation_table=table)
    assert rules(failed.value.log) == ["OXP3004"] * 2
    called = [finding.related[0].line for finding in failed.value.findings]
    assert called == [*marked("first"), *marked("second")]


def test_sizes_and_their_types() -> None:
    def sizes(x: torch.Tensor) -> tuple[Any, ...]:
        return x.shape[0], x.shape[0] * 2, x.shape[0] / 2, x.shape[0] > 3

    program = export(sizes, torch.ones(4, 2), dynamic_shapes=({0: "n"},))
    assert [each.tolist() for each in program(torch.ones(6, 2))] == [6, 12, 3.0, True]
    assert [str(value.dtype) for value in program.model.graph.outputs] == ["INT64", "INT64", "FLOAT", "BOOL"]


class Summing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # NOTE: `torch.associative_scan` itself becomes this operator on a GPU only; on the CPU torch takes it apart.
        (sums,) = associative_scan_op(lambda a, b: (a + b,), (x,), ())
        return torch.cond(sums.sum() > 0, lambda y: y.sin(), lambda y: y + 1, (sums,))  # type: ignore[no-any-return]


def test_nodes_of_control_flow_have_origins() -> None:
    program = export(Summing(), torch.ones(3, 2))
    origins = {(node.op_type, node.metadata_props.get("onnxplain.operator")) for node in program.model.graph.all_nodes()}
    # The scan selects the first step by a Where, which no FX node stands for.
    assert {("Where", "higher_order::associative_scan"), ("Sin", "aten::sin")} <= origins
    assert None not in {operator for _, operator in origins}


class Parts(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.unbind()[1] * 2


class Branches(nn.Module):
    """One branch passes on a value from outside, the other one computes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        outer = x * 2
        return torch.cond(x.sum() > 0, lambda y: y.clone(), lambda y: y.sin(), (outer,))  # type: ignore[no-any-return]


def test_an_inner_graph_returns_values_that_it_makes() -> None:
    program = export(Branches(), torch.ones(3))
    (branch,) = (node for node in program.model.graph if node.op_type == "If")
    inside = {name: [node.op_type for node in branch.attributes[name].as_graph()] for name in ("then_branch", "else_branch")}
    assert inside == {"then_branch": ["Identity"], "else_branch": ["Sin"]}
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(program(x)[0], Branches()(x))


def test_inputs_of_inner_graphs_keep_their_names() -> None:
    program = export(Summing(), torch.ones(3, 2))
    (scan,) = (node for node in program.model.graph if node.op_type == "Scan")
    names = [value.name for value in scan.attributes["body"].as_graph().inputs]
    assert names[0] == "is_first"
    assert "input" not in names
    assert len({*all_names(program)}) == len(all_names(program))


def test_results_that_are_a_sequence() -> None:
    table = {torch.ops.aten.unbind.int: lambda x, dim=0: op.SplitToSequence(x, axis=dim, keepdims=0)}
    program = export(Parts(), torch.ones(3, 2), custom_translation_table=table)
    assert "SequenceAt" in [node.op_type for node in program.model.graph]
    x = torch.rand(3, 2)
    torch.testing.assert_close(program(x)[0], x[1] * 2)


class Offset(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.build_tests.offset(x)  # type: ignore[no-any-return]


def test_constants_in_a_custom_operator_belong_to_no_state_dict(tmp_path: pathlib.Path) -> None:
    numbers = torch.arange(9000.0)
    with torch.library._scoped_library("build_tests", "FRAGMENT") as library:
        library.define("offset(Tensor x) -> Tensor")
        library.impl("offset", lambda x: x + numbers, "CompositeExplicitAutograd")
        torch.library.register_fake("build_tests::offset", torch.empty_like, lib=library)
        program = export(Offset(), torch.ones(9000))
    program.save(tmp_path / "m.onnx", include_initializers=False)
    assert [len(each.raw_data) for each in onnx.load(tmp_path / "m.onnx").graph.initializer] == [4 * 9000]


MISSPELT = {"axi": 0}
MISNAMED: dict[str, tuple[Callable[..., Any], str | None]] = {
    "nearly": (lambda x: ours.Softmax(x, axi=0), "axis=0"),
    "a list for an int": (lambda x: ours.Softmax(x, axi=[0]), "axis=0"),
    "two numbers for an int": (lambda x: ours.Softmax(x, axi=[0, 1]), "axis=[0, 1]"),
    "not at all": (lambda x: ours.Softmax(x, zzz=0), None),
    "out of sight": (lambda x: ours.Softmax(x, **MISSPELT), None),
}


@pytest.mark.parametrize(("translation", "edit"), MISNAMED.values(), ids=MISNAMED)
def test_an_argument_that_the_operator_does_not_have(translation: Callable[..., Any], edit: str | None) -> None:
    with pytest.raises(ExportFailed) as failed:
        export(lambda x: torch.relu(x), torch.randn(4), custom_translation_table={torch.ops.aten.relu.default: translation})
    (finding,) = failed.value.findings
    assert finding.rule.id == "OXP3004"
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == (__file__, translation.__code__.co_firstlineno)
    assert [change.replacement for fix in finding.fixes for change in fix.edits] == ([edit] if edit else [])


class Scaled(torch.nn.Module):
    """Has a weight and an input of the same name."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(3))

    def forward(self, scale: torch.Tensor) -> torch.Tensor:
        return scale * self.scale


def test_a_weight_whose_name_an_input_takes_is_told() -> None:
    program = onnxplain.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),), input_names=["weight"])
    (finding,) = program.diagnostics.findings
    assert (finding.rule.id, *facts(finding, "kind", "asked")) == ("OXP4001", "weight", "weight")
    assert facts(finding, "given")[0] in program.model.graph.initializers
    (finding,) = onnxplain.export(Scaled(), (torch.ones(3),)).diagnostics.findings
    assert (finding.rule.id, *facts(finding, "asked")) == ("OXP4001", "scale")
    assert finding.location is not None
    assert finding.location.line == Scaled.forward.__code__.co_firstlineno


def test_a_translation_of_ours_that_fails_is_a_finding_at_the_call() -> None:
    def model(x: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
        return nn.functional.conv1d(x, kernel, padding="same")

    with pytest.raises(ExportFailed) as failed:
        onnxplain.export(model, (torch.ones(1, 1, 7), torch.ones(1, 1, 3)), dynamic_shapes=(None, {2: torch.export.Dim.DYNAMIC}))
    # NOTE: torch 2.11 limits the kernel as well.
    (finding,) = (each for each in failed.value.findings if each.rule.id != "OXP1011")
    assert (finding.rule.id, *facts(finding, "operator")) == ("OXP3004", "aten::conv1d.padding")
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == (__file__, model.__code__.co_firstlineno + 1)
    assert [pathlib.Path(place.file).name for place in finding.related] == ["convolution.py"]
    assert finding.fixes[0].snippet


def test_arguments_that_are_no_values_are_ints_and_texts() -> None:
    seen = dict[str, Any]()

    def full(size: Any, fill_value: Any, dtype: Any = None, layout: Any = None, device: Any = None) -> Any:
        seen.update(size=size, fill_value=fill_value, dtype=dtype, layout=layout, device=device)
        return op.ConstantOfShape(op.Constant(value_ints=size))

    def clone(self: Any, memory_format: Any = None) -> Any:
        seen.update(memory_format=memory_format)
        return op.Identity(self)

    def stack(tensors: Any, dim: int = 0) -> Any:
        seen.update(tensors=[each.name for each in tensors])
        return op.Concat(*[op.Unsqueeze(each, op.Constant(value_ints=[dim])) for each in tensors], axis=dim)

    def model(x: torch.Tensor) -> torch.Tensor:
        zeros = torch.full((3, 1), 0.0, dtype=torch.float32, layout=torch.strided, device="cpu")
        return torch.stack([x, x.clone(memory_format=torch.contiguous_format), x]) + zeros

    aten = torch.ops.aten
    table = {aten.full.default: full, aten.clone.default: clone, aten.stack.default: stack}
    program, x = export(model, torch.ones(4), custom_translation_table=table, optimize=False), torch.randn(4)
    torch.testing.assert_close(program(x)[0], model(x))
    assert seen.pop("tensors") == ["x", "x", "x"]
    assert seen == {
        "size": [3, 1],
        "fill_value": 0.0,
        "dtype": 1,
        "layout": "torch.strided",
        "device": "cpu",
        "memory_format": "torch.contiguous_format",
    }


class Kinds(nn.Module):
    """A weight of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(300))
        self.register_buffer("kept", torch.randn(300))
        self.register_buffer("derived", torch.arange(300.0), persistent=False)
        self.plain = torch.arange(300.0) * 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight + self.kept * self.derived + self.plain


def test_which_weights_a_state_dict_has() -> None:
    model, x = Kinds(), torch.randn(300)
    program = export(model, x, optimize=False)
    held = {name: value.const_value for name, value in program.model.graph.initializers.items()}
    assert {name: tensor.in_state for name, tensor in held.items()} == {  # type: ignore[union-attr]
        "weight": True,
        "kept": True,
        "derived": False,
        "plain": False,
    }
    assert [tensor.place for tensor in held.values()] == [*range(4)]  # type: ignore[union-attr]
    torch.testing.assert_close(program(x)[0], model(x).detach())
    program.apply_weights({"weight": torch.zeros(300), "kept": torch.zeros(300)})
    torch.testing.assert_close(program(x)[0], model.plain)


@pytest.mark.parametrize("persistent", [False, True])
def test_only_buffers_that_no_state_dict_has_are_constants(persistent: bool) -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mask", torch.ones(3, 3, dtype=torch.bool).tril(), persistent=persistent)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.scaled_dot_product_attention(x, x, x, self.mask)

    program = export(Masked(), torch.randn(1, 3, 4), optimize=False)
    # NOTE: another mask may have rows that see nothing.
    assert ("ReduceMax" in [node.op_type for node in program.model.graph]) is persistent


def test_dims_whose_names_are_not_kept() -> None:
    program = export(lambda x, y: x + y, *torch.ones(2, 3, 2), dynamic_shapes=({0: "rows"}, {0: "lines"}))
    (finding,) = program.diagnostics.findings
    assert (finding.rule.id, *facts(finding, "kind", "asked", "given")) == ("OXP4001", "dim", "lines", "rows")
    assert finding.fixes[0].snippet == ""


def test_a_dim_whose_size_is_another_one_plus_a_number_gets_a_dim() -> None:
    shapes = ({0: "rows"}, {0: "lines"})
    program = export(lambda x, y: x[1:] + y, torch.ones(4, 2), torch.ones(3, 2), dynamic_shapes=shapes)
    (finding,) = program.diagnostics.findings
    assert (finding.rule.id, *facts(finding, "asked", "given")) == ("OXP4001", "rows", "lines + 1")
    assert finding.fixes[0].snippet.splitlines() == ['lines = torch.export.Dim("lines")', "rows = lines + 1"]


def test_the_model_tells_what_made_it() -> None:
    model = export(lambda x: x + 1, torch.ones(2)).model
    assert (model.ir_version, model.producer_name, model.producer_version) == (10, "onnxplain", importlib.metadata.version("onnxplain"))
    assert (model.graph.name, dict(model.graph.opset_imports)) == ("main_graph", {"": 20})


def test_a_result_that_a_translation_leaves_out() -> None:
    class Bag(nn.Module):
        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

        def forward(self, weight: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = torch.ops.aten._embedding_bag(weight, indices, offsets, False, 1)[self.index]
            return result + 1

    given = (torch.randn(9, 4), torch.tensor([0, 8, 3, 1]), torch.tensor([0, 2]))
    with pytest.raises(ExportFailed) as failed:
        export(Bag(1), *given)
    assert rules(failed.value.log) == ["OXP3004"]
    torch.testing.assert_close(export(Bag(2), *given)(*given)[0], Bag(2)(*given))
