"""Which translation an operator gets, and how users bring their own."""

from __future__ import annotations

import inspect
import json
import math
import operator
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxscript
import pytest
import torch
from onnxscript import opset18 as op

import onnxplain
from onnxplain import ExportFailed, OnnxRegistry, ops
from onnxplain.registry import complex_dtype, qualified_name


def airy(x: ir.Value) -> ir.Value:
    return op.Mul(x, np.float32(2.0).item())


def other(x: ir.Value) -> ir.Value:
    return op.Mul(x, 3.0)


def test_torchlib_ours_and_the_users_in_rising_order() -> None:
    registry = OnnxRegistry()
    registry.register_op(airy, "aten", "conv2d")
    registry.register_op(other, "aten", "conv2d", "default")
    found = registry.get_op_functions("aten", "conv2d")
    assert found is not None
    assert [each.origin for each in found if not each.is_complex] == ["torchlib", "onnxplain", "user", "user"]
    assert [each.function for each in found[-2:]] == [airy, other]


def test_is_registered() -> None:
    registry = OnnxRegistry()
    assert registry.opset_version == 20
    assert registry.is_registered_op("aten", "add", "Tensor")
    assert not registry.is_registered_op("aten", "nextafter")
    assert registry.get_op_functions("aten", "nextafter") is None
    registry.register_op(airy, "aten", "nextafter")
    assert registry.is_registered_op("aten", "nextafter", "default")
    assert (registry.is_users("aten::nextafter"), registry.is_users("aten::add")) == (True, False)
    # Registries do not share what users register.
    assert not OnnxRegistry().is_registered_op("aten", "nextafter")


