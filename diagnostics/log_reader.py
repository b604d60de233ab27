"""Restores a log from a SARIF file, as far as a report needs it. It does not restore code flows.

A restored log shows text that the file contains. It shows a line of a source file only if that line still contains the recorded text.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import datetime
import logging
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence

from .diagnostic import Diagnostic, Suppression
from .errors import UnreadableLog
from .fix import Confidence, Edit, Fix
from .graph import Graph, Node
from .json_values import integer, seconds, string
from .level import Level
from .location import Location, Region
from .log import DIFFERENCES, MEMORY, PROFILE, Artifact, Attachment, Event, Log, Stage, Tool
from .options import DiagnosticOptions
from .privacy import ELSEWHERE, PACKAGES
from .rule import Recorded
from .sarif_file import SAME, UNLINKED, Json, file_of, opened_sarif, present_results
from .source_text import column_from_utf16, line_text
from .source_tree import SourceTree, Unreachable

_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "note": logging.INFO}
_COLUMN_LIMIT = 10_000
_LINE_LIMIT = 1_000
"""The last column, and the most lines of a region, that a report takes from a log."""


def read_log(path: pathlib.Path, sources: SourceTree | None = None) -> Log:
    """The log in the SARIF file at `path`.

    Args:
        path: The file.
        sources: The files that may complete what the log says of a line. Without it, those around the current folder.

    Raises:
        UnreadableLog: The file is missing, or is not the log of one export by onnxplain.
    """
    with opened_sarif(path) as document:
        runs = document["runs"]
        if len(runs) != 1:
            raise ValueError(f"it has {len(runs)} runs; a log of onnxplain has one")
        return _Run(runs[0], sources or SourceTree.around()).log()


def read_logs(paths: Iterable[pathlib.Path], sources: SourceTree | None = None) -> tuple[Log, ...]:
    """The logs of many exports, each once.

    Args:
        paths: SARIF files with one or more runs, and folders with such files.
        sources: As in `read_log`.

    Returns:
        The logs in order. Models of one name have the name of their file as well, as in `Net (net_dynamic)`.

    Raises:
        UnreadableLog: A file is missing, or is not a log of onnxplain, or a folder has none.
    """
    tree, found = sources or SourceTree.around(), dict[object, list[tuple[int, str, Log]]]()
    for path in paths:
        for file in _files(path):
            with opened_sarif(file) as document:
                if not document["runs"]:
                    raise ValueError("it has no runs; a log of onnxplain has one for each export")
                for log in (_Run(run, tree).log() for run in document["runs"]):
                    # NOTE: a folder may hold the logs of its models and one log with the runs of all. The name of the former tells more.
                    present = len(document["runs"]), file.stem, log
                    alike = found.setdefault((log.subject, log.started, log.ended, log.command_line, len(log.findings)), [])
                    number = next((number for number, (*_, other) in enumerate(alike) if _same_findings(log, other)), len(alike))
                    known = slice(number, number + 1)
                    alike[known] = [min(*alike[known], present, present, key=lambda each: each[0])]
    return tuple(_distinct([(stem, log) for each in found.values() for _, stem, log in each]))


def _same_findings(one: Log, other: Log) -> bool:
    """Whether two logs tell the same findings."""
    return all(str(first) == str(second) for first, second in zip(one.findings, other.findings, strict=True))


def _files(path: pathlib.Path) -> list[pathlib.Path]:
    """The SARIF files that `path` stands for."""
    if not path.is_dir():
        return [path]
    files = sorted(each for each in path.rglob("*.sarif") if each.is_file())
    if not files:
        raise UnreadableLog(path, "the folder has no file that ends with .sarif")
    return files


def _distinct(named: Sequence[tuple[str, Log]]) -> Iterator[Log]:
    """The logs, each of a model with another name: those of one name get the name of their file, and then a number."""
    counts = collections.Counter(log.subject for _, log in named)
    seen = collections.Counter[str]()
    for stem, log in named:
        subject = log.subject if counts[log.subject] == 1 or log.subject == stem else f"{log.subject} ({stem})"
        seen[subject] += 1
        number = f" {seen[subject]}" if seen[subject] > 1 else ""
        yield dataclasses.replace(log, subject=f"{subject}{number}")


class _Run:
    """The one run of a log, with the files and lines that its parts share."""

    def __init__(self, run: Json, sources: SourceTree) -> None:
        self._run = run
        self._sources = sources
        self._invocation: Json = run["invocations"][0]
        self._bases: Json = run.get("originalUriBaseIds", {})
        self._rules: dict[str, Json] = {rule["id"]: rule for rule in run["tool"]["driver"].get("rules", ())}
        self._folder = _folder(self._invocation.get("workingDirectory"))
        self._files: dict[str, str] = {}
        self._texts: dict[str, dict[int, str]] = {}
        self._results = present_results(run)
        for result in self._results:
            self._learn(result)

    def log(self) -> Log:
        driver, properties = self._run["tool"]["driver"], self._run["properties"]
        names = ((MEMORY, "onnxplain/memory"), (DIFFERENCES, "onnxplain/differences"), (PROFILE, "onnxplain/profile"))
        texts = [(name, properties.get(key)) for name, key in names]
        unfinished = string(properties.get("onnxplain/unfinished", ""))
        return Log(
            tool=Tool(string(driver["name"]), string(driver["semanticVersion"]), string(driver["informationUri"])),
            subject=string(properties["onnxplain/subject"]),
            findings=tuple(map(self._finding, self._results)),
            events=tuple(
                map(_event, (each for each in self._invocation.get("toolExecutionNotifications", ()) if "associatedRule" not in each))
            ),
            stages=tuple(
                Stage(string(stage["name"]), seconds(stage["seconds"]), bool(stage["completed"]))
                for stage in properties.get("onnxplain/stages", ())
            ),
            attachments=tuple(Attachment(name, string(text)) for name, text in texts if text is not None),
            artifacts=tuple(map(self._artifact, self._run.get("artifacts", ()))),
            environment=tuple((string(name), string(version)) for name, version in properties.get("onnxplain/environment", {}).items()),
            options=_options(properties.get("onnxplain/options", {})),
            started=_time(self._invocation["startTimeUtc"]),
            # NOTE: a log that its export did not finish may lack the time.
            ended=_time(self._invocation["startTimeUtc" if unfinished and "endTimeUtc" not in self._invocation else "endTimeUtc"]),
            unfinished=unfinished,
            command_line=string(self._invocation.get("commandLine", "")),
            family=string(properties.get("onnxplain/family", "")),
        )

    def _finding(self, result: Json) -> Diagnostic:
        properties = result["properties"]
        place = next((self._location(each) for each in result.get("locations", ())), None)
        related = [self._location(each) for each in result.get("relatedLocations", ())]
        others = [each.saying("") for each in related if each.message == SAME]
        return Diagnostic(
            rule=self._rule(result),
            level=Level(result["level"]),
            stage=string(properties.get("stage", "")),
            blocking=bool(properties["blocking"]),
            location=place,
            occurrences=tuple(each for each in (place, *others) if each is not None),
            count=integer(result.get("occurrenceCount", 1)),
            stack=tuple(self._location(frame["location"]) for stack in result.get("stacks", ()) for frame in reversed(stack["frames"])),
            related=tuple(each for each in related if each.message != SAME),
            notes=tuple(map(string, properties.get("notes", ()))),
            fixes=tuple(self._fix(each, result.get("fixes", ())) for each in properties.get("fixes", ())),
            cause=string(properties.get("cause", "")),
            graph=next(map(_graph, result.get("graphs", ())), None),
            suppression=next(map(self._suppression, result.get("suppressions", ())), None),
        )

    def _rule(self, result: Json) -> Recorded:
        """The rule as the log recorded it. The present book may lack the rule or have changed it, so it does not count here."""
        id, message = string(result["ruleId"]), result["message"]
        descriptor = self._rules.get(id, {})
        properties = descriptor.get("properties", {})
        names = tuple(map(string, properties.get("arguments", ())))
        # NOTE: behind the rule's arguments follow the texts of links, which the related locations restore.
        values = tuple(string(each).replace(UNLINKED, "](") for each in message.get("arguments", ()))[: len(names)]
        template = descriptor.get("messageStrings", {}).get("default", {}).get("text", "")
        told = Recorded(
            id, string(descriptor.get("name", "")) or id, string(template), names, values, properties.get("everywhere", False) is True
        )
        text = string(message["text"]).replace(UNLINKED, "](")
        known = bool(template) and len(names) == len(values) and text.startswith(str(told))
        return told if known else dataclasses.replace(told, template="{0}", names=("message",), values=(text,))

    def _suppression(self, suppression: Json) -> Suppression:
        return Suppression(self._location(suppression.get("location", {})), string(suppression.get("justification", "")))

    def _fix(self, fix: Json, changes: Sequence[Json]) -> Fix:
        edits = tuple(
            Edit(
                self._file(change["artifactLocation"]),
                self._region(change["artifactLocation"], each["deletedRegion"]),
                string(each.get("insertedContent", {}).get("text", "")),
            )
            for change in (changes[fix["edits"]]["artifactChanges"] if "edits" in fix else ())
            for each in change["replacements"]
        )
        return Fix(string(fix["description"]), Confidence(fix["confidence"]), edits, string(fix.get("snippet", "")))

    def _artifact(self, artifact: Json) -> Artifact:
        path = pathlib.Path(self._file(artifact["location"]))
        return Artifact(path, string(artifact["roles"][0]), integer(artifact["length"]), string(artifact["hashes"]["sha-256"]))

    def _location(self, location: Json) -> Location:
        physical = location.get("physicalLocation", {})
        names = {each.get("kind"): string(each["fullyQualifiedName"]) for each in location.get("logicalLocations", ())}
        return Location(
            self._file(physical["artifactLocation"]) if physical else "",
            self._region(physical["artifactLocation"], physical["region"]) if "region" in physical else None,
            names.get("function", ""),
            names.get("module", ""),
            string(location.get("message", {}).get("text", "")),
        )

    def _learn(self, result: Json) -> None:
        """Keeps the whole lines that a result contains, around its place and of its edits. Other places may need them."""
        places = [location.get("physicalLocation", {}) for location in result.get("locations", ())]
        around = [(place["artifactLocation"], place["contextRegion"]) for place in places if "contextRegion" in place]
        whole = [(artifact, region["startLine"], region["snippet"]["text"]) for artifact, region in around]
        whole += [
            (change["artifactLocation"], each["deletedRegion"]["startLine"], each["properties"]["lines"])
            for fix in result.get("fixes", ())
            for change in fix["artifactChanges"]
            for each in change["replacements"]
            if "properties" in each
        ]
        for artifact, line, text in whole:
            lines = enumerate(string(text).split("\n"), integer(line, least=1))
            self._texts.setdefault(file_of(artifact, self._bases), {}).update(lines)

    def _region(self, artifact: Json, region: Json) -> Region:
        """`region` with the text of its lines."""
        line = integer(region["startLine"], least=1)
        end_line = integer(region.get("endLine", line), least=line)
        if "startColumn" not in region:
            return Region(line, None, end_line, None, lines=("",))
        column, end_column = (min(integer(region[name], least=1), _COLUMN_LIMIT) for name in ("startColumn", "endColumn"))
        lines = self._lines(artifact, line, end_line, column, string(region.get("snippet", {}).get("text", "")))
        whole = region.get("properties", {}).get("wholeLine") is True
        return Region(
            line,
            None if whole else column_from_utf16(lines[0], column),
            end_line,
            None if whole else column_from_utf16(lines[-1], end_column),
            lines=lines,
        )

    def _lines(self, artifact: Json, first: int, last: int, column: int, snippet: str) -> tuple[str, ...]:
        """The lines of a region: from the log, else from the file if it still contains the region's text, else that text alone."""
        known = self._texts.get(file_of(artifact, self._bases), {})
        if last - first < _LINE_LIMIT and all(number in known for number in range(first, last + 1)):
            return tuple(known[number] for number in range(first, last + 1))
        parts = snippet.split("\n")
        if snippet.strip():
            with contextlib.suppress(Unreachable):
                file = self._sources.find(artifact, self._bases)
                now = tuple(line_text(str(file), first + number) for number in range(len(parts))) if file.is_file() else ("",)
                if _same(now, parts, column):
                    return now
        return (" " * (column - 1) + parts[0] if snippet else "", *parts[1:])

    def _file(self, artifact: Json) -> str:
        """The path of the file. If this checkout lacks it, the path is relative to the folder of the export."""
        file = file_of(artifact, self._bases)
        key = f"{artifact.get('uriBaseId')}:{file}"
        if key not in self._files:
            self._files[key] = self._found(artifact, file) or _below(self._folder, file)
        return self._files[key]

    def _found(self, artifact: Json, file: str) -> str:
        """The path of the file in this checkout; empty if it lacks the file."""
        if artifact.get("uriBaseId") in (PACKAGES, ELSEWHERE):
            return ""
        with contextlib.suppress(Unreachable, KeyError):
            if self._sources.find(artifact, self._bases).is_file():
                return str(self._sources.root / file)
        return file if pathlib.Path(file).is_absolute() and os.path.lexists(file) else ""


