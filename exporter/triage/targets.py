"""The targets of a triage: files, folders, globs, modules, lists and libraries become models. No code of a user runs."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import fnmatch
import glob
import json
import os
import pathlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .jobs import LIBRARIES, TriageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_BUILDERS = "build*"
"""The names of functions that a file without a name stands for."""
_LISTS = (".toml", ".yaml", ".yml")
_KEYS = {"target": str, "name": str, "arguments": dict, "dynamic": bool}


@dataclasses.dataclass(frozen=True)
class Target:
    """A model as a target names it.

    Attributes:
        source: A Python file, a module, or a library.
        attribute: What to load from there.
        family: What it has in common with similar models: that of its library, or its file or module.
        name: A name from a list; empty without one.
        arguments: Arguments from a list.
        dynamic: From a list, whether every dim is dynamic; None leaves that to the command.
    """

    source: str
    attribute: str
    family: str = ""
    name: str = ""
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    dynamic: bool | None = None

    def __str__(self) -> str:
        return f"{self.source}:{self.attribute}"


def targets(texts: Sequence[str], names_in: Callable[[str, str], Mapping[str, str]]) -> list[Target]:
    """The targets that `texts` stand for, each once, in order.

    Args:
        texts: Files, folders, globs, modules, lists, and patterns of libraries.
        names_in: The names in a library that match a pattern, and the family of each.

    Raises:
        TriageError: A text stands for no model.
    """
    found: dict[str, Target] = {}
    for text in texts:
        for each in _expanded(text, names_in):
            found.setdefault(repr(each), each)
    return [*found.values()]


def _expanded(text: str, names_in: Callable[[str, str], Mapping[str, str]]) -> Iterator[Target]:
    library, colon, pattern = text.partition(":")
    if colon and library in LIBRARIES:
        yield from (Target(library, name, f"{library}:{family}") for name, family in names_in(library, pattern).items())
    elif text.endswith(_LISTS):
        yield from _listed(pathlib.Path(text), names_in)
    else:
        source, name = _split(text)
        if not source.endswith(".py") and name and not _is_path(source, pathlib.Path()):
            yield Target(source, name)
        else:
            yield from _in_files(text, source, name)


def _split(text: str) -> tuple[str, str]:
    """The source and the name; the name is empty if there is none."""
    source, colon, name = text.rpartition(":")
    # NOTE: a colon may be part of a path.
    return (source, name) if colon and source and not os.path.lexists(text) and not name.endswith(".py") else (text, "")


def _is_path(source: str, folder: pathlib.Path) -> bool:
    """Whether a source is a path, relative to `folder`, and not a module."""
    return os.path.lexists(folder / source) or glob.has_magic(source) or "/" in source or os.sep in source


def _in_files(text: str, source: str, name: str) -> Iterator[Target]:
    if not os.path.lexists(source) and not glob.has_magic(source):
        expected = "a Python file, a folder, a glob, package.module:NAME, a list (.toml, .yaml) or LIBRARY:PATTERN"
        raise TriageError(f"TARGET: expected {expected}, got {text!r}, which does not exist. The libraries are {', '.join(LIBRARIES)}.")
    paths = [source] if os.path.lexists(source) else sorted(glob.glob(source, recursive=True))  # noqa: PTH207  pathlib takes no absolute pattern
    files = [file for path in paths for file in _python_files(pathlib.Path(path))]
    if not files:
        raise TriageError(f"TARGET: expected Python files, got {text!r}, which has none.")
    several, found = len(files) > 1 or glob.has_magic(name or _BUILDERS), False
    for file in files:
        for each in _matching(file, name, several=several):
            found = True
            yield Target(str(file), each)
    if not found:
        wanted = f"a name that matches {name!r}" if name else f"functions that are named {_BUILDERS}"
        raise TriageError(f"TARGET: expected {wanted} in {text!r}, got {_told(files)}. Name one: FILE.py:NAME.")


def _python_files(path: pathlib.Path) -> list[pathlib.Path]:
    """The Python files at a path or below it, without those in hidden folders."""
    if not path.is_dir():
        return [path] if path.suffix == ".py" else []
    below = (each for each in path.rglob("*.py") if each.is_file())
    return sorted(each for each in below if not any(part.startswith((".", "__")) for part in each.relative_to(path).parts[:-1]))


def _matching(file: pathlib.Path, name: str, *, several: bool) -> Iterator[str]:
    if name and not glob.has_magic(name) and not several:
        # NOTE: a name may be one that the file makes while it runs.
        yield name
        return
    yield from (each for each in _defined(file) if fnmatch.fnmatchcase(each, name or _BUILDERS))


def _defined(file: pathlib.Path) -> list[str]:
    """The public names at the top of a file that may be models: functions that need no argument, classes, values. None if it has errors."""
    try:
        body = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []
    names: list[str] = []
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name, args=arguments) if not _needs_arguments(arguments):
                names.append(name)
            case ast.ClassDef(name=name):
                names.append(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def _needs_arguments(arguments: ast.arguments) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args)
    return positional > len(arguments.defaults) or None in arguments.kw_defaults


def _told(files: Sequence[pathlib.Path]) -> str:
    names = [name for file in files for name in _defined(file)]
    return f"{', '.join(names[:5])}{f' and {len(names) - 5} more' if len(names) > 5 else ''}" if names else "none"


def _listed(path: pathlib.Path, names_in: Callable[[str, str], Mapping[str, str]]) -> Iterator[Target]:
    """The targets of a list. Paths in it are relative to its folder."""
    try:
        document = _document(path)
    except (OSError, ValueError) as error:
        raise TriageError(f"TARGET: expected a list of models, got {str(path)!r}, which cannot be read: {error}") from error
    entries = document.get("models") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries:
        form = "tables [[models]]" if path.suffix == ".toml" else "a list under models:"
        raise TriageError(f"{path}: expected {form}, each with a target, got none.")
    for number, entry in enumerate(entries, 1):
        yield from _of_entry(path, f"{path}: models {number}", entry, names_in)


def _document(path: pathlib.Path) -> Any:
    """What a file in TOML or YAML holds. Raises `OSError` or `ValueError` if it cannot be read."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        return tomllib.loads(text)
    # NOTE: most triages need none.
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _of_entry(path: pathlib.Path, place: str, entry: Any, names_in: Callable[[str, str], Mapping[str, str]]) -> Iterator[Target]:
    _check_entry(place, entry)
    text = entry["target"]
    source = _split(text)[0]
    beside = path.parent / source
    if source.partition(":")[0] not in LIBRARIES and (source.endswith((".py", *_LISTS)) or _is_path(source, path.parent)):
        text = f"{os.path.normpath(beside)}{text.removeprefix(source)}"
    if text.endswith(_LISTS):
        raise TriageError(f"{place}: expected a target other than a list, got {text!r}.")
    found = [*_expanded(text, names_in)]
    if entry.get("name") and len(found) > 1:
        raise TriageError(f"{place}: expected one model for the name {entry['name']!r}, got {len(found)}.")
    for each in found:
        yield dataclasses.replace(each, name=entry.get("name", ""), arguments=entry.get("arguments", {}), dynamic=entry.get("dynamic"))


def _check_entry(place: str, entry: Any) -> None:
    if not isinstance(entry, dict) or "target" not in entry:
        raise TriageError(f"{place}: expected a table with a target, got {entry!r}.")
    for key, value in entry.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1)
            raise TriageError(f"{place}: expected the keys {', '.join(_KEYS)}, got {key!r}.{f' Did you mean {near[0]!r}?' if near else ''}")
        if not isinstance(value, _KEYS[key]):
            raise TriageError(f"{place}: {key}: expected a {_KEYS[key].__name__}, got {value!r}.")
    try:
        json.dumps(entry.get("arguments", {}))
    except TypeError as error:
        raise TriageError(f"{place}: arguments: expected numbers, strings, lists and tables: {error}.") from error
