"""Answers about sizes that torch keeps after a capture, and with them the model's tensors and the data of the example."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .put_back import put_back
from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, fx/experimental/symbolic_shapes.py: the caches of methods belong to the class, and have up to 256
# entries. Each holds the environment of its capture, which holds the fake inputs. If a capture had the example's data, these hold them.
_ENVIRONMENT = Symbol(
    "torch.fx.experimental.symbolic_shapes:ShapeEnv", without="tensors of failed exports may stay in memory until torch forgets them"
)


@contextlib.contextmanager
def answers_forgotten() -> Iterator[None]:
    """At the end, torch forgets its answers about sizes. It finds those that others still need anew."""

    def forget() -> None:
        for method in list(vars(_ENVIRONMENT.value).values()) if _ENVIRONMENT.is_present else ():
            clear = getattr(method, "cache_clear", None)
            if callable(clear):
                clear()

    with put_back(forget):
        yield
