"""The findings of SARIF logs, as far as later logs have them again, and what became of them since."""

from __future__ import annotations

import collections
import dataclasses
import importlib.metadata
import pathlib
import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from packaging.version import InvalidVersion, Version

from . import fingerprint, typed
from .level import Level
from .read import Json, present, reading
from .text import without_folders

State = Literal["new", "unchanged", "updated", "absent"]
"""SARIF's words for what became of a result since a baseline (2.1.0, section 3.27.24); `absent` is what was fixed."""

_FINGERPRINT = re.compile(r"([0-9a-f]{32}):[1-9][0-9]*")
_REGION = ("startLine", "startColumn", "endLine", "endColumn")


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a finding stands, as a reader wants to know it; columns count UTF-16 code units.

    Attributes:
        file: Path of the file below the sources' root, its name alone if it is not there, or empty.
        in_sources: True if it is below the root.
        line: First line; None if only the file is known.
        column: First column.
        end_line: Last line.
        end_column: Column after the last one.
        module: Path of the submodule; empty for the root or when unknown.
    """

    file: str
    in_sources: bool
    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None
    module: str


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """A result of a log.

    Attributes:
        model: The model that it is about.
        fingerprint: Ours, without the count of equal ones.
        rule: The rule's id.
        level: Its level.
        message: What it says, without folders of a machine.
        location: Where it stands, as SARIF: the file, relative to the sources' root or by its name alone, the region, the module. Empty
            where nothing is known.
        suppressed: True if it was accepted, in the source or by another tool.
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
        """Its location, taken apart."""
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
        id: What its automationDetails say; the same for each export of a model.
        model: The model's name.
        version: The onnxplain that wrote it.
        findings: Its results in order, but those that an earlier comparison added.
        left_out: How many findings of a level are not in it, since it is meant for GitHub, which takes not all.
        for_github: True if it is meant for GitHub.
    """

    id: str
    model: str
    version: str
    findings: tuple[Finding, ...]
    left_out: Mapping[Level, int]
    for_github: bool


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SarifFile:
    """A file with one or more runs, and its content as it was read."""

    path: pathlib.Path
    content: Json
    runs: tuple[Run, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those of all runs."""
        return tuple(finding for run in self.runs for finding in run.findings)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """A finding and what became of it. `before` is what the baseline has for it; of an `absent` one it is the finding itself."""

    finding: Finding
    state: State
    before: Finding | None = None

    @property
    def raised_from(self) -> Level | None:
        """Its level in the baseline, if that was a lower one: it is new then."""
        return self.before.level if self.before is not None and self.finding.level.rank < self.before.level.rank else None


def load(path: pathlib.Path, *, export: bool) -> SarifFile:
    """The log at `path`.

    Args:
        path: The file.
        export: True refuses what tells of no export, such as a baseline.

    Raises:
        UnreadableLog: There is no such file, it is no log of onnxplain's or one of a newer version, it contradicts itself or lacks
            something that a comparison needs.
    """
    with reading(path) as content:
        runs = tuple(_run(run, export=export) for run in content["runs"])
        if not runs:
            raise ValueError("it tells of no run")
        return SarifFile(path, content, runs)


def compare(findings: Sequence[Finding], known: Sequence[Finding]) -> tuple[Compared, ...]:
    """What became of each of `findings`, in order, and after them what is only in the baseline `known`.

    Findings of one model with equal fingerprints are told apart by how many there are: of three where the baseline has two, one is new. A
    suppressed one is told last, so that it takes nothing from those that count; what the baseline has for it is not absent.
    """
    before: dict[Finding, Finding] = {}
    left = sorted((each for each in known if not each.suppressed), key=lambda each: each.level.rank)
    mildest_first = sorted(findings, key=lambda each: (each.suppressed, -each.level.rank))
    for suppressed in (False, True):
        for same in (_whole, _kind, _key):
            waiting = [each for each in mildest_first if each.suppressed is suppressed and each not in before]
            left = _pair(waiting, left, same, before)
    return (
        *(Compared(each, _state(each, before.get(each)), before.get(each)) for each in findings),
        *(Compared(each, "absent", each) for each in left),
    )


