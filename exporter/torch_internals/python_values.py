"""Looks at values without running code of theirs."""

from __future__ import annotations

from typing import Any, TypeGuard, TypeVar

T = TypeVar("T")


def is_a(value: Any, *kinds: type[T]) -> TypeGuard[T]:
    """As `isinstance`, which also reads `__class__`: a property in proxies, and one that may raise an exception.

    Use it for values that may be of any class, such as attributes of a model, local variables and inputs.
    """
    return issubclass(type(value), kinds)
