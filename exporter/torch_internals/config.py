"""Options of torch's config modules, set temporarily."""

from __future__ import annotations

import contextlib
import contextvars
import importlib
from collections.abc import Iterator
from typing import Any

from .put_back import put_back
from .symbols import Symbol

SIZE_ONE = Symbol(
    "torch.fx.experimental._config:backed_size_oblivious",
    without="a dynamic dim of size 1 in the example is taken for a dim that is always 1",
)
REAL_TENSORS = Symbol(
    "torch._functorch.config:fake_tensor_propagate_real_tensors",
    without="a failed export shows the model's first data-dependent decision only",
)
FAKE_RESULTS_KEPT = Symbol(
    "torch._dynamo.config:fake_tensor_cache_enabled",
    without="a failed export shows only the first of several equal calls that fix a dim",
)

COLLECTION = Symbol(
    "torch._dynamo.config:run_gc_after_compile",
    without="Python's garbage collector runs for each loop and branch that is captured, which takes time",
)

_left_alone: contextvars.ContextVar[Symbol | None] = contextvars.ContextVar("the option that is left as it is", default=None)


@contextlib.contextmanager
def left_alone(option: Symbol) -> Iterator[None]:
    """While it is open, nothing below switches an option: it stays as torch or the user has it."""
    before = _left_alone.set(option)
    try:
        yield
    finally:
        _left_alone.reset(before)


def switched_on(option: Symbol) -> contextlib.AbstractContextManager[None]:
    """While it is open, an option is True, if the installed torch has it."""
    return _switched(option, True)


def switched_off(option: Symbol) -> contextlib.AbstractContextManager[None]:
    """While it is open, an option is False, if the installed torch has it."""
    return _switched(option, False)


@contextlib.contextmanager
def _switched(option: Symbol, value: bool) -> Iterator[None]:
    # NOTE: read in torch 2.11, 2.13 and 2.15, utils/_config_module.py: values belong to a context from 2.12 on.
    if not option.is_present or _left_alone.get() is option:
        yield
        return
    module, _, name = option.path.partition(":")
    config: Any = importlib.import_module(module)
    before = getattr(config, name)
    # NOTE: torch's own `config.patch` forgets the former value before it puts it back.
    with put_back(lambda: setattr(config, name, before)):
        setattr(config, name, value)
        yield
