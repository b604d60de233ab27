"""The translations of onnxscript's torchlib as plain Python functions, which load in a tenth of the time of compiled ones."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnxplain.torch_internals.onnxscript_calls import import_torchlib

Function = tuple[Callable[..., Any], bool]
"""A translation, and whether it takes complex tensors."""

_OPS = "onnxscript.function_libs.torch_lib.ops"

_LOADING = threading.Lock()
"""Held while the plain functions are in the modules, where another thread would take them for compiled ones."""


@functools.cache
def functions() -> Mapping[str, Sequence[Function]]:
    """The translations by qualified name: at most one for real tensors and one for complex ones. They are loaded once per process."""
    with _LOADING:
        return _loaded()


def _loaded() -> Mapping[str, Sequence[Function]]:
    if _OPS in sys.modules:
        from onnxscript.function_libs.torch_lib import registration

        # NOTE: someone else has compiled them already, or does it in another thread now, for which this waits.
        importlib.import_module(_OPS)
        return {
            name: [*((each, False) for each in entry.overloads), *((each, True) for each in entry.complex)]
            for name, entry in registration.default_registry.items()
        }
    found: dict[tuple[str, bool], Function] = {}

    # NOTE: read in onnxscript 0.7.2: torchlib's decorator parses the source of 53 functions and derives a signature for each of 506, 0.2 s
    # of CPU time. A recorder runs the plain functions, so the decorator only has to collect them.
    def collected(name: str | tuple[str, ...], *, complex: bool = False, private: bool = False, **_: object) -> Callable[[Any], Any]:
        def decorator(function: Any) -> Any:
            for each in () if private else (name,) if isinstance(name, str) else name:
                found.setdefault((each, complex), (function, complex))
            return function

        return decorator

    import_torchlib(_OPS, collected)
    by_name: dict[str, list[Function]] = {}
    for (name, _), function in found.items():
        by_name.setdefault(name, []).append(function)
    return by_name
