"""Settings of the command line in a pyproject.toml: the section `[tool.onnxplain]`."""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import os
import pathlib
import posixpath
import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from onnxplain import schemas
from onnxplain.diagnostics import shown_path
from onnxplain.triage import LIBRARIES

from .nearest import hint

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from jsonschema import ValidationError

_GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
_PATHS = ("artifacts", "baseline", "output", "report", "repro", "sarif")
"""Settings that are paths, relative to the folder of the file."""
_TYPES = {"boolean": "true or false", "integer": "a whole number", "string": "a string", "array": "a list", "object": "a table"}


class SettingsError(click.ClickException):
    """The file is no TOML, or the section has keys or values that do not exist."""

    exit_code = 2


@dataclasses.dataclass(frozen=True)
class Setting:
    """A value in a file.

    Attributes:
        value: The value, as an option of the command line takes it.
        key: Its key, within the section.
        place: The file, the line and the profile.
    """

    value: Any
    key: str
    place: str


Settings = Mapping[str, Setting]
"""Settings by the names of the parameters of a command."""


def for_export(source: str) -> Settings:
    """The settings for the target in `source`, the path of a Python file or the name of a module or a library.

    A library is nobody's project, so the current folder counts for it, and no profile for paths.

    Raises:
        SettingsError: The section is not valid.
    """
    path = None if source in LIBRARIES else _path(source)
    section = _Section.around(pathlib.Path.cwd() if path is None else path.parent)
    if section is None:
        return {}
    found = {key: value for key, value in section.values.items() if key not in ("gate", "profiles")}
    settings = dict(section.settings(found, ()))
    if path is None:
        return settings
    relative = pathlib.PurePath(os.path.relpath(path, section.file.parent)).as_posix()
    for index, profile in enumerate(section.values.get("profiles", ())):
        if any(_matches(relative, pattern) for pattern in profile["paths"]):
            overriding = {key: value for key, value in profile.items() if key != "paths"}
            settings.update(section.settings(overriding, ("profiles", str(index)), before=settings))
    return settings


def for_gate() -> Settings:
    """The settings for `onnxplain gate` in the current folder. Those beside a log do not count: a log may come from anybody.

    Raises:
        SettingsError: The section is not valid.
    """
    section = _Section.around(pathlib.Path.cwd())
    return {} if section is None else dict(section.settings(section.values.get("gate", {}), ("gate",)))


def settled(ctx: click.Context, settings: Settings) -> dict[str, Any]:
    """The parameters of a command: those of the command line, then of the environment, then of the file, then the defaults.

    Raises:
        SettingsError: The option does not take the value in the file.
    """
    params = dict(ctx.params)
    for param in ctx.command.params:
        name = param.name or ""
        given = ctx.get_parameter_source(name) in _GIVEN
        if name not in settings or (given and name != "levels"):
            continue
        setting = settings[name]
        try:
            value = param.process_value(ctx, setting.value)
        except click.BadParameter as error:
            raise SettingsError(f"{setting.place}: {setting.key}: {error.message}") from error
        # NOTE: levels of several sources add up.
        params[name] = {**value, **params[name]} if given else value
    return params


