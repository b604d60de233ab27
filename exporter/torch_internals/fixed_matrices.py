"""Linear algebra for which an exported model needs matrices of a fixed size: a capture fixes their dims, at the user's line."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable
from typing import Any

import torch

from . import patching, pytree, shape_env
from .fake_kernels import TABLE, KernelSlot
from .operators import OpOverload
from .patching import all_wrapped

for _file in (__file__, patching.__file__):
    shape_env.leave_out(_file)

_NAMES = (
    *("_linalg_slogdet", "_linalg_solve_ex", "_linalg_svd", "cholesky", "cholesky_inverse", "cholesky_solve", "geqrf"),
    *("linalg_cholesky_ex", "linalg_householder_product", "linalg_inv_ex", "linalg_lu", "linalg_lu_factor_ex", "linalg_lu_solve"),
    *("linalg_matrix_exp", "linalg_qr", "linalg_solve_triangular", "lu_unpack", "ormqr", "triangular_solve"),
)


def required() -> contextlib.AbstractContextManager[None]:
    """While it is open, these operators fix the sizes of their matrices, the last two dims."""
    # NOTE: torch 2.15 has no `cholesky`.
    found = [getattr(torch.ops.aten, name, None) for name in _NAMES] if TABLE.is_present else []
    operators: list[OpOverload] = [each.default for each in found if each is not None]
    if TABLE.is_present:
        operators.append(torch.ops.aten.linalg_pinv.atol_rtol_tensor)
    return all_wrapped((KernelSlot(TABLE.value, each), _fixing) for each in operators)


def _fixing(original: Callable[..., Any], mode: Any, target: OpOverload, *args: Any, **kwargs: Any) -> Any:
    tensors = [each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
    rank = max((each.ndim for each in tensors), default=0)
    # NOTE: batches of pivots and of vectors have fewer dims than those of matrices.
    for size in (size for each in tensors if each.ndim == rank for size in each.shape[-2:]):
        operator.index(size)
    return original(mode, target, *args, **kwargs)