def _pair(
    findings: Iterable[Finding], known: Sequence[Finding], same: Callable[[Finding], object], before: dict[Finding, Finding]
) -> list[Finding]:
    """Adds to `before` what `known` has for each of `findings`, each once. Returns what is left of `known`."""
    waiting: dict[object, collections.deque[Finding]] = {}
    for each in known:
        waiting.setdefault(same(each), collections.deque()).append(each)
    for finding in findings:
        if found := waiting.get(same(finding)):
            before[finding] = found.popleft()
    taken = {*before.values()}
    return [each for each in known if each not in taken]


def _key(finding: Finding) -> tuple[object, ...]:
    return finding.model, finding.fingerprint


def _kind(finding: Finding) -> tuple[object, ...]:
    return *_key(finding), finding.level


def _whole(finding: Finding) -> tuple[object, ...]:
    return *_kind(finding), finding.message, str(finding.location)


def _state(finding: Finding, before: Finding | None) -> State:
    if before is None or finding.level.rank < before.level.rank:
        return "new"
    return "unchanged" if (finding.message, finding.location) == (before.message, before.location) else "updated"


def _run(run: Json, *, export: bool) -> Run:
    version = typed.text(run["tool"]["driver"]["semanticVersion"])
    _check_version(version)
    properties = run.get("properties", {})
    id = typed.text(run["automationDetails"]["id"])
    model = id.removeprefix("onnx-export/").removesuffix("/")
    findings = tuple(_finding(model, result) for result in present(run))
    left_out = {Level(level): typed.number(count) for level, count in properties.get("onnxplain/leftOut", {}).items()}
    failed = export and not typed.flag(run["invocations"][0]["executionSuccessful"])
    if failed and not left_out.get(Level.ERROR) and all(finding.level is not Level.ERROR for finding in findings):
        raise ValueError("it says that the export failed, but holds no error")
    return Run(id, model, version, findings, left_out, properties.get("onnxplain/sarifProfile") == "github")


def _check_version(version: str) -> None:
    running = importlib.metadata.version("onnxplain")
    try:
        newer = Version(version) > Version(running)
    except InvalidVersion:
        raise ValueError(f"its version, {version!r:.60}, is none of onnxplain's") from None
    if newer:
        raise ValueError(f"it was written by onnxplain {version}; this is {running}")


def _finding(model: str, result: Json) -> Finding:
    found = _FINGERPRINT.fullmatch(typed.text(result["partialFingerprints"][fingerprint.NAME]))
    if found is None:
        raise ValueError(f"a result has the fingerprint {result['partialFingerprints'][fingerprint.NAME]!r:.60}")
    return Finding(
        model,
        found[1],
        typed.text(result["ruleId"]),
        Level(result["level"]),
        without_folders(typed.text(result["message"]["text"])),
        next(map(_location, result.get("locations", ())), {}),
        # NOTE: as VS Code has it: any that was not rejected suppresses.
        any(each.get("status") != "rejected" for each in result.get("suppressions") or ()),
    )


def _location(location: Json) -> dict[str, Any]:
    """What is the same on every machine: the text there, and where a file is that is none of the sources, are not."""
    found: dict[str, Any] = {}
    if physical := location.get("physicalLocation"):
        found["physicalLocation"] = {"artifactLocation": _file(physical["artifactLocation"])}
        if region := physical.get("region"):
            numbers = {name: typed.number(region[name], least=1) for name in _REGION if name in region}
            found["physicalLocation"]["region"] = numbers
    if logical := location.get("logicalLocations"):
        found["logicalLocations"] = [
            {"fullyQualifiedName": typed.text(each["fullyQualifiedName"]), "kind": typed.text(each["kind"])} for each in logical
        ]
    return found


def _file(artifact: Json) -> dict[str, str]:
    uri = typed.text(artifact["uri"])
    if "uriBaseId" in artifact and not re.match(r"/|[A-Za-z][\w+.-]*:", uri):
        return {"uri": uri, "uriBaseId": typed.text(artifact["uriBaseId"])}
    return {"uri": uri.rstrip("/").rpartition("/")[2] or "unknown"}
