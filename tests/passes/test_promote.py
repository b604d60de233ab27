"""Type promotion: the exported model computes in the dtypes in which PyTorch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import onnxplain

I32, I64 = torch.tensor([1, -2, 3], dtype=torch.int32), torch.tensor([4, 5, -6])
F16, F32, F64 = (torch.tensor([0.5, -1.5, 2.5], dtype=dtype) for dtype in (torch.float16, torch.float32, torch.float64))
BOOL = torch.tensor([True, False, True])
C64 = torch.complex(F32, F32 + 1)
LARGE = 2**24 + 1  # No float32 has this value.

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "integer and float": (lambda x, y: x + y, (I32, F32)),
    "float and integer": (lambda x, y: x * y, (F16, I64)),
    "two floats": (lambda x, y: x - y, (F16, F64)),
    "two integers": (lambda x, y: x + y, (I32, I64)),
    "bool and float": (lambda x, y: x * y, (BOOL, F32)),
    "bool and bool": (lambda x, y: x + y, (BOOL, ~BOOL)),
    "a number": (lambda x: x + 1.5, (I32,)),
    "a number that stays": (lambda x: x + 1.5, (F16,)),
    "a scalar tensor": (lambda x, y: x + y, (F16, torch.tensor(1.5))),
    "two indices": (lambda x, y: F32.repeat(9, 1)[x, y % 3], (I32, I64)),
    "indices of several dims": (lambda x, y: F32.repeat(4, 9, 1)[:, x.abs()[:, None], (y % 3)[None]], (I32, I64)),
    "indices to write to": (lambda x, y: torch.zeros(9, 3).index_put((x.abs(), y % 3), F32), (I32, I64)),
    "alpha": (lambda x, y: torch.add(x, y, alpha=2), (I32, F32)),
    "division of integers": (lambda x, y: x / y, (I32, I32)),
    "power": (lambda x: x**0.5, (I64.abs(),)),
    "compared with a float": (lambda x, y: x < y, (I32, F32)),
    "compared with a number": (lambda x: x > 1.5, (I64,)),
    "compared exactly": (lambda x, y: x == y, (torch.tensor([LARGE]), torch.tensor([LARGE - 1], dtype=torch.int32))),
    "compared in float": (lambda x, y: x == y, (torch.tensor([LARGE]), torch.tensor([LARGE], dtype=torch.float32))),
    "bool and integer compared": (lambda x, y: x >= y, (BOOL, I32)),
    "bool and number compared": (lambda x: x == 1, (BOOL,)),
    "logical": (lambda x, y: torch.logical_and(x, y), (I32, F32)),
    "where": (lambda c, x, y: torch.where(c, x, y), (BOOL, I32, F32)),
    "where, numbers": (lambda c, x: torch.where(c, x, 1.5), (BOOL, I32)),
    "where, number first": (lambda c, x: torch.where(c, 1.5, x), (BOOL, I32)),
    "where, complex number": (lambda c, x: torch.where(c, x, x + 1j), (BOOL, F32)),
    "masked_fill": (lambda x, c: x.masked_fill(c, 2), (F16, BOOL)),
    "clamp": (lambda x: x.clamp(max=1.5), (I32,)),
    "clamp by tensors": (lambda x, y: x.clamp(min=y), (I32, F32)),
    "minimum": (lambda x, y: torch.minimum(x, y), (F16, F32)),
    "lerp": (lambda x, y: torch.lerp(x, y, 0.25), (F32, F32 + 1)),
    "addcmul": (lambda x, y: torch.addcmul(x, y, y, value=0.5), (F64, F64)),
    "cat": (lambda x, y: torch.cat([x, y]), (I32, F32)),
    "stack": (lambda x, y: torch.stack([x, y]), (F16, F32)),
    "hstack": (lambda x, y: torch.hstack([x, y]), (BOOL, I64)),
    "sum of bools": (lambda x: x.sum(), (BOOL,)),
    "sum in another dtype": (lambda x: x.sum(dtype=torch.float64), (I32,)),
    "mean in another dtype": (lambda x: x.mean(dtype=torch.float64), (F32,)),
    "cumsum of small integers": (lambda x: x.cumsum(0), (torch.full((3,), 100, dtype=torch.int8),)),
    "prod of small integers": (lambda x: x.prod(), (torch.full((3,), 100, dtype=torch.int8),)),
    "isin": (lambda x, y: torch.isin(x, y), (I32, I64)),
    "isin, floats": (lambda x, y: torch.isin(x, y), (I32, torch.tensor([1.0, 1.5]))),
    "bucketize": (lambda x, y: torch.bucketize(x, y), (I32, torch.tensor([-1.5, 0.5, 2.5]))),
    "bucketize, right": (lambda x, y: torch.bucketize(x, y, right=True, out_int32=True), (F64, torch.tensor([-1.5, 0.5, 2.5]))),
    "real and complex": (lambda x, y: x * y, (F32, C64)),
    "integer and complex": (lambda x, y: x + y, (I32, C64)),
    "double and complex": (lambda x, y: x - y, (F64, C64)),
    "complex and a number": (lambda x: x + 2, (C64,)),
    "complex where": (lambda c, x, y: torch.where(c, x, y), (BOOL, F32, C64)),
    "real and complex in cat": (lambda x, y: torch.cat([x, y]), (F32, C64)),
    "complex and real compared": (lambda x, y: x == y, (C64, F32)),
    "to complex": (lambda x: x.to(torch.complex64), (F32,)),
    "integer to complex": (lambda x: x.to(torch.complex128), (I32,)),
    "like a complex one": (lambda x: torch.ones_like(x, dtype=torch.complex64), (F32,)),
    "full, complex": (lambda x: torch.full_like(x, 2.0, dtype=torch.complex64), (I32,)),
    "type of a complex one": (lambda x, y: x.type_as(y), (F32, C64)),
    "complex of two": (lambda x, y: torch.complex(x, y), (F32, F32 + 1)),
    "polar": (lambda x, y: torch.polar(x, y), (F32.abs(), F32)),
}


def outputs(results: Any) -> list[torch.Tensor]:
    return [torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in torch.utils._pytree.tree_leaves(results)]


@pytest.mark.parametrize(("function", "args"), CASES.values(), ids=CASES)
def test_computes_in_the_dtype_of_pytorch(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    program = onnxplain.export(function, args, verify=True)
    assert {finding.rule.id for finding in program.diagnostics.findings} <= {"OXP1040", "OXP4002", "OXP4004", "OXP4007"}
    for run in (program, program.call_reference):
        for got, want in zip(run(*args), outputs(function(*args)), strict=True):
            torch.testing.assert_close(got, want)


@pytest.mark.parametrize("dtype", [torch.int32, torch.float16, torch.float32, torch.float64])
def test_sizes_are_promoted(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> Any:
        size = x.shape[0]
        return x + size, x * (size / 4), x > size, torch.where(x > 1, x, size)

    x = torch.arange(4).to(dtype)
    program = onnxplain.export(function, (x,), dynamic_shapes=({0: "n"},))
    x = torch.arange(6).to(dtype)
    for got, want in zip(program(x), function(x), strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.float32, torch.float64])
def test_real_operands_of_a_dynamic_size_become_complex(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        return [torch.view_as_real(each) for each in (x * y, torch.cat([y, x]), x.to(torch.complex128), y * x.shape[0])]

    def args(size: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.linspace(-2, 3, size)
        return x.to(dtype), torch.complex(x, x + 1)

    program = onnxplain.export(function, args(4), dynamic_shapes=({0: "n"}, {0: "n"}))
    for got, want in zip(program(*args(6)), function(*args(6)), strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("onesided", [None, True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("window", [None, torch.ones(8), torch.ones(8) * 1j], ids=["none", "real", "complex"])
@pytest.mark.parametrize("pairs", [False, True], ids=["", "pairs"])
def test_spectra_of_real_and_complex_signals(onesided: bool | None, dtype: torch.dtype, window: torch.Tensor | None, pairs: bool) -> None:
    if (dtype.is_complex or (window is not None and window.is_complex())) and onesided:
        pytest.skip("PyTorch refuses it")

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.stft(x, 8, window=window, onesided=onesided, return_complex=not pairs)

    x, other = torch.randn(2, 32, dtype=dtype), torch.randn(2, 48, dtype=dtype)
    program = onnxplain.export(function, (x,), dynamic_shapes=({1: "time"},))
    for each in (x, other):
        expected = function(each) if pairs else torch.view_as_real(function(each))
        torch.testing.assert_close(program(each)[0], expected, rtol=1e-4, atol=1e-4)


def test_casts_stand_at_the_line_of_their_operator(load: Callable[..., Any], marked: Callable[..., list[int]]) -> None:
    module = load("import torch\n\ndef model(x, y):\n    x = x.abs()\n    return x + y  # added\n")
    program = onnxplain.export(module.model, (I32, F32))
    (cast,) = [node for node in program.model.graph if node.op_type == "Cast"]
    assert cast.metadata_props["onnxplain.source"].endswith(f":{marked('added')[0]}")


def test_operands_that_have_the_dtype_are_not_cast() -> None:
    program = onnxplain.export(lambda x, y: torch.where(x > y, x + y, x * 2.0), (F32, F32 + 1))
    assert "Cast" not in [node.op_type for node in program.model.graph]
