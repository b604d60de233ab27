"""The names of the models of a triage: short, printable, each once."""

from __future__ import annotations

import hashlib
import os
import pathlib
from collections.abc import Callable, Sequence

from .folder import file_name
from .jobs import Model, Options
from .targets import Target

_DYNAMIC = " dynamic"
_LENGTH = 80
"""Characters of a name with arguments."""


def models(targets: Sequence[Target], options: Callable[[Target], Options], *, dynamic: bool) -> list[Model]:
    """The models of targets: each as its target says, and with `dynamic` also with dynamic dims, unless a list says otherwise."""
    made: list[Model] = []
    taken: set[str] = set()
    for target in targets:
        chosen = options(target)
        variants = (False, True) if dynamic and target.dynamic is None else (bool(target.dynamic),)
        for variant in variants:
            name = _name(target) + (_DYNAMIC if variant and not (target.name and len(variants) == 1) else "")
            file = file_name(name)
            if name in taken or file.casefold() in taken:
                # NOTE: the same in each triage, whatever the other targets are.
                number = hashlib.sha256(repr((target, variant)).encode(errors="backslashreplace")).hexdigest()[:8]
                name, file = f"{name} {number}", f"{file}-{number}"
            taken |= {name, file.casefold()}
            family = _printable(target.family or _home(target))
            made.append(Model(name, file, family, target.source, target.attribute, target.arguments, variant, chosen))
    return made


def _name(target: Target) -> str:
    """A name that logs accept: printable, without slashes. It tells short arguments."""
    if target.name:
        return _printable(target.name)
    text = f"{_home(target)}:{target.attribute}"
    if target.arguments:
        text = f"{text} {', '.join(f'{key}={value}' for key, value in target.arguments.items())}"[:_LENGTH]
    return _printable(text)


def _home(target: Target) -> str:
    """The file of a target, as a module has its name, or its module or library."""
    if not target.source.endswith(".py"):
        return target.source
    path = pathlib.PurePath(os.path.normpath(target.source)).with_suffix("")
    # NOTE: of folders above the current one, a name tells only the last.
    parts = path.parts[-2:] if path.is_absolute() or ".." in path.parts else path.parts
    return ".".join(part for part in parts if part != "..")


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() and char not in "/\\" else "_" for char in text).strip() or "model"
