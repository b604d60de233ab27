"""The results of SARIF logs, as far as later logs can have them again."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import pathlib
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from packaging.version import InvalidVersion, Version

from onnxplain.diagnostics import fingerprint
from onnxplain.diagnostics.display import TEXT_LIMIT, shortened, without_folders
from onnxplain.diagnostics.errors import InvalidArgument
from onnxplain.diagnostics.json_values import boolean, integer, string
from onnxplain.diagnostics.level import Level
from onnxplain.diagnostics.privacy import ELSEWHERE, PACKAGES
from onnxplain.diagnostics.sarif_file import Json, opened_sarif, present_results

_FINGERPRINT = re.compile(r"([0-9a-f]{32}):[1-9][0-9]*")
_REGION = ("startLine", "startColumn", "endLine", "endColumn")


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """The place of a result, for readers. Columns count UTF-16 code units.

    Attributes:
        file: Path of the file relative to the source root, or its name alone if it lies elsewhere; empty if unknown.
        in_sources: True if the file lies below the source root.
        line: First line; None if only the file is known.
        column: First column.
        end_line: Last line.
        end_column: Column after the last one.
        module: Path of the submodule; empty for the root or if unknown.
    """

    file: str
    in_sources: bool
    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None
    module: str


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Result:
    """A result of a log.

    Attributes:
        model: The model that it is about.
        fingerprint: Our fingerprint, without the counter for equal ones.
        rule: The rule's id.
        level: Its level.
        message: Its message, without folders.
        location: Its place, as SARIF: the file (relative to the source root, or its name alone), the region, the module. Empty if
            nothing is known.
        suppressed: True if the source or another tool accepted it.
    """

    model: str
    fingerprint: str
    rule: str
    level: Level
    message: str
    location: Mapping[str, Any]
    suppressed: bool

    @property
    def place(self) -> Place:
        """The parts of its location."""
        physical = self.location.get("physicalLocation", {})
        artifact = physical.get("artifactLocation", {})
        modules = (each["fullyQualifiedName"] for each in self.location.get("logicalLocations", ()) if each["kind"] == "module")
        line, column, end_line, end_column = (physical.get("region", {}).get(name) for name in _REGION)
        file = urllib.parse.unquote(artifact.get("uri", ""))
        return Place(file, "uriBaseId" in artifact, line, column, end_line, end_column, next(modules, ""))


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A run of a log.

    Attributes:
        id: The id of its automationDetails; the same for every export of a model.
        model: The model's name.
        version: The version of onnxplain that wrote it.
        results: Its results in order, without those that an earlier comparison added.
        omitted: The number of findings of each level that it omits, because it is for GitHub.
        for_github: True if it is for GitHub.
        unfinished: Why the export did not come to its end; empty if it did.
    """

    id: str
    model: str
    version: str
    results: tuple[Result, ...]
    omitted: Mapping[Level, int]
    for_github: bool
    unfinished: str


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SarifFile:
    """A file with one or more runs, and its content as it was read."""

    path: pathlib.Path
    content: Json
    runs: tuple[Run, ...]

    @property
    def results(self) -> tuple[Result, ...]:
        """The results of all runs."""
        return tuple(result for run in self.runs for result in run.results)

    def incomplete(self, run: Run) -> InvalidArgument:
        """The error for a log whose `run` omits findings that the gate needs."""
        counts = ", ".join(f"{count} {level.value}s" for level, count in run.omitted.items() if count)
        return InvalidArgument(f"LOG: expected a full log, got {str(self.path)!r}, which is for GitHub and omits findings ({counts})")


def load(path: pathlib.Path, *, export: bool) -> SarifFile:
    """Reads the log at `path`.

    Args:
        path: The file.
        export: True refuses files that describe no export, such as a baseline.

    Raises:
        UnreadableLog: The file is missing, is not a log of onnxplain or one of a newer version, contradicts itself, or lacks something
            that a comparison needs.
        InvalidArgument: Something cut the export short. More findings might have followed, so no verdict holds.
    """
    with opened_sarif(path) as content:
        runs = tuple(_run(run, export=export) for run in content["runs"])
        if not runs:
            raise ValueError("it has no run")
    for run in runs:
        if run.unfinished:
            raise InvalidArgument(
                f"LOG: expected the log of an export that was not cut short, got {str(path)!r} ({run.unfinished}): export again"
            )
    return SarifFile(path, content, runs)


