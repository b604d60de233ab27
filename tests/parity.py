"""Compares the outputs of an exported model with those of eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import onnxplain


def check(function: Callable[..., Any], program: onnxplain.ONNXProgram, args: tuple[torch.Tensor, ...], tolerance: float = 1e-4) -> None:
    """Compares the outputs for `args`, one by one."""
    expected = [leaf for leaf in torch.utils._pytree.tree_leaves(function(*args)) if leaf is not None]
    results = program(*args)
    assert len(results) == len(expected)
    for got, want in zip(results, expected, strict=True):
        want = want if isinstance(want, torch.Tensor) else torch.tensor(want)
        torch.testing.assert_close(got, want.detach(), rtol=tolerance, atol=tolerance, equal_nan=True)
