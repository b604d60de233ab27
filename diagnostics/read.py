"""SARIF -> log: the way back from what `sarif` writes, as far as a report needs it; the code flows stay behind.

What is read shows no file's text but that which the log carries, or which contains what the log carries.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import json
import logging
import pathlib
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .failure import UnreadableLog
from .finding import SAME, UNLINKED, Diagnostic, Suppression
from .fix import Confidence, Edit, Fix
from .graph import Graph, Node
from .level import Level
from .location import Location, Region
from .log import PROFILE, Artifact, Attachment, Event, Log, Stage, Tool
from .options import DiagnosticOptions
from .rule import Recorded
from .source import column_from_utf16, line_text
from .typed import items as _list
from .typed import number as _number
from .typed import text as _text

Json = Mapping[str, Any]

_LEVELS = {"error": logging.ERROR, "warning": logging.WARNING, "note": logging.INFO}
_COLUMN_LIMIT = 10_000


def read(path: pathlib.Path) -> Log:
    """The log in the SARIF file at `path`.

    Raises:
        UnreadableLog: There is no such file, or it is no log of one export by onnxplain.
    """
    with reading(path) as document:
        runs = document["runs"]
        if len(runs) != 1:
            raise ValueError(f"it tells of {len(runs)} runs; a log of onnxplain's tells of one")
        return _Run(runs[0]).log()


@contextlib.contextmanager
def reading(path: pathlib.Path) -> Iterator[Json]:
    """The content of the SARIF file at `path`. What goes wrong inside of the block, since it is not as expected, is `UnreadableLog`."""
    try:
        yield _parsed(path.read_bytes())
    except OSError as error:
        raise UnreadableLog(path, error.strerror or str(error)) from error
    except RecursionError as error:
        raise UnreadableLog(path, "it is nested too deeply") from error
    except KeyError as error:
        raise UnreadableLog(path, f"it lacks {error}") from error
    except ValueError as error:
        raise UnreadableLog(path, str(error)) from error
    except (TypeError, AttributeError, IndexError, OverflowError) as error:
        raise UnreadableLog(path, f"it is not like those that onnxplain writes ({error})") from error


def _parsed(data: bytes) -> Json:
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"it is no JSON, or ends too early ({error})") from error
    if not isinstance(document, dict) or "runs" not in document or "version" not in document:
        raise ValueError("it is no SARIF")
    if document["version"] != "2.1.0":
        raise ValueError(f"it is SARIF {document['version']}; this onnxplain reads SARIF 2.1.0")
    names = {_text(run["tool"]["driver"]["name"]) for run in _list(document["runs"])}
    if others := sorted(names - {"onnxplain"}):
        raise ValueError(f"it was written by {', '.join(others)}")
    return document


def present(run: Json) -> list[Any]:
    """The results of `run` but those that it has no more: an earlier `onnxplain gate` added them from the baseline."""
    return [result for result in _list(run["results"]) if result.get("baselineState") != "absent"]


def file_of(location: Json, bases: Json) -> str:
    """The file that an artifact location names, as Python knows it, or Python's name for source in no file, such as `<stdin>`.

    A base without a URI, as SARIF's section 3.14.14 allows, is the current folder.
    """
    base = _text(bases[location["uriBaseId"]].get("uri", "")) if "uriBaseId" in location else ""
    uri = urllib.parse.urlsplit(urllib.parse.urljoin(base, _text(location["uri"])))
    if uri.scheme == "file":
        return urllib.request.url2pathname(uri.path)
    if uri.scheme or base:
        raise ValueError(f"{location['uri']!r} is no file")
    return urllib.parse.unquote(location["uri"])


class _Run:
    """The one run of a log, with what its parts share."""

    def __init__(self, run: Json) -> None:
        self._run = run
        self._invocation: Json = run["invocations"][0]
        self._bases: Json = run.get("originalUriBaseIds", {})
        self._rules: dict[str, Json] = {rule["id"]: rule for rule in run["tool"]["driver"].get("rules", ())}
        self._folder = self._invocation.get("workingDirectory")
        self._files: dict[str, str] = {}
        self._texts: dict[str, dict[int, str]] = {}
        self._results = present(run)
        for result in self._results:
            self._learn(result)

    def log(self) -> Log:
        driver, properties = self._run["tool"]["driver"], self._run["properties"]
        profile = properties.get("onnxplain/profile")
        return Log(
            tool=Tool(_text(driver["name"]), _text(driver["semanticVersion"]), _text(driver["informationUri"])),
            subject=_text(properties["onnxplain/subject"]),
            findings=tuple(map(self._finding, self._results)),
            events=tuple(
                map(_event, (each for each in self._invocation.get("toolExecutionNotifications", ()) if "associatedRule" not in each))
            ),
            stages=tuple(
                Stage(_text(stage["name"]), float(stage["seconds"]), bool(stage["completed"]))
                for stage in properties.get("onnxplain/stages", ())
            ),
            attachments=() if profile is None else (Attachment(PROFILE, _text(profile)),),
            artifacts=tuple(map(self._artifact, self._run.get("artifacts", ()))),
            environment=tuple((_text(name), _text(version)) for name, version in properties.get("onnxplain/environment", {}).items()),
            options=_options(properties.get("onnxplain/options", {})),
            started=_time(self._invocation["startTimeUtc"]),
            ended=_time(self._invocation["endTimeUtc"]),
            command_line=_text(self._invocation.get("commandLine", "")),
        )

    def _finding(self, result: Json) -> Diagnostic:
        properties = result["properties"]
        place = next((self._location(each) for each in result.get("locations", ())), None)
        related = [self._location(each) for each in result.get("relatedLocations", ())]
        others = [each.saying("") for each in related if each.message == SAME]
        return Diagnostic(
            rule=self._rule(result),
            level=Level(result["level"]),
            stage=_text(properties.get("stage", "")),
            blocking=bool(properties["blocking"]),
            location=place,
            occurrences=tuple(each for each in (place, *others) if each is not None),
            count=_number(result.get("occurrenceCount", 1)),
            stack=tuple(self._location(frame["location"]) for stack in result.get("stacks", ()) for frame in reversed(stack["frames"])),
            related=tuple(each for each in related if each.message != SAME),
            notes=tuple(map(_text, properties.get("notes", ()))),
            fixes=tuple(self._fix(each, result.get("fixes", ())) for each in properties.get("fixes", ())),
            cause=_text(properties.get("cause", "")),
            graph=next(map(_graph, result.get("graphs", ())), None),
            suppression=next(map(self._suppression, result.get("suppressions", ())), None),
        )

    def _rule(self, result: Json) -> Recorded:
        """The rule as the log has it. The present book is not asked: it may lack the rule, or have another one under that id by now."""
        id, message = _text(result["ruleId"]), result["message"]
        descriptor = self._rules.get(id, {})
        properties = descriptor.get("properties", {})
        names = tuple(map(_text, properties.get("arguments", ())))
        # NOTE: what follows the rule's own arguments are the links to other places, which are read as such.
        values = tuple(_text(each).replace(UNLINKED, "](") for each in message.get("arguments", ()))[: len(names)]
        template = descriptor.get("messageStrings", {}).get("default", {}).get("text", "")
        told = Recorded(
            id, _text(descriptor.get("name", "")) or id, _text(template), names, values, properties.get("everywhere", False) is True
        )
        text = _text(message["text"]).replace(UNLINKED, "](")
        known = bool(template) and len(names) == len(values) and text.startswith(str(told))
        return told if known else dataclasses.replace(told, template="{0}", names=("message",), values=(text,))

    def _suppression(self, suppression: Json) -> Suppression:
        return Suppression(self._location(suppression.get("location", {})), _text(suppression.get("justification", "")))

    def _fix(self, fix: Json, changes: Sequence[Json]) -> Fix:
        edits = tuple(
            Edit(
                self._file(change["artifactLocation"]),
                self._region(change["artifactLocation"], each["deletedRegion"]),
                _text(each.get("insertedContent", {}).get("text", "")),
            )
            for change in (changes[fix["edits"]]["artifactChanges"] if "edits" in fix else ())
            for each in change["replacements"]
        )
        return Fix(_text(fix["description"]), Confidence(fix["confidence"]), edits, _text(fix.get("snippet", "")))

    def _artifact(self, artifact: Json) -> Artifact:
        path = pathlib.Path(self._file(artifact["location"]))
        return Artifact(path, _text(artifact["roles"][0]), _number(artifact["length"]), _text(artifact["hashes"]["sha-256"]))

    def _location(self, location: Json) -> Location:
        physical = location.get("physicalLocation", {})
        names = {each.get("kind"): _text(each["fullyQualifiedName"]) for each in location.get("logicalLocations", ())}
        return Location(
            self._file(physical["artifactLocation"]) if physical else "",
            self._region(physical["artifactLocation"], physical["region"]) if "region" in physical else None,
            names.get("function", ""),
            names.get("module", ""),
            _text(location.get("message", {}).get("text", "")),
        )

    def _learn(self, result: Json) -> None:
        """Keeps the whole lines that a result tells: those around its place and of its edits. Other places may be among them."""
        places = [location.get("physicalLocation", {}) for location in result.get("locations", ())]
        around = [(place["artifactLocation"], place["contextRegion"]) for place in places if "contextRegion" in place]
        told = [(artifact, region["startLine"], region["snippet"]["text"]) for artifact, region in around]
        told += [
            (change["artifactLocation"], each["deletedRegion"]["startLine"], each["properties"]["lines"])
            for fix in result.get("fixes", ())
            for change in fix["artifactChanges"]
            for each in change["replacements"]
            if "properties" in each
        ]
        for artifact, line, text in told:
            lines = enumerate(_text(text).split("\n"), _number(line, least=1))
            self._texts.setdefault(file_of(artifact, self._bases), {}).update(lines)

    def _region(self, artifact: Json, region: Json) -> Region:
        """`region` with the text of its lines."""
        line, end_line = _number(region["startLine"], least=1), _number(region.get("endLine", region["startLine"]), least=1)
        if "startColumn" not in region:
            return Region(line, None, end_line, None, lines=("",))
        column, end_column = (min(_number(region[name], least=1), _COLUMN_LIMIT) for name in ("startColumn", "endColumn"))
        lines = self._lines(file_of(artifact, self._bases), line, end_line, column, _text(region.get("snippet", {}).get("text", "")))
        whole = region.get("properties", {}).get("wholeLine") is True
        return Region(
            line,
            None if whole else column_from_utf16(lines[0], column),
            end_line,
            None if whole else column_from_utf16(lines[-1], end_column),
            lines=lines,
        )

    def _lines(self, file: str, first: int, last: int, column: int, snippet: str) -> tuple[str, ...]:
        """The lines of a region: as the log has them, else from the file where it still holds the region's text, else that text alone."""
        known = self._texts.get(file, {})
        lines = tuple(known[number] for number in range(first, min(last, first + len(known)) + 1) if number in known)
        if lines and len(lines) == last - first + 1:
            return lines
        parts = snippet.split("\n")
        if snippet and pathlib.Path(file).is_file():
            now = tuple(line_text(file, first + number) for number in range(len(parts)))
            if _same(now, parts, column):
                return now
        return (" " * (column - 1) + parts[0] if snippet else "", *parts[1:])

    def _file(self, artifact: Json) -> str:
        """The path of the file; where there is none any more, as a reader in the folder of the export would write it."""
        file = file_of(artifact, self._bases)
        if file not in self._files:
            folder = file_of(self._folder, {}) if self._folder else ""
            path = pathlib.Path(file)
            missing = bool(folder) and path.is_relative_to(folder) and not path.exists()
            self._files[file] = str(path.relative_to(folder)) if missing else file
        return self._files[file]


