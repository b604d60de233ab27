"""Functions with a cache of `functools`: what they compute during a capture has no data, and must not be what they return later."""

from __future__ import annotations

import contextlib
import functools
import gc
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from . import pytree
from .python_values import is_a

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper
else:
    _lru_cache_wrapper = type(functools.cache(lambda: None))


@contextlib.contextmanager
def left_without_fakes(model: torch.nn.Module) -> Iterator[None]:
    """At its end, caches near the model that hold tensors without data are empty."""
    try:
        yield
    finally:
        for cache in _near(model):
            if any(map(_has_no_data, pytree.tree_leaves(_known(cache)))):
                cache.cache_clear()


def _near(model: torch.nn.Module) -> Iterator[_lru_cache_wrapper[Any]]:
    """The functions with a cache that methods of the modules may call: their own, globals, and those from around them."""
    bases = {base for cls in {type(module) for module in model.modules()} for base in cls.__mro__}
    namespaces: dict[int, dict[str, Any]] = {}
    for base in bases:
        for value in vars(base).values() if base.__module__.partition(".")[0] not in ("builtins", "torch") else ():
            if type(value) is _lru_cache_wrapper:
                yield value
            function = getattr(value, "__wrapped__", value)
            if isinstance(function, types.FunctionType):
                namespaces[id(function.__globals__)] = function.__globals__
                yield from (each for each in map(_content, function.__closure__ or ()) if type(each) is _lru_cache_wrapper)
    for namespace in namespaces.values():
        yield from [each for each in namespace.values() if type(each) is _lru_cache_wrapper]


def _content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return None


def _known(cache: _lru_cache_wrapper[Any]) -> list[Any]:
    """The results in a cache, among other objects that it knows."""
    # NOTE: read in Python 3.10 to 3.13, Modules/_functoolsmodule.c: results are in a dict if the cache has no limit.
    known = [each for each in gc.get_referents(cache) if not isinstance(each, type)]
    return [*known, *(value for each in known if type(each) is dict for value in each.values())]


def _has_no_data(value: object) -> bool:
    symbolic = is_a(value, torch.SymInt, torch.SymFloat, torch.SymBool)
    return symbolic or (is_a(value, torch.Tensor) and type(value) not in (torch.Tensor, torch.nn.Parameter))
