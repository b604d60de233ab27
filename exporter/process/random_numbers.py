"""The random numbers of Python, numpy and torch: an export runs the model, which may draw some, and its caller goes on as before."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import numpy as np
import torch

from onnxplain.torch_internals.put_back import put_back


@contextlib.contextmanager
def random_numbers_kept(seed: int | None = None) -> Iterator[None]:
    """Puts back the states of the generators on the CPU at the end.

    Args:
        seed: Where the random numbers begin while it is open; None for where they are.
    """
    pythons, numpys, torchs = random.getstate(), np.random.get_state(legacy=False), torch.get_rng_state()

    def undo() -> None:
        random.setstate(pythons)
        np.random.set_state(numpys)
        torch.set_rng_state(torchs)

    with put_back(undo):
        if seed is not None:
            random.seed(seed)
            np.random.seed(seed)
            torch.manual_seed(seed)
        yield
