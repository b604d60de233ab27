"""Verification compares with float32, whatever the caller has PyTorch use in its place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import onnxplain
from onnxplain.process import exact_float32

BACKENDS = torch.backends
LEAVES = (
    BACKENDS.cuda.matmul,
    BACKENDS.cudnn.conv,
    BACKENDS.cudnn.rnn,
    BACKENDS.mkldnn.matmul,
    BACKENDS.mkldnn.conv,
    BACKENDS.mkldnn.rnn,
)


def precisions() -> list[str]:
    return [each.fp32_precision for each in LEAVES]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Puts back what a test sets."""
    found = [BACKENDS.fp32_precision, *precisions()]
    yield
    torch.set_float32_matmul_precision("highest")
    BACKENDS.cudnn.allow_tf32 = True
    for each, precision in zip((BACKENDS, *LEAVES), found, strict=True):
        each.fp32_precision = precision


def is_exact() -> bool:
    return not {"tf32", "bf16"} & set(precisions())


def test_convolutions_on_gpus_are_exact() -> None:
    assert not is_exact()
    found = precisions()
    with exact_float32():
        assert is_exact()
        # NOTE: PyTorch refuses to read a setting of its older interface that does not fit that of the newer one.
        assert not BACKENDS.cudnn.allow_tf32
    assert BACKENDS.cudnn.allow_tf32
    assert precisions() == found


@pytest.mark.parametrize("precision", ["medium", "high"])
def test_products_are_exact(precision: str) -> None:
    torch.set_float32_matmul_precision(precision)
    found = precisions()
    with exact_float32():
        assert is_exact()
        assert torch.get_float32_matmul_precision() == "highest"
    assert torch.get_float32_matmul_precision() == precision
    assert precisions() == found


NEWER = [{"cuda.matmul": "tf32"}, {"mkldnn.conv": "bf16", "cudnn.rnn": "ieee"}, {"": "tf32"}, {"": "tf32", "cuda.matmul": "ieee"}]


@pytest.mark.parametrize("given", NEWER)
def test_settings_by_the_newer_interface_are_put_back(given: dict[str, str]) -> None:
    for name, precision in given.items():
        owner = BACKENDS
        for part in filter(None, name.split(".")):
            owner = getattr(owner, part)
        owner.fp32_precision = precision
    found = precisions()
    with exact_float32():
        assert is_exact()
    assert precisions() == found


def test_a_verified_model_runs_exactly() -> None:
    seen: list[bool] = []

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(is_exact())
            return x * 2

    onnxplain.export(Model(), (torch.ones(3),), verify=True)
    assert True in seen
    assert not is_exact()
