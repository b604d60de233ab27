"""The private names that onnxplain uses. Each is looked up once, and an export goes on without names that the installed torch lacks."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Iterator
from typing import Any

READ_IN = ("2.11", "2.13", "2.15")
"""The versions of torch whose source we have read for these modules."""

_SYMBOLS: dict[str, Symbol] = {}


class Symbol:
    """A name that torch may remove.

    Args:
        path: Where it is, such as `torch.fx.proxy:TracerBase.create_node`: the module, a colon, the attributes.
        without: The loss of an export without it, a clause for the log.
        otherwise: The value that replaces it then.
    """

    def __init__(self, path: str, *, without: str, otherwise: Any = None) -> None:
        self.path = path
        self.without = without
        self.otherwise = otherwise
        _SYMBOLS[path] = self

    @functools.cached_property
    def is_present(self) -> bool:
        """Whether the installed torch has it."""
        try:
            pkgutil.resolve_name(self.path)
        except (ImportError, AttributeError):
            return False
        return True

    @functools.cached_property
    def value(self) -> Any:
        """The object with that name; `otherwise` if the installed torch lacks it."""
        return pkgutil.resolve_name(self.path) if self.is_present else self.otherwise


def known() -> Iterator[Symbol]:
    """Every symbol of the modules that are loaded, by path."""
    return iter(each for _, each in sorted(_SYMBOLS.items()))


def lacking() -> list[Symbol]:
    """The symbols that the installed torch lacks."""
    return [each for each in known() if not each.is_present]


def told() -> Iterator[str]:
    """A sentence for each symbol that the installed torch lacks."""
    for each in lacking():
        yield f"torch has no {each.path.replace(':', '.')} (read in torch {', '.join(READ_IN)}): {each.without}."
