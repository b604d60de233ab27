"""The shapes of inverse Fourier transforms to real numbers, where torch has not computed them yet.

torch's shape function resizes a tensor, which works with symbolic sizes only while operators are dispatched in Python, as during a capture.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from .patching import Slot, all_wrapped
from .symbols import Symbol

_WITHOUT = "inverse Fourier transforms of dynamic sizes behind trained weights may have no decomposition"
# NOTE: read in torch 2.11, 2.13 and 2.15, _meta_registrations.py and _dispatch/python.py.
_RESIZED = Symbol("torch._meta_registrations:_exec_fft", without=_WITHOUT)
_IN_PYTHON = Symbol("torch._dispatch.python:enable_python_dispatcher", without=_WITHOUT)


def of_any_size() -> contextlib.AbstractContextManager[None]:
    """While it is open, torch computes these shapes from symbolic sizes."""
    if not (_RESIZED.is_present and _IN_PYTHON.is_present):
        return contextlib.nullcontext()

    from torch import _meta_registrations

    return all_wrapped([(Slot(_meta_registrations, _RESIZED.name), _in_python)])


def _in_python(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with _IN_PYTHON.value():
        return original(*args, **kwargs)