def load_all(logs: Sequence[pathlib.Path], others: Mapping[str, pathlib.Path | None]) -> list[SarifFile]:
    """Reads the logs at `logs`.

    Args:
        logs: The files.
        others: The command's other files, by the name of the argument.

    Raises:
        InvalidArgument: Two of all these files are the same.
        UnreadableLog: As for `load`.
    """
    # NOTE: `Path.resolve` raises for links that lead to themselves.
    taken = {os.path.realpath(path): argument for argument, path in others.items() if path is not None}
    for path in logs:
        argument = taken.setdefault(os.path.realpath(path), "")
        if argument:
            raise InvalidArgument(f"LOG: expected each file once, but {str(path)!r} is also {argument}")
        taken[os.path.realpath(path)] = "another LOG"
    return [load(path, export=True) for path in logs]


def _run(run: Json, *, export: bool) -> Run:
    version = string(run["tool"]["driver"]["semanticVersion"])
    _check_version(version)
    properties = run.get("properties", {})
    id = _text(run["automationDetails"]["id"])
    model = id.removeprefix("onnx-export/").removesuffix("/")
    results = tuple(_result(model, result) for result in present_results(run))
    omitted = {Level(level): integer(count) for level, count in properties.get("onnxplain/leftOut", {}).items()}
    failed = export and not boolean(run["invocations"][0]["executionSuccessful"])
    if failed and not omitted.get(Level.ERROR) and all(result.level is not Level.ERROR for result in results):
        raise ValueError("it says that the export failed, but has no error")
    unfinished = string(properties.get("onnxplain/unfinished", ""))
    return Run(id, model, version, results, omitted, properties.get("onnxplain/sarifProfile") == "github", unfinished)


def _check_version(version: str) -> None:
    running = importlib.metadata.version("onnxplain")
    try:
        newer = Version(version) > Version(running)
    except InvalidVersion:
        raise ValueError(f"no onnxplain has the version {version!r:.60}") from None
    if newer:
        raise ValueError(f"it was written by onnxplain {version}; this is {running}")


def _result(model: str, result: Json) -> Result:
    found = _FINGERPRINT.fullmatch(string(result["partialFingerprints"][fingerprint.NAME]))
    if found is None:
        raise ValueError(f"a result has the fingerprint {result['partialFingerprints'][fingerprint.NAME]!r:.60}")
    return Result(
        model,
        found[1],
        _text(result["ruleId"]),
        Level(result["level"]),
        without_folders(_text(result["message"]["text"])),
        next(map(location_of, result.get("locations", ())), {}),
        # NOTE: as in VS Code, every suppression counts that was not rejected.
        any(each.get("status") != "rejected" for each in result.get("suppressions") or ()),
    )


def _text(value: object) -> str:
    return shortened(string(value), TEXT_LIMIT)


def location_of(location: Json) -> dict[str, Any]:
    """The part of `location` that is the same on every machine: no snippets, and no folders of files outside the source root."""
    found: dict[str, Any] = {}
    if physical := location.get("physicalLocation"):
        found["physicalLocation"] = {"artifactLocation": _file(physical["artifactLocation"])}
        if region := physical.get("region"):
            numbers = {name: integer(region[name], least=1) for name in _REGION if name in region}
            found["physicalLocation"]["region"] = numbers
    if logical := location.get("logicalLocations"):
        found["logicalLocations"] = [
            {"fullyQualifiedName": _text(each["fullyQualifiedName"]), "kind": _text(each["kind"])} for each in logical
        ]
    return found


def _file(artifact: Json) -> dict[str, str]:
    uri = _text(artifact["uri"])
    if artifact.get("uriBaseId") not in (None, PACKAGES, ELSEWHERE) and not re.match(r"/|[A-Za-z][\w+.-]*:", uri):
        return {"uri": uri, "uriBaseId": _text(artifact["uriBaseId"])}
    return {"uri": uri.rstrip("/").rpartition("/")[2] or "unknown"}