def _folder(location: Json | None) -> str:
    """The folder of the export: relative to the root, or absolute in a log of an older onnxplain."""
    return file_of({"uri": location["uri"]}, {}) if location and "uri" in location else ""


def _below(folder: str, file: str) -> str:
    """`file`, relative to `folder` if it lies below that folder."""
    path = pathlib.PurePath(file)
    return str(path.relative_to(folder)) if folder and path.is_relative_to(folder) else file


def _same(lines: Sequence[str], snippet: Sequence[str], column: int) -> bool:
    """Whether the text of `snippet` is in `lines` at a column (in UTF-16 code units)."""
    rest = lines[0][column_from_utf16(lines[0], column) - 1 :], *lines[1:]
    return list(rest[:-1]) == list(snippet[:-1]) and rest[-1].startswith(snippet[-1])


def _graph(graph: Json) -> Graph:
    return Graph(
        tuple(
            Node(string(node["id"]), string(node["label"]["text"]), string(node.get("properties", {}).get("value", "")))
            for node in graph["nodes"]
        ),
        tuple((string(edge["sourceNodeId"]), string(edge["targetNodeId"])) for edge in graph.get("edges", ())),
        string(graph["properties"]["blamed"]),
    )


def _event(notification: Json) -> Event:
    stage = string(notification.get("descriptor", {}).get("id", "")).removeprefix("stage/")
    at = _time(notification["timeUtc"]).timestamp() if "timeUtc" in notification else 0.0
    return Event(_LEVELS[notification["level"]], stage, string(notification["message"]["text"]), at)


def _options(options: Json) -> DiagnosticOptions:
    known = {field.name for field in dataclasses.fields(DiagnosticOptions)}
    values = {name: value for name, value in options.items() if name in known}
    if "levels" in values:
        values["levels"] = {rule: Level(level) for rule, level in values["levels"].items()}
    return DiagnosticOptions(**values)


def _time(text: str) -> datetime.datetime:
    # NOTE: Python 3.10 does not parse Z. In a date alone, newer ones take the zone for the time.
    time = datetime.datetime.fromisoformat(string(text).removesuffix("Z") + "+00:00")
    if time.tzinfo is None:
        raise ValueError(f"{text!r:.60} is not a time")
    return time
