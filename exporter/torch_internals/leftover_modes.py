"""Modes of torch that an interrupt leaves on: what the thread computes next would still be traced, or have no gradients."""

from __future__ import annotations

import contextlib
import functools
import gc
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from onnxplain.diagnostics import chain, interruption

from .operator_kernels import DISPATCH_KEYS
from .put_back import PutBack, put_back
from .python_frames import variables
from .symbols import Symbol

_WITHOUT = "after an interrupted export, the next one may fail"

# NOTE: read in torch 2.11, 2.13 and 2.15, overrides.py, utils/_python_dispatch.py and _ops.py: torch puts a mode on before the `try` that
# takes it off, and takes modes off for a while likewise.
_STACKS = [
    [Symbol(f"{module}:{name}", without=_WITHOUT) for name in (stack, "_pop_mode", "_push_mode")]
    for module, stack in (
        ("torch.overrides", "_get_current_function_mode_stack"),
        ("torch.utils._python_dispatch", "_get_current_dispatch_mode_stack"),
    )
]
"""For each kind of modes: what lists the modes that are on, what takes the last one off, and what puts one on."""

_EARLY_ONES = [
    Symbol(f"torch._ops:{name}", without=_WITHOUT) for name in ("_len_torch_dispatch_stack_pre_dispatch", "_pop_mode_from_pre_dispatch")
]
"""The same of the modes before autograd: their number, and what takes the last one off."""

_KEYS = [
    [Symbol(f"torch._C:_dispatch_tls_{name}", without=_WITHOUT) for name in (f"local_{kind}_set", f"set_dispatch_key_{kind}d")]
    for kind in ("include", "exclude")
]
"""What reads the dispatch keys that are always asked, or never, and what sets one of them."""
_DISPATCHER_OFF = Symbol("torch._C:_DisablePythonDispatcher", without=_WITHOUT)
_held = contextlib.ExitStack()
"""What keeps torch's dispatcher in Python off. It has a state besides its key, which only such an object changes, while it is entered."""


@contextlib.contextmanager
def thread_as_before() -> Iterator[None]:
    """Leaves this thread with the modes, the gradient mode and the dispatch keys that it had, if the block is interrupted."""
    interrupted = True
    gradients = functools.partial(torch.set_grad_enabled, torch.is_grad_enabled())
    undoings: list[Callable[[], object]] = [*_stacks(), *_early_ones(), gradients, *_dispatcher(), *_keys()]

    def undo() -> None:
        # NOTE: a model that sets a default device puts a mode on for good.
        if interrupted:
            for each in undoings:
                each()

    with put_back(undo):
        try:
            yield
        except BaseException as error:
            # NOTE: what interrupts is no `Exception`.
            interrupted = interruption(error) is not None
            if interrupted:
                # NOTE: what is still entered, such as a `with torch.inference_mode()`, would undo its change whenever Python deletes it.
                for each in chain(error):
                    traceback.clear_frames(each.__traceback__)
                    for frame, _ in traceback.walk_tb(each.__traceback__):
                        # NOTE: up to Python 3.12, a frame that was asked for its variables keeps them until it is asked again.
                        variables(frame)
                gc.collect()
            raise
        interrupted = False


def _stacks() -> Iterator[PutBack]:
    for symbols in _STACKS:
        if _all_present(symbols):
            modes, take_off, put_on = (symbol.value for symbol in symbols)
            yield functools.partial(_put_back_stack, modes, take_off, put_on, modes())


def _put_back_stack(modes: Callable[[], list[Any]], take_off: Callable[[], Any], put_on: Callable[[Any], None], before: list[Any]) -> None:
    while [*map(id, modes())] != [*map(id, before[: len(modes())])]:
        take_off()
    for mode in before[len(modes()) :]:
        put_on(mode)


def _early_ones() -> Iterator[PutBack]:
    if _all_present(_EARLY_ONES):
        count, take_off = (symbol.value for symbol in _EARLY_ONES)
        before = count()

        def back() -> None:
            while count() > before:
                take_off()

        yield back


def _dispatcher() -> Iterator[PutBack]:
    includes, _ = _KEYS[0]
    if _all_present([_DISPATCHER_OFF, includes, DISPATCH_KEYS]) and not includes.value().has(DISPATCH_KEYS.value.PythonDispatcher):
        yield lambda: _held.enter_context(_DISPATCHER_OFF.value())


def _keys() -> Iterator[PutBack]:
    for symbols in _KEYS:
        if _all_present([*symbols, DISPATCH_KEYS]):
            read, write = (symbol.value for symbol in symbols)
            yield functools.partial(_put_back_keys, read, write, read())


def _put_back_keys(read: Callable[[], Any], write: Callable[[Any, bool], None], before: Any) -> None:
    now = read()
    for key in DISPATCH_KEYS.value.__members__.values():
        if now.has(key) != before.has(key):
            write(key, before.has(key))


def _all_present(symbols: Iterable[Symbol]) -> bool:
    return all(symbol.is_present for symbol in symbols)