@dataclasses.dataclass(frozen=True)
class _Section:
    """The section `[tool.onnxplain]` of a file."""

    file: pathlib.Path
    text: str
    values: Mapping[str, Any]

    @classmethod
    def around(cls, folder: pathlib.Path) -> _Section | None:
        """The section of the nearest file that has one, from `folder` upwards to the root of its git checkout."""
        for each in (folder, *folder.parents):
            # NOTE: users may work in a folder whose parents they must not look into.
            with contextlib.suppress(PermissionError):
                file = each / "pyproject.toml"
                if file.is_file() and (section := cls._read(file)) is not None:
                    return section
                if (each / ".git").exists():
                    break
        return None

    @classmethod
    def _read(cls, file: pathlib.Path) -> _Section | None:
        try:
            text = file.read_text(encoding="utf-8")
            tool = tomllib.loads(text).get("tool", {})
        except (OSError, ValueError) as error:
            raise SettingsError(f"{shown_path(str(file))} cannot be read: {error}") from error
        if not isinstance(tool, dict) or "onnxplain" not in tool:
            return None
        section = cls(file, text, tool["onnxplain"])
        section._check()
        return section

    def settings(self, values: Mapping[str, Any], keys: tuple[str, ...], before: Settings | None = None) -> Iterator[tuple[str, Setting]]:
        """The settings of a table of the section, whose keys are `keys`."""
        for key, value in values.items():
            name, place = key.replace("-", "_"), self.place((*keys, key))
            if keys[:1] == ("profiles",):
                place += f" (profile {', '.join(self.values['profiles'][int(keys[1])]['paths'])})"
            if name in _PATHS and isinstance(value, str):
                value = self._path(value)
            elif name == "levels":
                value = [f"{rule}={level}" for rule, level in value.items()]
                if before and name in before:
                    value = [*before[name].value, *value]
            yield name, Setting(value, key, place)

    def place(self, keys: tuple[str, ...]) -> str:
        """The file and the line of a key."""
        line = _line(self.text, keys)
        return shown_path(str(self.file)) + ("" if line is None else f":{line}")

    def _path(self, value: str) -> str:
        path = os.path.relpath(self.file.parent / value)
        # NOTE: a path that ends with a slash is a folder.
        return path + os.sep if value.endswith("/") else path

    def _check(self) -> None:
        # NOTE: the library takes a tenth of a second to import, and most projects have no section.
        import jsonschema

        validator = jsonschema.Draft202012Validator(schemas.load("config"))
        problems = [problem for error in validator.iter_errors(self.values) for problem in self._problems(error)]
        if problems:
            # NOTE: in the order of the file, however many digits the numbers of its lines have.
            lines = (f"{self.place(keys)}: {told}" for keys, told in sorted(problems, key=lambda each: _line(self.text, each[0]) or 0))
            raise SettingsError("\n".join(lines))

    def _problems(self, error: ValidationError) -> Iterator[tuple[tuple[str, ...], str]]:
        """Keys, and what is wrong there."""
        keys = tuple(map(str, error.absolute_path))
        value: Any = error.instance
        schema: Mapping[str, Any] = error.schema if isinstance(error.schema, Mapping) else {}
        if error.validator == "additionalProperties":
            known = schema.get("properties", {})
            for key in value:
                if key not in known:
                    told = hint(key, known) or f" Expected one of {', '.join(known)}."
                    yield (*keys, key), f"there is no {_key((*keys, key))}.{told}"
        elif error.validator == "required":
            yield keys, f"{_key(keys)}: expected the keys {', '.join(schema['required'])}, got {', '.join(value) or 'none'}."
        else:
            near = hint(str(value), map(str, schema["enum"])) if "enum" in schema else ""
            yield keys, f"{_key(keys)}: expected {_expected(schema)}, got {_value(value)}.{near}"


def _expected(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return f"one of {', '.join(map(repr, schema['enum']))}"
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    told = " or ".join(_TYPES[each] for each in types)
    items = schema.get("items", {})
    several = {"string": " of strings", "object": " of tables"}.get(items.get("type"), " of choices") if items else ""
    limits = (
        f" of at least {schema['minimum']}"
        if "minimum" in schema
        else " that is not empty"
        if {"minLength", "minItems"} & {*schema}
        else ""
    )
    return told + several + limits


def _value(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)


def _key(keys: tuple[str, ...]) -> str:
    """A key as it is written in TOML, such as `tool.onnxplain.profiles[0].opset`."""
    return "".join(f"[{key}]" if key.isdigit() else f".{key}" for key in ("tool", "onnxplain", *keys)).removeprefix(".")


_HEADER = re.compile(r"\s*(\[{1,2})([^\[\]]+)\]{1,2}\s*(?:#.*)?")
_ASSIGNMENT = re.compile(r"\s*([\w.\"'-]+(?:\s*\.\s*[\w\"'-]+)*)\s*=")


def _line(text: str, keys: tuple[str, ...]) -> int | None:
    """The line of the section that has the key, or else the nearest key or table around it; None if there is no plain line."""
    wanted = ("tool", "onnxplain", *keys)
    table: tuple[str, ...] = ()
    count = -1
    best, depth = None, 1
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _parts(header[2])
            if table[:3] == ("tool", "onnxplain", "profiles"):
                count += header[1] == "[[" and len(table) == 3
                table = (*table[:3], str(count), *table[3:])
            found = table
        elif assignment := _ASSIGNMENT.match(line):
            found = (*table, *_parts(assignment[1]))
        else:
            continue
        if len(found) > depth and found == wanted[: len(found)]:
            best, depth = number, len(found)
    return best


def _parts(key: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in key.split("."))


def _matches(path: str, pattern: str) -> bool:
    """Whether a path is that of a pattern, or in its folder. `*` matches any characters, `**/` any folders or none."""
    plain = posixpath.normpath(pattern)
    return any(fnmatch.fnmatchcase(path, each) for each in (plain, plain.replace("**/", ""), f"{plain}/*"))


def _path(source: str) -> pathlib.Path:
    """The file of a target. That of a module is sought in the current folder, without an import."""
    path = pathlib.Path(os.path.normpath(pathlib.Path(source).absolute()))
    if source.endswith(".py"):
        return path
    module = path if path.is_dir() else pathlib.Path.cwd().joinpath(*source.split("."))
    return module / "__init__.py" if module.is_dir() else module.with_name(f"{module.name}.py")
