"""Each of our translations equals eager PyTorch, on data that differs from the example and on other sizes of dynamic dims."""

from __future__ import annotations

from typing import Any
from unittest import mock

import onnxruntime
import pytest
import torch
from onnxscript import opset20 as op
from ops.cases import CASES
from ops.cases.case import Case
from packaging.version import Version
from parity import check

import onnxplain
from onnxplain import Level, ops, pipeline
from onnxplain.dispatch import Plan
from onnxplain.registry import qualified_name

Translation = tuple[str, bool | None]
"""A qualified name, and whether the translation is for complex tensors."""

TRANSLATIONS: list[Translation] = [(name, is_complex) for name, found in ops.load().items() for _, is_complex in found]


EXPORTED: dict[str, tuple[onnxplain.ONNXProgram, frozenset[Translation]]] = {}
"""The cases that were exported so far."""


def exported(title: str) -> tuple[onnxplain.ONNXProgram, frozenset[Translation]]:
    """The program of a case, and the translations that it is made of. Exports each case once."""
    if title not in EXPORTED:
        EXPORTED[title] = export(CASES[title])
    return EXPORTED[title]


def export(case: Case) -> tuple[onnxplain.ONNXProgram, frozenset[Translation]]:
    used, plan = set[Translation](), pipeline.plan

    def recorded(*args: Any) -> Plan:
        planned = plan(*args)
        calls = [(qualified_name(node.target), call.translation) for node, call in planned.calls.items()]
        used.update((name, translation.is_complex) for name, translation in calls if translation.origin == "onnxplain")
        return planned

    with mock.patch.object(pipeline, "plan", recorded):
        if case.replaced:
            return onnxplain.export(edited(case)), frozenset(used)
        return onnxplain.export(case.function, case.args, dynamic_shapes=True if case.dynamic else None), frozenset(used)


def edited(case: Case) -> torch.export.ExportedProgram:
    """The captured program with other operators."""

    class Model(torch.nn.Module):
        def forward(self, *args: torch.Tensor) -> Any:
            return case.function(*args)

    sizes = torch.export.Dim.DYNAMIC if case.dynamic else torch.export.Dim.STATIC
    shapes = tuple(dict.fromkeys(range(arg.ndim), sizes) for arg in case.args)
    program = torch.export.export(Model(), case.args, dynamic_shapes={"args": shapes})
    nodes = [node for node in program.graph.nodes if node.target in case.replaced]
    assert nodes
    for node in nodes:
        node.target = case.replaced[node.target]
        # NOTE: the number of elements of a vector is its size along dim 0; the schema knows how many arguments the other operator takes.
        schema = getattr(node.target, "_schema", None)
        node.args = node.args[: len(schema.arguments) if schema else 1]
    return program


def is_old(case: Case) -> bool:
    """Whether the installed torch or ONNX Runtime is too old for a case."""
    return Version(torch.__version__) < Version(case.since) or Version(onnxruntime.__version__) < Version(case.runtime)


def skip_if_old(case: Case) -> None:
    if Version(torch.__version__) < Version(case.since):
        pytest.skip(f"torch.export cannot capture it before torch {case.since}")
    if Version(onnxruntime.__version__) < Version(case.runtime):
        pytest.skip(f"ONNX Runtime cannot run it before {case.runtime}")


@pytest.mark.parametrize("title", CASES)
def test_equals_eager(title: str) -> None:
    case = CASES[title]
    skip_if_old(case)
    program, _ = exported(title)
    assert {each.rule.id for each in program.diagnostics.findings if each.level is not Level.NOTE} == case.expects
    assert all(isinstance(size, int) or size.value for value in program.model.graph.inputs for size in value.shape)
    check(case.function, program, tuple(arg.flip(0) if arg.ndim else arg for arg in case.args), case.tolerance)
    if case.dynamic:
        check(case.function, program, enlarged(case.args, program), case.tolerance)


def enlarged(args: tuple[torch.Tensor, ...], program: onnxplain.ONNXProgram) -> tuple[torch.Tensor, ...]:
    """The inputs with larger sizes wherever the program has a dynamic dim. Ints and bools repeat, so that positions stay valid."""
    shapes = [list(map(str, value.shape)) for value in program.model.graph.inputs]
    known = {name: size for shape, arg in zip(shapes, args, strict=True) for name, size in zip(shape, arg.shape, strict=True)}
    sizes = {name: size + 2 + position for position, (name, size) in enumerate(known.items()) if not name.isdecimal()}
    assert sizes, "no dim of the case is dynamic"
    larger = []
    for arg, shape in zip(args, shapes, strict=True):
        for dim, name in enumerate(shape):
            arg = arg.index_select(dim, torch.arange(sizes.get(name, known[name])) % known[name])
        larger.append(arg * torch.linspace(1.0, 1.5, arg.numel()).reshape(arg.shape) if arg.is_floating_point() else arg)
    return tuple(larger)


@pytest.mark.parametrize(("name", "is_complex"), TRANSLATIONS)
def test_a_case_uses_the_translation(name: str, is_complex: bool | None) -> None:
    # NOTE: the exported ones come first, so that a run of one case and its translation does not export all others.
    titles = [*EXPORTED, *(title for title in CASES if title not in EXPORTED)]
    known = [title for title in titles if not is_old(CASES[title])]
    if not any((name, is_complex) in exported(title)[1] for title in known):
        assert len(known) < len(titles), f"{name} (is_complex={is_complex}) has no case"
        pytest.skip("the cases that may use it need a newer torch or ONNX Runtime")


def test_a_spectrum_of_a_signal_that_is_not_known_to_be_real() -> None:
    """The caller's translation makes the zeros of its imaginary part while the model runs."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.stft(x, 8, return_complex=True).abs()

    x = torch.randn(32)
    program = onnxplain.export(function, (x,), custom_translation_table={torch.ops.aten.zeros_like.default: lambda x: op.Sub(x, x)})
    assert "STFT" not in [node.op_type for node in program.model.graph]
    check(function, program, (x,))
