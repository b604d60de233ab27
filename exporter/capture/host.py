"""Python's and numpy's random numbers and clocks, watched while the model runs: what they return is a constant of the graph."""

from __future__ import annotations

import contextlib
import functools
import random
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onnxplain import where
from onnxplain.diagnostics import DiagnosticContext, Evidence, Location
from onnxplain.rules import HostValueBaked

_WATCHED: tuple[tuple[types.ModuleType, str, tuple[str, ...]], ...] = (
    (
        random,
        "random",
        (
            *("random", "uniform", "triangular", "randint", "randrange", "choice", "choices", "sample", "shuffle", "getrandbits"),
            *("gauss", "normalvariate", "lognormvariate", "expovariate", "betavariate", "gammavariate"),
        ),
    ),
    (
        np.random,
        "numpy.random",
        (
            *("rand", "randn", "random", "random_sample", "randint", "choice", "permutation", "shuffle", "uniform", "normal"),
            *("standard_normal", "binomial", "poisson", "exponential", "beta", "gamma"),
        ),
    ),
    (time, "time", ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns")),
)
"""Module, its name, and its functions that return another value each time."""


class Draws:
    """The calls of such functions by the user's own code.

    Attributes:
        calls: Function and line of each, in order.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, Location]] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Puts watchers in the place of the functions for a while. Code that has imported a function by its name goes unseen."""
        with contextlib.ExitStack() as stack:
            for module, title, names in _WATCHED:
                for name in names:
                    original = getattr(module, name)
                    setattr(module, name, self._watching(original, f"{title}.{name}"))
                    stack.callback(setattr, module, name, original)
            yield

    def report(self, context: DiagnosticContext) -> None:
        """Reports each line that called one."""
        for function, place in dict.fromkeys(self.calls):
            context.report(HostValueBaked(function=function), at=Evidence(place))

    def _watching(self, original: Callable[..., Any], title: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def function(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            if where.origin(frame.f_code.co_filename) is where.Origin.USER:
                self.calls.append((title, where.location(frame.f_code, frame.f_lasti, frame.f_lineno)))
            return original(*args, **kwargs)

        return function