class Half(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(torch.complex(x, x).chunk(2)[0] + torch.complex(x[0], x[1]))


def test_the_complex_dtype_of_results_lists_and_scalars() -> None:
    graph = torch.export.export(Half(), (torch.ones(4),)).graph
    found = {str(node.target): complex_dtype(node) for node in graph.nodes if node.op == "call_function"}
    assert found["aten.chunk.default"] == "complex64"
    assert found["aten.add.Tensor"] == "complex64"
    assert found["aten.complex.default"] == "complex64"
    assert [complex_dtype(node) for node in graph.nodes if node.op == "placeholder"] == [None]


@pytest.mark.parametrize("version", [True, "20", 20.0])
def test_the_opset_version_is_an_int(version: object) -> None:
    with pytest.raises(onnxplain.InvalidArgument, match="opset_version"):
        OnnxRegistry(version)  # type: ignore[arg-type]


def test_nearest_name() -> None:
    assert OnnxRegistry().nearest("aten::special_erfd") == "aten::special_erf"
    assert OnnxRegistry().nearest("zzz::qqq") == ""
    assert OnnxRegistry().nearest("aten::range") == "aten::arange"
    assert OnnxRegistry().nearest("demo::gelu") == "aten::gelu"
    # A name is not its own neighbour, whether or not it has a translation.
    assert OnnxRegistry().nearest("aten::relu") == ""


@pytest.mark.parametrize("name", ["diff", "none", "isin", "istft", "clip", "data", "linalg_svd", "reflection_pad1d_backward", "log_normal"])
def test_no_far_name_is_offered(name: str) -> None:
    assert OnnxRegistry().nearest(f"aten::{name}") == ""


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (torch.ops.aten.add.Tensor, "aten::add.Tensor"),
        (torch.ops.aten.relu.default, "aten::relu"),
        (torch.ops.higher_order.cond, "higher_order::cond"),
        (operator.add, "_operator::add"),
        (math.ceil, "math::ceil"),
        (torch.sym_max, "torch::sym_max"),
        (3, "::3"),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_qualified_names(target: object, name: str) -> None:
    assert qualified_name(target) == name


def test_the_name_of_a_translation() -> None:
    registry = OnnxRegistry()
    for function in (airy, scripted, Nameless()):
        registry.register_op(function, "aten", "nextafter")
    found = registry.get_op_functions("aten", "nextafter")
    assert found is not None
    assert [each.name for each in found] == ["airy", "scripted", "a translation"]


@onnxscript.script(onnxscript.values.Opset("registry.test", 1))
def scripted(x):  # type: ignore[no-untyped-def]
    return op.Sin(x)


class Nameless:
    """A translation without a name."""

    def __call__(self, x: ir.Value) -> ir.Value:
        return x

    def __repr__(self) -> str:
        return "a translation"


def test_the_translation_that_an_operator_gets() -> None:
    registry = OnnxRegistry()

    def origin(name: str, is_complex: bool) -> str | None:
        found = registry.translation(name, is_complex=is_complex)
        return None if found is None else found.origin

    def origins(name: str) -> tuple[str | None, str | None]:
        return origin(name, False), origin(name, True)

    assert origins("aten::add.Tensor") == ("onnxplain", "onnxplain")
    assert origins("aten::conv2d") == ("onnxplain", "torchlib")
    assert origins("aten::clone") == ("onnxplain", "onnxplain")
    # Torchlib has translations for complex tensors as well, which are wrong.
    assert origins("aten::scalar_tensor") == ("torchlib", "onnxplain")
    assert origins("aten::matmul") == ("onnxplain", "onnxplain")
    assert origins("aten::chunk") == ("onnxplain", None)
    assert origins("aten::nextafter") == (None, None)
    registry.register_op(airy, "aten", "nextafter")
    assert origins("aten::nextafter") == ("user", None)
    registry.register_op(other, "aten", "nextafter", is_complex=True)
    assert origins("aten::nextafter") == ("user", "user")
    complex_one, real_one = (registry.translation("aten::nextafter", is_complex=each) for each in (True, False))
    assert complex_one is not None
    assert real_one is not None
    assert (real_one.function, complex_one.function) == (airy, other)
    registry.register_target(torch.ops.aten.nextafter.default, [airy, other])
    for is_complex in (True, False):
        found = registry.translation("aten::nextafter", is_complex=is_complex)
        assert found is not None
        assert (found.function, found.is_complex) == (other, None)


def test_the_overloads_of_an_operator() -> None:
    registry = OnnxRegistry()
    assert registry.overloads("aten::add") == registry.overloads("aten::add.out") == ("aten::add.Scalar", "aten::add.Tensor")
    assert registry.overloads("aten::nextafter") == ()
    registry.register_op(airy, "aten", "nextafter", "other")
    assert registry.overloads("aten::nextafter") == ("aten::nextafter.other",)
    assert {"aten::nextafter.other", "aten::relu", "aten::special_airy_ai"} <= {*registry.names()}


@pytest.mark.parametrize(
    ("target", "functions", "named"),
    [
        (torch.ops.aten.add, [airy], "aten.add.default"),
        (print, [airy], "torch.ops.aten.add.Tensor"),
        ("aten::add", [airy], "torch.ops.aten.add.Tensor"),
        (torch.ops.aten.relu.default, [airy, "other"], "aten.relu.default"),
    ],
)
def test_targets_that_no_graph_calls_are_refused(target: object, functions: Any, named: str) -> None:
    registry = OnnxRegistry()
    with pytest.raises(onnxplain.InvalidArgument, match=named):
        registry.register_target(target, functions)
    assert not registry.is_users(qualified_name(target))
    assert not registry.has(qualified_name(target)) or registry.translations(qualified_name(target))[-1].origin != "user"


@pytest.mark.parametrize(
    "target",
    [operator.add, math.ceil, torch.sym_max, torch.ops.higher_order.cond, torch.ops.aten.relu.default],
    ids=lambda each: each.__name__,
)
def test_targets_that_graphs_call(target: object) -> None:
    registry = OnnxRegistry()
    registry.register_target(target, [airy])
    assert registry.translations(qualified_name(target))[-1].function is airy


LOADED = """
import importlib, json, sys
OPS = "onnxscript.function_libs.torch_lib.ops"

def loaded():
    from onnxplain.registry import OnnxRegistry
    registry = OnnxRegistry()
    found = {name: [each for each in registry.translations(name) if each.origin == "torchlib"] for name in registry.names()}
    return {
        "translations": {name: [(each.name, each.is_complex) for each in of] for name, of in found.items() if of},
        "kind": type(found["aten::cosh"][0].function).__name__,
        "modules": OPS in sys.modules,
        "part": hasattr(sys.modules["onnxscript.function_libs.torch_lib"], "ops"),
    }

plain = loaded()
importlib.import_module(OPS)
for name in [name for name in sys.modules if name.startswith("onnxplain.registry")]:
    del sys.modules[name]
print(json.dumps([plain, loaded()]))
"""


def test_torchlib_loads_as_plain_functions_unless_it_is_compiled_already() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True, text=True)
    plain, compiled = json.loads(done.stdout)
    assert plain["translations"] == compiled["translations"]
    assert len(plain["translations"]) > 400
    assert plain["kind"] == "function" != compiled["kind"]
    # torch.onnx expects compiled functions in the modules, so plain ones do not stay there.
    assert (plain["modules"], plain["part"]) == (False, False)
    assert (compiled["modules"], compiled["part"]) == (True, True)


