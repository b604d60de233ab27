"""The private names that onnxplain uses. Each is looked up once, and an export goes on without names that the installed torch lacks."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Iterator
from typing import Any

from .code_objects import code_inside, code_of, names_in

READ_IN = ("2.11", "2.13", "2.15")
"""The versions of torch whose source we have read for these modules."""

_SYMBOLS: list[Symbol] = []


class Symbol:
    """A name that torch may remove. Each is checked and told, also one that no code uses by this object.

    Args:
        path: Where it is, such as `torch.fx.proxy:TracerBase.create_node`: the module, a colon, the attributes. A function that is defined
            within a function follows `.<locals>.`.
        without: The loss of an export without it, a clause for the log.
        otherwise: The value that replaces it then.
        names: The parameters, variables, attributes and texts in the code of the function that onnxplain relies on. A function that lacks
            one counts as missing.
    """

    def __init__(self, path: str, *, without: str, otherwise: Any = None, names: tuple[str, ...] = ()) -> None:
        self.path = path
        self.without = without
        self.otherwise = otherwise
        self.names = names
        _SYMBOLS.append(self)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(":")[2].rpartition(".")[2]

    @functools.cached_property
    def is_present(self) -> bool:
        """Whether the installed torch has it."""
        try:
            self._found()
        except (ImportError, AttributeError):
            return False
        return True

    @functools.cached_property
    def value(self) -> Any:
        """The object with that name; `otherwise` if the installed torch lacks it."""
        return self._found() if self.is_present else self.otherwise

    def _found(self) -> Any:
        """The object with that name, or the code of a function inside another. Raises ImportError or AttributeError."""
        outer, _, inner = self.path.partition(".<locals>.")
        found = pkgutil.resolve_name(outer)
        code = code_of(found)
        if code is not None and inner:
            found = code = code_inside(code, inner)
        if (self.names or inner) and (code is None or not names_in(code).issuperset(self.names)):
            raise AttributeError(self.path)
        return found


class Attribute(Symbol):
    """An attribute of the objects of a class, which the class itself may lack: torch's methods set it. `value` is the class."""

    def of(self, owner: Any) -> Any:
        """Its value in `owner`; `otherwise` if `owner` or the installed torch lacks it."""
        return getattr(owner, self.name, self.otherwise) if self.is_present else self.otherwise

    def _found(self) -> Any:
        # NOTE: an object of the class would show it as well, but some classes count their objects, and others take long to make one.
        cls = pkgutil.resolve_name(self.path.rpartition(".")[0])
        members = (member for base in cls.__mro__ for member in vars(base).values())
        methods = (code_of(each.fget if isinstance(each, property) else each) for each in members)
        if not any(method is not None and self.name in method.co_names for method in methods):
            raise AttributeError(self.path)
        return cls


def known() -> Iterator[Symbol]:
    """Every symbol of the modules that are loaded, by path."""
    return iter(sorted(_SYMBOLS, key=lambda each: each.path))


def lacking() -> list[Symbol]:
    """The symbols that the installed torch lacks."""
    return [each for each in known() if not each.is_present]


def told() -> Iterator[str]:
    """A sentence for each symbol that the installed torch lacks."""
    for each in lacking():
        path = each.path.replace(":", ".")
        named = f"{path} with {', '.join(each.names)}" if each.names else path
        yield f"torch has no {named} (read in torch {', '.join(READ_IN)}): {each.without}."
