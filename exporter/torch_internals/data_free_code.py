"""Python code of torch that needs data or storage during a capture, although the exported model does not need its result."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from . import shape_env
from .patching import Slot, all_wrapped
from .symbols import Symbol

_IS_CAUSAL = Symbol(
    "torch.nn.modules.transformer:_detect_is_causal_mask",
    without="torch.nn.TransformerEncoder and TransformerDecoder cannot be captured with a mask, unless the call says whether it is causal",
    names=("mask", "is_causal", "size"),
)

shape_env.leave_out(__file__)


@contextlib.contextmanager
def left_out() -> Iterator[None]:
    """While it is open, torch does not look at data that the exported model does not depend on.

    Distributions do not validate their arguments, `copy.deepcopy` of a tensor without data is a `clone`, and transformers do not ask
    whether a mask is causal.
    """
    transformers = [(Slot(torch.nn.modules.transformer, _IS_CAUSAL.name), _is_said_to_be_causal)] if _IS_CAUSAL.is_present else []
    with all_wrapped(
        (
            (Slot(torch.distributions.Distribution, "__init__"), _without_validation),
            (Slot(torch.Tensor, "__deepcopy__"), _cloned),
            *transformers,
        )
    ):
        yield


def _without_validation(
    original: Any,
    self: torch.distributions.Distribution,
    batch_shape: torch.Size = torch.Size(),  # noqa: B008  torch's default, which is immutable
    event_shape: torch.Size = torch.Size(),  # noqa: B008  as above
    validate_args: bool | None = None,
) -> None:
    # NOTE: with None, torch validates unless Python runs with -O (torch 2.11 to 2.15, distributions/distribution.py).
    original(self, batch_shape, event_shape, bool(validate_args))


def _is_said_to_be_causal(original: Any, mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Whether attention may be causal instead of adding its mask. To add the mask is right for all masks, and only takes longer."""
    del original, mask, size
    return bool(is_causal)


def _cloned(original: Any, self: torch.Tensor, memo: dict[int, Any]) -> Any:
    try:
        return original(self, memo)
    except (NotImplementedError, RuntimeError):
        # NOTE: a tensor without data has no storage to copy; one with data fails alike while operators are recorded.
        if not self.is_leaf:
            raise
        memo[id(self)] = copied = self.detach().clone()
        return copied