LOADED_TWICE = """
import sys, threading, time
from onnxplain.registry import torchlib
OPS = "onnxscript.function_libs.torch_lib.ops"
sys.setswitchinterval(1e-5)
found = []
first = threading.Thread(target=lambda: found.append(torchlib.functions()))
first.start()
while first.is_alive() and OPS not in sys.modules:
    time.sleep(0)
found.append(torchlib.functions())
first.join()
assert list(found[0]) == list(found[1]), [len(each) for each in found]
"""

COMPILED_MEANWHILE = """
import importlib, sys, threading, time
from onnxplain.registry import torchlib
OPS = "onnxscript.function_libs.torch_lib.ops"
sys.setswitchinterval(1e-5)
first = threading.Thread(target=lambda: importlib.import_module(OPS))
first.start()
while first.is_alive() and OPS not in sys.modules:
    time.sleep(0)
assert len(torchlib.functions()) > 400, len(torchlib.functions())
first.join()
"""


@pytest.mark.parametrize("program", [LOADED_TWICE, COMPILED_MEANWHILE], ids=["plain", "compiled"])
def test_torchlib_is_whole_while_another_thread_loads_it(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((airy, "aten::add", "Tensor"), "namespace"),
        ((airy, "aten", "add.Tensor"), "op_name"),
        ((airy, "aten", ""), "op_name"),
        ((airy, "aten", "add", "Ten sor"), "overload"),
        ((airy, "aten", 3), "op_name"),
        ((airy, "1aten", "add"), "namespace"),
        ((airy, "aten", "2relu"), "op_name"),
        ((airy, "aten", "add", ".."), "overload"),
        ((airy, "aten", "add", "Tensor.out"), "overload"),
        ((airy, "aten", "add", "1"), "overload"),
    ],
)
def test_malformed_names_are_refused(arguments: tuple[object, ...], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        OnnxRegistry().register_op(*arguments)  # type: ignore[arg-type]


def test_function_has_to_be_callable() -> None:
    with pytest.raises(TypeError, match="function"):
        OnnxRegistry().register_op("airy", "aten", "add")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is_complex"):
        OnnxRegistry().register_op(airy, "aten", "add", is_complex=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("functions", [airy, [other, airy]])
def test_custom_translation_wins(functions: object) -> None:
    table = {torch.ops.aten.special_airy_ai.default: functions}
    program = onnxplain.export(torch.special.airy_ai, (torch.ones(3),), custom_translation_table=table)  # type: ignore[arg-type]
    torch.testing.assert_close(program(torch.ones(3))[0], torch.full((3,), 2.0))


def test_failing_translation_is_a_finding_at_both_lines() -> None:
    def broken(x: ir.Value) -> ir.Value:
        raise KeyError("no such thing")

    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.special.airy_ai(x) + torch.special.bessel_j0(x)

    table = {torch.ops.aten.special_airy_ai.default: broken, torch.ops.aten.special_bessel_j0.default: broken}
    with pytest.raises(ExportFailed) as caught:
        onnxplain.export(model, (torch.ones(3),), custom_translation_table=table)  # type: ignore[arg-type]
    findings = caught.value.findings
    assert [each.rule.id for each in findings] == ["OXP3004", "OXP3004"]
    for finding in findings:
        assert finding.location is not None
        assert finding.location.line == broken.__code__.co_firstlineno + 1
        assert [place.line for place in finding.related] == [model.__code__.co_firstlineno + 1]
        assert finding.fixes
        assert "no such thing" in finding.cause


def two(x: ir.Value) -> tuple[ir.Value, ir.Value]:
    return op.Sin(x), op.Cos(x)


def number(x: ir.Value) -> int:
    return 3


def nothing(x: ir.Value) -> None:
    op.Sin(x)


def nullary() -> ir.Value:
    return op.Constant(value_float=1.0)


def binary(x: ir.Value, y: ir.Value) -> ir.Value:
    return op.Add(x, y)


def values_only(self: ir.Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ir.Value:
    return op.TopK(self, op.Constant(value_ints=[k]), axis=dim)[0]


def indices_only(self: ir.Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[None, ir.Value]:
    return None, op.TopK(self, op.Constant(value_ints=[k]), axis=dim)[1]


UNFIT = {two: "OXP3004", number: "OXP3004", nothing: "OXP3004", binary: "OXP3004", nullary: "OXP3002"}


@pytest.mark.parametrize(("translation", "rule"), UNFIT.items())
def test_translation_that_does_not_fit_is_a_finding_at_its_line(translation: Callable[..., Any], rule: str) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + 1.0

    with pytest.raises(ExportFailed) as caught:
        onnxplain.export(model, (torch.ones(3),), custom_translation_table={torch.ops.aten.relu.default: translation})
    (finding,) = caught.value.findings
    assert finding.rule.id == rule
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == (__file__, translation.__code__.co_firstlineno)
    assert [place.line for place in finding.related] == [model.__code__.co_firstlineno + 1]


def test_a_result_that_nobody_uses_may_be_missing() -> None:
    x = torch.tensor([[3.0, 1.0, 2.0]])
    for index, translation in enumerate((values_only, indices_only)):
        table: Any = {torch.ops.aten.topk.default: translation}
        program = onnxplain.export(lambda x, index=index: torch.topk(x, 2)[index], (x,), custom_translation_table=table)
        assert program(x)[0].tolist() == torch.topk(x, 2)[index].tolist()
        with pytest.raises(ExportFailed) as caught:
            onnxplain.export(lambda x: torch.topk(x, 2), (x,), custom_translation_table=table)
        assert [finding.rule.id for finding in caught.value.findings] == ["OXP3004"]


def test_a_list_of_one_value_is_a_value() -> None:
    table: Any = {torch.ops.aten.relu.default: lambda x: [op.Sin(x)]}
    x = torch.randn(3)
    torch.testing.assert_close(onnxplain.export(torch.relu, (x,), custom_translation_table=table)(x)[0], torch.sin(x))


def test_our_translations_take_arguments_as_the_schema_has_them() -> None:
    for name, found in ops.load().items():
        if not name.startswith("aten::"):
            continue
        packet, _, overload = name.removeprefix("aten::").partition(".")
        schema = getattr(getattr(torch.ops.aten, packet), overload or "default")._schema
        expected = [argument.name for argument in schema.arguments if not argument.kwarg_only]
        for function, _ in found:
            # NOTE: a name that is a keyword of Python has an underscore behind it.
            parameters = [each.rstrip("_") for each in inspect.signature(function).parameters][: len(expected)]
            assert parameters == expected[: len(parameters)], name
