"""Functions of torch, onnxscript and Python that temporarily call ours, without an effect on other threads.

A patched function dispatches on a context variable: a caller without a wrapper, in another thread or after the end of `wrapped`, gets the
original function. The first `wrapped` installs the patch, and the last one to end restores the original, in any order.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from . import module_names
from .put_back import put_back

Wrapper = Callable[..., Any]
"""Called with the original function and its arguments."""

_LOCK = threading.RLock()


class Slot:
    """The place of a function that can be replaced: an attribute of a class or a module.

    Args:
        owner: The class or module.
        name: The attribute.
    """

    def __init__(self, owner: Any, name: str) -> None:
        self.owner = owner
        self.name = name

    @property
    def key(self) -> tuple[object, ...]:
        """A key that equal slots share."""
        return id(self.owner), self.name

    def get(self) -> Any:
        """The function at that place."""
        return getattr(self.owner, self.name)

    def put(self, function: Any) -> None:
        """Puts another function there."""
        setattr(self.owner, self.name, function)


class _Patch:
    """The state of one slot while it is patched."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.original = _unpatched(slot.get())
        self.users: set[Wrapper] = set()
        self.wrappers: contextvars.ContextVar[tuple[Wrapper, ...]] = contextvars.ContextVar("wrappers", default=())
        self.is_called: contextvars.ContextVar[bool] = contextvars.ContextVar("is_called", default=False)

        @functools.wraps(self.original)
        def dispatch(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_dynamo_compiling():
                # NOTE: TorchDynamo traces the bodies of loops and branches, and cannot read the context of a thread.
                return self.original(*args, **kwargs)
            for wrapper in reversed(self.wrappers.get()):
                if wrapper in self.users:
                    token = self.is_called.set(True)
                    try:
                        return wrapper(self.original, *args, **kwargs)
                    finally:
                        self.is_called.reset(token)
            return self.original(*args, **kwargs)

        self.dispatch = dispatch
        _ORIGINALS[dispatch] = self.original


_PATCHES: dict[tuple[object, ...], _Patch] = {}
_BY_ORIGINAL: dict[int, _Patch] = {}
"""By identity of the original: what is looked up may have no hash."""
_IDLE: dict[tuple[object, ...], _Patch] = {}
"""Patches of earlier exports: to make two hundred takes a millisecond."""
_ORIGINALS: weakref.WeakKeyDictionary[Callable[..., Any], Any] = weakref.WeakKeyDictionary()


def _unpatched(function: Any) -> Any:
    """`function` without a dispatcher of ours that other code kept and restored."""
    while callable(function) and function in _ORIGINALS:
        function = _ORIGINALS[function]
    return function


def wrapped(slot: Slot, wrapper: Wrapper) -> contextlib.AbstractContextManager[None]:
    """While it is open, calls of the function in `slot` from this context go to `wrapper`, which gets the original first.

    If several are open in one context, the last one opened counts.
    """
    return all_wrapped([(slot, wrapper)])


@contextlib.contextmanager
def all_wrapped(wrappers: Iterable[tuple[Slot, Wrapper]]) -> Iterator[None]:
    """`wrapped` for many functions: each export replaces about two hundred."""
    # NOTE: new objects, since one function may be given twice.
    own: list[tuple[Slot, Wrapper]] = [(slot, functools.partial(wrapper)) for slot, wrapper in wrappers]
    with put_back(functools.partial(_leave, own), any_order=True):
        for slot, wrapper in own:
            _enter(slot, wrapper)
        yield


def reached_by_import(functions: Iterable[types.FunctionType]) -> contextlib.AbstractContextManager[None]:
    """While it is open, functions of modules that are replaced now have their replacements also in the modules of `functions`.

    A module that says `from torch import cov` holds the function itself, and would go on calling it.
    """
    with _LOCK:
        patches = [each for each in _PATCHES.values() if type(each.slot) is Slot and isinstance(each.slot.owner, types.ModuleType)]
    # NOTE: by identity: what modules hold may have no hash, and may compare itself in any way.
    known = {id(each.original): each.dispatch for each in patches}
    namespaces = {id(each.__globals__): each.__globals__ for each in functions}.values()
    held = [(names, name, module_names.original(names, name)) for names in namespaces for name in list(names)]
    return module_names.standing_for((names, name, known[id(value)]) for names, name, value in held if id(value) in known)


def replacement(function: object) -> Callable[..., Any] | None:
    """What replaces `function` for this context; None if nothing does, or if the replacement itself calls it."""
    patch = _BY_ORIGINAL.get(id(function))
    if patch is None or patch.original is not function or patch.is_called.get():
        return None
    return patch.dispatch if any(wrapper in patch.users for wrapper in patch.wrappers.get()) else None


def _idle(slot: Slot, key: tuple[object, ...]) -> _Patch | None:
    """The patch of an earlier export, if the slot still holds the same function."""
    patch = _IDLE.get(key)
    return patch if patch is not None and patch.slot.owner is slot.owner and slot.get() is patch.original else None


def _enter(slot: Slot, own: Wrapper) -> None:
    with _LOCK:
        key = slot.key
        patch = _PATCHES.get(key)
        if patch is None:
            patch = _PATCHES[key] = _idle(slot, key) or _Patch(slot)
        patch.users.add(own)
        if len(patch.users) == 1:
            _BY_ORIGINAL[id(patch.original)] = patch
            slot.put(patch.dispatch)
    patch.wrappers.set((*patch.wrappers.get(), own))


def _leave(wrappers: Sequence[tuple[Slot, Wrapper]]) -> None:
    with _LOCK:
        for slot, own in wrappers:
            key = slot.key
            patch = _PATCHES.get(key)
            if patch is None:
                continue
            inner = patch.wrappers.get()
            patch.wrappers.set(inner[:-1] if inner and inner[-1] is own else tuple(each for each in inner if each is not own))
            patch.users.discard(own)
            if not patch.users:
                # NOTE: code that has patched the same function since keeps our dispatcher, which passes all calls on from now.
                if patch.slot.get() is patch.dispatch:
                    patch.slot.put(patch.original)
                del _PATCHES[key]
                if _BY_ORIGINAL.get(id(patch.original)) is patch:
                    del _BY_ORIGINAL[id(patch.original)]
                # NOTE: owners that live as long as the process, so that nothing of a model is kept.
                if type(slot.owner) is types.ModuleType or (type(slot.owner) is type and slot.owner.__module__.startswith("torch.")):
                    _IDLE[key] = patch
