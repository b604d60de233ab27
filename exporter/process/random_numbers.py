"""The random numbers of Python, numpy and torch: an export runs the model, which may draw some, and its caller goes on as before."""

from __future__ import annotations

import contextlib
import dataclasses
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from onnxplain.torch_internals.put_back import put_back


@contextlib.contextmanager
def random_numbers_kept(seed: int | None = None) -> Iterator[None]:
    """Puts back the states of the generators at the end, those of GPUs included.

    Args:
        seed: Where the random numbers begin while it is open; None for where they are.
    """
    pythons, numpys, torchs = random.getstate(), np.random.get_state(legacy=False), torch.get_rng_state()
    accelerators = [(each, each.get()) for each in _accelerators()]

    def undo() -> None:
        random.setstate(pythons)
        np.random.set_state(numpys)
        torch.set_rng_state(torchs)
        for each, state in accelerators:
            # NOTE: after a failed assertion in a kernel, a GPU takes no calls of this process. What the export has found counts more.
            with contextlib.suppress(RuntimeError):
                each.put(state)

    with put_back(undo):
        if seed is not None:
            random.seed(seed)
            np.random.seed(seed)
            torch.default_generator.manual_seed(seed)
            for each, _ in accelerators:
                each.seed(seed)
        yield


@dataclasses.dataclass(frozen=True)
class _Accelerator:
    """How to read, to write and to seed the generators of all devices of a kind."""

    get: Callable[[], Any]
    put: Callable[[Any], object]
    seed: Callable[[int], object]


def _accelerators() -> Iterator[_Accelerator]:
    # NOTE: a device that nobody has used yet is left alone: to ask for its state would start it, and torch.manual_seed would seed it
    # as soon as somebody starts it.
    for module in (torch.cuda, torch.xpu):
        if module.is_initialized():
            yield _Accelerator(module.get_rng_state_all, module.set_rng_state_all, module.manual_seed_all)
    if torch.backends.mps.is_available():
        yield _Accelerator(torch.mps.get_rng_state, torch.mps.set_rng_state, torch.mps.manual_seed)
