"""Functions of torch that look at data only to check it, or to find a size that the arguments have: captured without the look."""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import shape_env
from .patching import Slot, all_wrapped, wrapped
from .resizing import CHECK
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, native_functions.yaml.
_ASSERT = Symbol(
    "torch:_assert_async",
    without="an exported model does not check the weights of torch.cov and the variances of gaussian_nll_loss",
    otherwise=lambda *_: None,
)

# NOTE: seen in torch 2.13, nn/modules/transformer.py.
_IS_CAUSAL = Symbol(
    "torch.nn.modules.transformer:_detect_is_causal_mask",
    without="torch.nn.TransformerEncoder and TransformerDecoder cannot be captured with a mask, unless the call says whether it is causal",
    names=("mask", "is_causal", "size"),
)
_ASSERT_OF = Symbol("torch:_assert", without="a model that calls torch._assert on a tensor cannot be captured")

shape_env.leave_out(__file__)
_in_loss = ContextVar("_in_loss", default=False)


def left_out() -> contextlib.AbstractContextManager[None]:
    """While it is open, these functions do not look at data. A check whose failure would be an error becomes an operator."""
    checks: list[tuple[Slot, Callable[..., Any]]] = [(Slot(torch, _ASSERT_OF.name), _assert)] if _ASSERT_OF.is_present else []
    checks += [(Slot(torch.nn.modules.transformer, _IS_CAUSAL.name), _is_said_to_be_causal)] if _IS_CAUSAL.is_present else []
    return all_wrapped(
        (
            *checks,
            (Slot(torch, "cov"), _cov),
            (Slot(Tensor, "cov"), _cov),
            (Slot(torch, "corrcoef"), _corrcoef),
            (Slot(Tensor, "corrcoef"), _corrcoef),
            (Slot(torch, "combinations"), _combinations),
            (Slot(F, "gaussian_nll_loss"), _gaussian_nll_loss),
            (Slot(torch.linalg, "lstsq"), _lstsq),
            (Slot(Tensor, "view"), _reshaped),
            (Slot(Tensor, "reshape"), _reshaped),
            (Slot(torch, "reshape"), _reshaped),
        )
    )


def _assert(original: Callable[..., Any], condition: Any, message: str) -> None:
    """torch._assert: a condition that is a tensor becomes an operator."""
    if isinstance(condition, Tensor):
        _ASSERT.value(condition, message)
    else:
        original(condition, message)


def _is_said_to_be_causal(original: Any, mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Whether attention may be causal instead of adding its mask. To add the mask is right for all masks, and only takes longer."""
    del original, mask, size
    return bool(is_causal)


def _reshaped(original: Callable[..., Any], tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Tensor.view and reshape. For a size of -1, they refuse other sizes whose product is 0, and so ask for sizes that data decide."""
    given = args[0] if len(args) == 1 and isinstance(args[0], list | tuple) else args
    has_rest = any(type(each) is int and each == -1 for each in given)
    if kwargs or not has_rest or not any(isinstance(each, torch.SymInt | Tensor) for each in given):
        return original(tensor, *args, **kwargs)
    sizes = [each.item() if isinstance(each, Tensor) else each for each in given]
    known = functools.reduce(operator.mul, (each for each in sizes if type(each) is not int or each != -1), 1)
    if isinstance(known, torch.SymInt) and not known.node.has_hint():
        # NOTE: seen in torch 2.13, ATen/InferSize.h.
        CHECK.value(known > 0)
    return original(tensor, sizes)


def _cov(original: Callable[..., Any], input: Tensor, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """torch.cov: the covariances of variables (rows) over observations (columns), weighted by counts and by importance."""
    # NOTE: torch compares the divisor with 0 to warn, and the weights to refuse them (torch 2.11 to 2.15, ATen/native/Correlation.cpp).
    if input.ndim > 2 or any(each is not None and each.ndim > 1 for each in (fweights, aweights)):
        return original(input, correction=correction, fweights=fweights, aweights=aweights)  # type: ignore[no-any-return]  # a tensor
    rows = input.reshape(1, -1) if input.ndim < 2 else input
    given = [each for each in (fweights, aweights) if each is not None]
    for each in given:
        _ASSERT.value((each >= 0).all(), "the weights of torch.cov are not negative")
    weights = functools.reduce(operator.mul, given, torch.ones((), device=input.device))
    total = weights.sum() if given else rows.shape[1]
    from_mean = rows - ((rows * weights).sum(1) / total).unsqueeze(1)
    less = correction if aweights is None else correction * (weights * aweights).sum() / total
    divisor: Any = (total - less).clamp(min=0) if isinstance(total, Tensor) else torch.sym_max(total - less, 0)
    # NOTE: sums of counts may have another dtype.
    products = from_mean @ (from_mean * weights).mT.conj().to(from_mean.dtype)
    result: Tensor = (products / divisor).to(from_mean.dtype).squeeze()
    return result


def _corrcoef(original: Callable[..., Any], input: Tensor) -> Tensor:
    """torch.corrcoef: the covariances divided by both standard deviations."""
    if input.ndim > 2:
        return original(input)  # type: ignore[no-any-return]  # a tensor
    covariances = torch.cov(input)
    if covariances.ndim == 0:
        return covariances / covariances
    deviations = covariances.diagonal().real.sqrt() if covariances.is_complex() else covariances.diagonal().sqrt()
    result = covariances / deviations.unsqueeze(1) / deviations
    if not result.is_complex():
        return result.clamp(-1, 1)
    return torch.complex(result.real.clamp(-1, 1), result.imag.clamp(-1, 1))


def _combinations(original: Callable[..., Any], input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """torch.combinations: torch picks them by a mask, so that their number would be one from data."""
    if not isinstance(input.shape[0], int) or r < 1:
        return original(input, r, with_replacement)  # type: ignore[no-any-return]  # a tensor
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = torch.tensor(list(choose(range(input.shape[0]), r)), dtype=torch.int64, device=input.device)
    return input[places.reshape(-1, r)]


def _gaussian_nll_loss(original: Callable[..., Any], input: Tensor, target: Tensor, var: Any, *args: Any, **kwargs: Any) -> Any:
    """F.gaussian_nll_loss, which asks whether any variance is negative by `torch.any` (torch 2.11 to 2.15)."""
    # NOTE: torch.export's mode for functions calls the present one again.
    if not isinstance(var, Tensor) or _in_loss.get():
        return original(input, target, var, *args, **kwargs)
    _ASSERT.value((var >= 0).all(), "no variance of gaussian_nll_loss is negative")
    answers = [False]

    def no_or_any(find: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        # NOTE: the loss asks first; torch's kernels for fake tensors may ask later.
        return answers.pop() if answers else find(*args, **kwargs)

    entered = _in_loss.set(True)
    try:
        with wrapped(Slot(torch, "any"), no_or_any):
            return original(input, target, var, *args, **kwargs)
    finally:
        _in_loss.reset(entered)


def _lstsq(original: Callable[..., Any], matrix: Tensor, right: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """torch.linalg.lstsq. Other drivers than the CPU's default one decide by the data what they return beside the solution."""
    if driver not in (None, "gelsy") or right.ndim != matrix.ndim:
        return original(matrix, right, rcond, driver=driver)
    empty = torch.empty(0, dtype=matrix.dtype.to_real(), device=matrix.device)
    solution = torch.linalg.pinv(matrix, rtol=rcond) @ right
    rank = torch.linalg.matrix_rank(matrix, rtol=rcond)
    results: Any = torch.return_types
    return results.linalg_lstsq((solution, empty, rank, empty))
