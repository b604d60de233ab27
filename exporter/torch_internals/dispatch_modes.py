"""A mode that sees every operator that runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

# NOTE: read in torch 2.11, 2.13 and 2.15, utils/_python_dispatch.py: private by name only, since torch's documentation derives from it, as
# FakeTensorMode does, on which torch.export is built.
from torch.utils._python_dispatch import TorchDispatchMode

from . import pytree
from .operators import HigherOrderOperator
from .symbols import Symbol

OnCall = Callable[[Any, tuple[Any, ...], Any], None]
"""Called with the operator, its positional arguments and its result."""
BeforeCall = Callable[[Any, tuple[Any, ...], dict[str, Any]], None]
"""Called with the operator and its arguments."""


_MODE = "torch.utils._python_dispatch:TorchDispatchMode"
Symbol(f"{_MODE}.supports_higher_order_operators", without="a model with torch.cond or a loop cannot be watched while it runs")
Symbol(f"{_MODE}.ignore_compile_internals", without="after a model with torch.cond was watched, later exports may fail")


class _Seeing(TorchDispatchMode):
    # NOTE: read in torch 2.11, 2.13 and 2.15, _ops.py. Without it, torch refuses operators that take functions, such as `cond`.
    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Lets torch compile, as `cond` does: otherwise TorchDynamo gives the code up, and later exports fail (seen in torch 2.13)."""
        return True

    def __init__(self, before: BeforeCall, after: OnCall) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's __init__ is untyped
        self._before, self._after = before, after

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        if isinstance(func, HigherOrderOperator):
            # NOTE: the mode is off here, and so it would be in the functions that the operator calls.
            args, kwargs = pytree.tree_map(self._watched, (args, kwargs))
            return func(*args, **kwargs)
        self._before(func, args, kwargs or {})
        result = func(*args, **(kwargs or {}))
        self._after(func, args, result)
        return result

    def _watched(self, value: Any) -> Any:
        """`value`, with this mode on if it is a function that is called."""
        if not callable(value):
            return value

        def call(*args: Any) -> Any:
            with self:
                return value(*args)

        return call


@contextlib.contextmanager
def each_call(on_call: OnCall) -> Iterator[None]:
    """Calls `on_call` after every operator that runs in this thread, in the functions of higher-order operators as well."""
    with _Seeing(_nothing, on_call):
        yield


@contextlib.contextmanager
def before_each_call(on_call: BeforeCall) -> Iterator[None]:
    """Calls `on_call` before every operator that runs in this thread, as `each_call` does after it. What it raises, the operator raises."""
    with _Seeing(on_call, _nothing):
        yield


def _nothing(*_: Any) -> None:
    """Does nothing."""
