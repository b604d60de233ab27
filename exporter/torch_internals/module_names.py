"""Global variables of modules that temporarily have other values, whatever the order in which several users begin and end."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from .put_back import put_back

_LOCK = threading.RLock()
_ABSENT = object()


@dataclasses.dataclass
class _Name:
    """A name that has another value for some users."""

    namespace: dict[str, Any]
    name: str
    value: Any
    original: Any
    users: set[object]


_NAMES: dict[tuple[int, str], _Name] = {}


@contextlib.contextmanager
def standing_for(names: Iterable[tuple[dict[str, Any], str, Any]]) -> Iterator[None]:
    """While it is open, names have other values for all code with these global variables.

    If a name has another value already, it keeps that one until the last user of the name ends.

    Args:
        names: The global variables of a module, a name among them or among the builtins, and its value.
    """
    user, own = object(), list(names)

    def undo() -> None:
        with _LOCK:
            for key, each in list(_NAMES.items()):
                if each.users == {user}:
                    _restore(each)
                    del _NAMES[key]
                each.users.discard(user)

    with put_back(undo, any_order=True):
        with _LOCK:
            for namespace, name, value in own:
                key = id(namespace), name
                if key not in _NAMES:
                    _NAMES[key] = _Name(namespace, name, value, namespace.get(name, _ABSENT), {user})
                    namespace[name] = value
                _NAMES[key].users.add(user)
        yield


def original(namespace: dict[str, Any], name: str) -> Any:
    """What `name` stands for where nobody uses another value."""
    with _LOCK:
        held = _NAMES.get((id(namespace), name))
    if held is None or namespace.get(name) is not held.value:
        return namespace.get(name)
    return None if held.original is _ABSENT else held.original


def _restore(held: _Name) -> None:
    # NOTE: the model may have set the name itself since.
    if held.namespace.get(held.name) is not held.value:
        return
    if held.original is _ABSENT:
        del held.namespace[held.name]
    else:
        held.namespace[held.name] = held.original
