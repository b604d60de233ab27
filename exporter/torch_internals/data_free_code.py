"""Python code of torch that needs data or storage during a capture, although the exported model does not need its result."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from .patching import Slot, wrapped


@contextlib.contextmanager
def left_out() -> Iterator[None]:
    """While it is open, distributions do not validate their arguments, and `copy.deepcopy` of a tensor without data is a `clone`."""
    with (
        wrapped(Slot(torch.distributions.Distribution, "__init__"), _without_validation),
        wrapped(Slot(torch.Tensor, "__deepcopy__"), _cloned),
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


def _cloned(original: Any, self: torch.Tensor, memo: dict[int, Any]) -> Any:
    try:
        return original(self, memo)
    except (NotImplementedError, RuntimeError):
        # NOTE: a tensor without data has no storage to copy; one with data fails alike while operators are recorded.
        if not self.is_leaf:
            raise
        memo[id(self)] = copied = self.detach().clone()
        return copied
