"""Operators without a translation: those that torch decomposes, and those that are written in Python."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import onnxplain
from onnxplain.rules import CustomOperatorInlined


@pytest.fixture
def library() -> Iterator[torch.library.Library]:
    """A namespace for the operators of a test."""
    with torch.library._scoped_library("passes_tests", "FRAGMENT") as made:
        yield made


def test_an_operator_in_python_is_inlined_and_reported(library: torch.library.Library) -> None:
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
    torch.library.register_fake("passes_tests::twice", torch.empty_like, lib=library)
    x = torch.ones(3)
    program = onnxplain.export(Uses(), (x,))
    torch.testing.assert_close(program(x)[0], x * 2)
    (finding,) = [each for each in program.diagnostics.findings if isinstance(each.rule, CustomOperatorInlined)]
    assert finding.rule.operator == "passes_tests::twice"
    assert finding.location is not None
    assert finding.location.line == Uses.forward.__code__.co_firstlineno + 1
    assert finding.fixes


class Uses(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.passes_tests.twice(x)  # type: ignore[no-any-return]


def test_an_operator_of_torch_is_decomposed_without_a_finding() -> None:
    program = onnxplain.export(Difference(), (torch.rand(4),))
    torch.testing.assert_close(program(torch.arange(4.0))[0], torch.ones(3))
    assert program.diagnostics.findings == ()


class Difference(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.diff(x)