def _same(lines: Sequence[str], snippet: Sequence[str], column: int) -> bool:
    """Whether the text of `snippet` is in `lines` at a column (in UTF-16 code units)."""
    rest = lines[0][column_from_utf16(lines[0], column) - 1 :], *lines[1:]
    return list(rest[:-1]) == list(snippet[:-1]) and rest[-1].startswith(snippet[-1])


def _graph(graph: Json) -> Graph:
    return Graph(
        tuple(
            Node(_text(node["id"]), _text(node["label"]["text"]), _text(node.get("properties", {}).get("value", "")))
            for node in graph["nodes"]
        ),
        tuple((_text(edge["sourceNodeId"]), _text(edge["targetNodeId"])) for edge in graph.get("edges", ())),
        _text(graph["properties"]["blamed"]),
    )


def _event(notification: Json) -> Event:
    stage = _text(notification.get("descriptor", {}).get("id", "")).removeprefix("stage/")
    at = _time(notification["timeUtc"]).timestamp() if "timeUtc" in notification else 0.0
    return Event(_LEVELS[notification["level"]], stage, _text(notification["message"]["text"]), at)


def _options(options: Json) -> DiagnosticOptions:
    known = {field.name for field in dataclasses.fields(DiagnosticOptions)}
    values = {name: value for name, value in options.items() if name in known}
    if "levels" in values:
        values["levels"] = {rule: Level(level) for rule, level in values["levels"].items()}
    return DiagnosticOptions(**values)


def _time(text: str) -> datetime.datetime:
    # NOTE: Python 3.10 knows no Z.
    return datetime.datetime.fromisoformat(_text(text).removesuffix("Z") + "+00:00")
