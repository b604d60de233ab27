"""The log as SARIF 2.1.0, with the fields that its readers need: VS Code, GitHub code scanning, the multitool, sarif-tools, CI gates."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import functools
import linecache
import logging
import os
import pathlib
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping

import sarif_om

from . import encode, fingerprint
from .finding import SAME, Diagnostic
from .fix import Edit, Fix
from .graph import Graph
from .history import Added, Deprecated, Renamed
from .level import Level
from .location import Location, Region
from .log import PROFILE, Artifact, Event, Log
from .rule import Rule
from .source import column_to_utf16
from .text import summary

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_ROOT = "SRCROOT"
_SEVERITIES = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "recommendation"}
_DESCRIPTION_LIMIT = 1024
"""Characters of a rule's full description; GitHub code scanning refuses more."""
_SNIPPET_LIMIT = 10_000
"""Characters; a longer snippet, of generated code for example, is left out: it would be repeated in every finding there."""
_CONTEXT_LINES = 2


def write(log: Log, path: pathlib.Path) -> None:
    """Writes `log` to `path`, whole or not at all; makes the folders above it.

    Raises:
        OSError: It cannot be written; what was there before is still there.
    """
    data = to_json(log).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, data)


def replace(path: pathlib.Path, data: bytes) -> None:
    """Writes a file, whole or not at all.

    Raises:
        OSError: It cannot be written; what was there before is still there.
    """
    # NOTE: viewers watch a folder for `*.sarif` and must not meet half of one.
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def to_json(log: Log, base: pathlib.Path | None = None) -> str:
    """`log` as the text of a SARIF file.

    Args:
        log: What was reported.
        base: Source files below it are named relative to it. By default the root of the git checkout around the current folder, or that
            folder itself.
    """
    run = _Run(log, (base or _source_root()).absolute())
    return encode.to_json(sarif_om.SarifLog(schema_uri=SCHEMA, version="2.1.0", runs=[run.build()]))


def _source_root() -> pathlib.Path:
    here = pathlib.Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


class _Source:
    """A source file: its name, its lines, and what counts in them."""

    def __init__(self, file: str, base: pathlib.Path) -> None:
        self.file = file
        self.lines = _lines(file)
        self.location = _artifact_location(file, base)
        self.name: str = self.location.uri if self.location.uri_base_id else pathlib.PurePath(file).name
        """The same on every machine."""

    def hash_of(self, line: int) -> str | None:
        """GitHub's hash of a line; None where the file has no such line."""
        return self._hashes[line - 1] if 1 <= line <= len(self.lines) and line <= len(self._hashes) else None

    @functools.cached_property
    def _hashes(self) -> list[str]:
        try:
            # NOTE: GitHub reads UTF-8 whatever the file declares, and it matters whether the last line has an end.
            text = pathlib.Path(self.file).read_bytes().decode("utf-8", "replace")
        except (OSError, ValueError):
            text = "\n".join([*self.lines, ""])
        return fingerprint.line_hashes(text)

    def fit(self, region: Region) -> Region | None:
        """`region` with all its numbers, inside the file; None where the file has no such line: it is not the one that ran."""
        if not 1 <= region.line <= len(self.lines):
            return None
        first, last = region.line, min(max(region.line, region.last_line), len(self.lines))
        end = len(self.lines[last - 1]) + 1
        column = min(max(region.column or 1, 1), len(self.lines[first - 1]) + 1)
        end_column = min(max(region.end_column or end, 1), end) if last == region.last_line else end
        return Region(first, column, last, end if first == last and end_column < column else end_column)

    def text(self, fitted: Region) -> str:
        """The text of a region that `fit` returned."""
        lines = self.lines[fitted.line - 1 : fitted.last_line]
        lines[-1] = lines[-1][: (fitted.end_column or 1) - 1]
        lines[0] = lines[0][(fitted.column or 1) - 1 :]
        return "\n".join(lines)

    def region(self, fitted: Region) -> sarif_om.Region:
        """The numbers of a region that `fit` returned, columns in UTF-16 code units."""
        return sarif_om.Region(
            start_line=fitted.line,
            start_column=column_to_utf16(self.lines[fitted.line - 1], fitted.column or 1),
            end_line=fitted.last_line,
            end_column=column_to_utf16(self.lines[fitted.last_line - 1], fitted.end_column or 1),
        )

    def physical(self, region: Region | None, *, context: bool = False) -> sarif_om.PhysicalLocation:
        """The file, its region with the text there, and on request the lines around it."""
        physical = sarif_om.PhysicalLocation(artifact_location=self.location)
        if region is None:
            return physical
        if not self.lines:
            physical.region = _unseen(region)
            return physical
        fitted = self.fit(region if region.column else _without_indentation(region, self.lines))
        if fitted is None:
            return physical
        physical.region = self.region(fitted)
        physical.region.snippet = _snippet(self.text(fitted))
        if not region.column:
            physical.region.properties = {"wholeLine": True}
        around = self.fit(Region(max(1, fitted.line - _CONTEXT_LINES), 1, fitted.last_line + _CONTEXT_LINES))
        if context and around and around != fitted and (snippet := _snippet(self.text(around))):
            physical.context_region = sarif_om.Region(start_line=around.line, end_line=around.last_line, snippet=snippet)
        return physical


class _Run:
    """The one run of a log, with what its parts share."""

    def __init__(self, log: Log, base: pathlib.Path) -> None:
        self._log = log
        self._base = base
        self._rules = sorted({type(_rule(finding)) for finding in log.findings}, key=lambda rule: rule.id)
        self._rule_index = {rule: index for index, rule in enumerate(self._rules)}
        self._sources: dict[str, _Source] = {}
        self._seen: collections.Counter[str] = collections.Counter()

    def build(self) -> sarif_om.Run:
        log = self._log
        return sarif_om.Run(
            tool=sarif_om.Tool(
                driver=sarif_om.ToolComponent(
                    name=log.tool.name,
                    semantic_version=log.tool.version,
                    information_uri=log.tool.uri,
                    rules=[self._descriptor(rule) for rule in self._rules],
                )
            ),
            automation_details=sarif_om.RunAutomationDetails(id=f"onnx-export/{log.subject}/"),
            column_kind="utf16CodeUnits",
            original_uri_base_ids={_ROOT: sarif_om.ArtifactLocation(uri=_folder_uri(self._base))},
            invocations=[self._invocation()],
            artifacts=[self._artifact(artifact) for artifact in {artifact.path: artifact for artifact in log.artifacts}.values()] or None,
            results=[self._result(finding) for finding in log.findings],
            properties=_some(
                {
                    "onnxplain/subject": log.subject,
                    "onnxplain/stages": [
                        {"name": stage.name, "seconds": round(stage.seconds, 6), "completed": stage.completed} for stage in log.stages
                    ],
                    "onnxplain/environment": dict(log.environment),
                    "onnxplain/options": {name: _option(value) for name, value in log.options.changed().items()},
                    "onnxplain/profile": next((each.text for each in log.attachments if each.name == PROFILE), ""),
                }
            ),
        )

    def _descriptor(self, rule: type[Rule]) -> sarif_om.ReportingDescriptor:
        page, name = rule.page, rule.__name__
        description = f"{page.what}\n\n{page.why}"
        deprecated = next((event for event in rule.history if isinstance(event, Deprecated)), None)
        return sarif_om.ReportingDescriptor(
            id=rule.id,
            name=name,
            deprecated_names=[event.before for event in rule.history if isinstance(event, Renamed)] or None,
            short_description=sarif_om.MultiformatMessageString(text=page.summary),
            full_description=sarif_om.MultiformatMessageString(
                text=description if len(description) <= _DESCRIPTION_LIMIT else description[: _DESCRIPTION_LIMIT - 3] + "..."
            ),
            help=sarif_om.MultiformatMessageString(text=f"{description}\n\n{page.fix}", markdown=page.markdown),
            help_uri=f"{self._log.tool.uri.rstrip('/')}/blob/main/rules/CATALOG.md#{rule.id.lower()}-{name.lower()}",
            message_strings={"default": sarif_om.MultiformatMessageString(text=rule.numbered_message())},
            default_configuration=sarif_om.ReportingConfiguration(level=rule.level.value),
            properties=_some(
                {
                    "tags": [rule.chapter(), "onnx"],
                    "precision": rule.precision,
                    "problem.severity": _SEVERITIES[rule.level],
                    "revision": rule.revision(),
                    "since": next(event.version for event in rule.history if isinstance(event, Added)),
                    "arguments": list(rule.arguments()),
                    "everywhere": rule.everywhere or None,
                    "deprecated": deprecated and {"version": deprecated.version, "replacement": deprecated.replacement},
                }
            ),
        )

    def _invocation(self) -> sarif_om.Invocation:
        log = self._log
        notifications = [
            *(self._internal(finding) for finding in log.findings if finding.blocking and _rule(finding).chapter() == "internal"),
            *map(_notification, log.events),
        ]
        return sarif_om.Invocation(
            execution_successful=log.succeeded,
            exit_code=log.exit_code,
            exit_code_description=f"The export {'succeeded' if log.succeeded else 'failed'}: {summary(log)}",
            start_time_utc=_time(log.started),
            end_time_utc=_time(log.ended),
            command_line=log.command_line or None,
            working_directory=sarif_om.ArtifactLocation(uri=_folder_uri(pathlib.Path.cwd())),
            tool_execution_notifications=notifications or None,
        )

    def _internal(self, finding: Diagnostic) -> sarif_om.Notification:
        kind, _, message = finding.cause.partition(": ")
        return sarif_om.Notification(
            level="error",
            message=sarif_om.Message(text=str(finding.rule)),
            descriptor=_stage_descriptor(finding.stage),
            associated_rule=sarif_om.ReportingDescriptorReference(id=finding.rule.id, index=self._rule_index[type(_rule(finding))]),
            exception=sarif_om.Exception(kind=kind, message=message or None) if kind else None,
        )

    def _artifact(self, artifact: Artifact) -> sarif_om.Artifact:
        return sarif_om.Artifact(
            location=_artifact_location(str(artifact.path), self._base),
            length=artifact.size,
            roles=[artifact.role],
            hashes={"sha-256": artifact.sha256},
        )

    def _result(self, finding: Diagnostic) -> sarif_om.Result:
        rule, place = _rule(finding), finding.location
        fingerprints = self._fingerprints(finding)
        occurrences = finding.count if finding.count > 1 else None
        edits = {fix: edit for fix in finding.fixes if (edit := self._fix(fix))}
        return sarif_om.Result(
            rule_id=rule.id,
            rule_index=self._rule_index[type(rule)],
            level=finding.level.value,
            message=sarif_om.Message(text=str(rule), id="default", arguments=list(rule.argument_texts()) or None),
            guid=fingerprint.guid(self._log.subject, fingerprints[fingerprint.NAME]),
            locations=[self._location(place, message=place.message, context=True)] if place and _label(place) else None,
            related_locations=self._related(finding) or None,
            graphs=[_graph(finding.graph)] if finding.graph else None,
            code_flows=self._code_flows(finding),
            stacks=self._stacks(finding),
            fixes=list(edits.values()) or None,
            occurrence_count=occurrences,
            partial_fingerprints=fingerprints,
            suppressions=list(self._suppressions(finding)),
            properties=_some(
                {
                    "stage": finding.stage,
                    "blocking": finding.blocking,
                    "occurrences": occurrences,
                    "notes": list(finding.notes),
                    "cause": finding.cause,
                    "fixes": [
                        _some(
                            {
                                "description": fix.description,
                                "confidence": fix.confidence.value,
                                "snippet": fix.snippet,
                                "edits": list(edits).index(fix) if fix in edits else None,
                            }
                        )
                        for fix in finding.fixes
                    ],
                }
            ),
        )

    def _fingerprints(self, finding: Diagnostic) -> dict[str, str]:
        """GitHub's for the line, where there is one, and ours, which stays when lines move. What ours cannot tell apart is counted."""
        rule, place = _rule(finding), finding.location or Location("")
        source = self._source(place.file) if place.file else None
        digest = fingerprint.of_finding(rule, source.name if source else "", place)
        self._seen[digest] += 1
        line_hash = source.hash_of(place.line) if source and place.line else None
        return {**({"primaryLocationLineHash": line_hash} if line_hash else {}), fingerprint.NAME: f"{digest}:{self._seen[digest]}"}

    def _related(self, finding: Diagnostic) -> list[sarif_om.Location]:
        others = [place for place in dict.fromkeys(finding.occurrences) if place != finding.location]
        told = [*(place.saying(SAME) for place in others), *filter(_label, finding.related)]
        return [self._location(place, id=number, message=_label(place)) for number, place in enumerate(told, 1)]

    def _code_flows(self, finding: Diagnostic) -> list[sarif_om.CodeFlow] | None:
        # NOTE: VS Code shows the first thread flow of the first code flow, and level 0 outside of its panel.
        steps = [
            sarif_om.ThreadFlowLocation(location=self._location(step, message=_label(step)), nesting_level=1)
            for step in filter(_label, finding.code_flow)
        ]
        if not steps:
            return None
        return [sarif_om.CodeFlow(thread_flows=[sarif_om.ThreadFlow(locations=steps)])]

    def _stacks(self, finding: Diagnostic) -> list[sarif_om.Stack] | None:
        stack = filter(_label, reversed(finding.stack))
        frames = [sarif_om.StackFrame(location=self._location(frame, message=frame.message)) for frame in stack]
        if not frames:
            return None
        # NOTE: VS Code drops a stack without a message.
        return [sarif_om.Stack(message=sarif_om.Message(text="The Python stack, innermost call first."), frames=frames)]

    def _suppressions(self, finding: Diagnostic) -> Iterator[sarif_om.Suppression]:
        # NOTE: no comment can accept what stopped the export: a reader that hides what is suppressed would show a failure without cause.
        if finding.suppression and not finding.blocking:
            yield sarif_om.Suppression(
                kind="inSource",
                state="accepted",
                justification=finding.suppression.justification or None,
                location=self._location(finding.suppression.comment),
            )

    def _fix(self, fix: Fix) -> sarif_om.Fix | None:
        """The edits of `fix`; None if it has none, or if one of them does not fit its file."""
        changes: dict[str, list[sarif_om.Replacement]] = {}
        for edit in fix.edits:
            replacement = self._replacement(edit)
            if replacement is None:
                return None
            changes.setdefault(edit.file, []).append(replacement)
        if not changes:
            return None
        return sarif_om.Fix(
            description=sarif_om.Message(text=f"{fix.description.rstrip('.')} ({fix.confidence.value})."),
            artifact_changes=[
                sarif_om.ArtifactChange(artifact_location=self._source(file).location, replacements=replacements)
                for file, replacements in changes.items()
            ],
            properties={"confidence": fix.confidence.value},
        )

    def _replacement(self, edit: Edit) -> sarif_om.Replacement | None:
        source = self._source(edit.file)
        region = source.fit(edit.region)
        if region is None:
            return None
        replaced, inserted = source.text(region), edit.replacement
        indentation = replaced[: len(replaced) - len(replaced.lstrip(" \t"))]
        if inserted.startswith(indentation):
            # NOTE: VS Code moves the start of an edit past the line's indentation, so what stays of it must not be in the edit.
            inserted = inserted.removeprefix(indentation)
            region = dataclasses.replace(region, column=(region.column or 1) + len(indentation))
        deleted = source.region(region)
        deleted.snippet = _snippet(source.text(region))
        # NOTE: an insertion deletes nothing, so no snippet tells where it goes.
        lines = "\n".join(source.lines[region.line - 1 : region.last_line])
        return sarif_om.Replacement(
            deleted_region=deleted,
            inserted_content=sarif_om.ArtifactContent(text=inserted) if inserted else None,
            properties={"lines": lines} if 0 < len(lines) <= _SNIPPET_LIMIT else None,
        )

    def _location(self, place: Location, *, id: int = -1, message: str = "", context: bool = False) -> sarif_om.Location:
        return sarif_om.Location(
            id=id,
            message=sarif_om.Message(text=message) if message else None,
            physical_location=self._source(place.file).physical(place.region, context=context) if place.file else None,
            logical_locations=[
                sarif_om.LogicalLocation(fully_qualified_name=name, kind=kind)
                for name, kind in ((place.module, "module"), (place.function, "function"))
                if name
            ]
            or None,
        )

    def _source(self, file: str) -> _Source:
        found = self._sources.get(file)
        if found is None:
            found = self._sources[file] = _Source(file, self._base)
        return found


def _rule(finding: Diagnostic) -> Rule:
    if not isinstance(finding.rule, Rule):
        raise TypeError("a log that was read lacks what SARIF needs; the file that it comes from is that log")
    return finding.rule


def _lines(file: str) -> list[str]:
    try:
        return [line.rstrip("\r\n") for line in linecache.getlines(file)]
    except ValueError:
        # NOTE: what linecache says to a name that no file can have, with NUL or half a surrogate pair.
        return []


def _artifact_location(file: str, base: pathlib.Path) -> sarif_om.ArtifactLocation:
    """`file` relative to the source root if it lies below it, else as an absolute URI."""
    if not _is_path(file):
        return sarif_om.ArtifactLocation(uri=urllib.parse.quote(file, errors="replace"))
    path = pathlib.Path(file).absolute()
    if ".." in path.parts:
        path = path.resolve()
    for form, root in ((path, base), (path.resolve(), base.resolve())):
        if form.is_relative_to(root):
            return sarif_om.ArtifactLocation(uri=urllib.parse.quote(os.fsencode(form.relative_to(root).as_posix())), uri_base_id=_ROOT)
    return sarif_om.ArtifactLocation(uri=path.as_uri())


def _is_path(file: str) -> bool:
    """False for Python's names of source that is in no file, such as `<stdin>`, and for what no file can be called."""
    try:
        os.fsencode(file)
    except UnicodeEncodeError:
        return False
    return not file.startswith("<") and "\0" not in file


def _folder_uri(folder: pathlib.Path) -> str:
    return folder.as_uri().rstrip("/") + "/"


def _unseen(region: Region) -> sarif_om.Region | None:
    """`region` of a file whose text is not at hand: its lines, as columns in UTF-16 are unknown."""
    return sarif_om.Region(start_line=region.line, end_line=max(region.line, region.last_line)) if region.line >= 1 else None


def _without_indentation(region: Region, lines: list[str]) -> Region:
    text = lines[region.line - 1] if 1 <= region.line <= len(lines) else ""
    return Region(region.line, len(text) - len(text.lstrip()) + 1, region.end_line, region.end_column)


def _snippet(text: str) -> sarif_om.ArtifactContent | None:
    return sarif_om.ArtifactContent(text=text) if 0 < len(text) <= _SNIPPET_LIMIT else None


def _graph(graph: Graph) -> sarif_om.Graph:
    # NOTE: none of the known readers shows graphs; `onnxplain report` does.
    return sarif_om.Graph(
        description=sarif_om.Message(text=f"The graph around {graph.blamed}."),
        nodes=[
            sarif_om.Node(id=node.id, label=sarif_om.Message(text=node.label), properties=_some({"value": node.value}) or None)
            for node in graph.nodes
        ],
        edges=[
            sarif_om.Edge(id=str(number), source_node_id=source, target_node_id=target)
            for number, (source, target) in enumerate(graph.edges, 1)
        ],
        properties={"blamed": graph.blamed},
    )


def _option(value: int | bool | Mapping[str, Level] | tuple[str, ...]) -> object:
    """An option as JSON."""
    if isinstance(value, Mapping):
        return {rule: level.value for rule, level in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _notification(event: Event) -> sarif_om.Notification:
    level = "error" if event.level >= logging.ERROR else "warning" if event.level >= logging.WARNING else "note"
    return sarif_om.Notification(
        level=level,
        message=sarif_om.Message(text=event.text),
        descriptor=_stage_descriptor(event.stage),
        time_utc=_time(datetime.datetime.fromtimestamp(event.at, datetime.timezone.utc)),
    )


def _stage_descriptor(stage: str) -> sarif_om.ReportingDescriptorReference | None:
    return sarif_om.ReportingDescriptorReference(id=f"stage/{stage}") if stage else None


def _label(place: Location) -> str:
    """The most telling thing that is known of `place`; empty if nothing is."""
    return place.message or place.snippet or place.function or place.module or place.file


def _time(time: datetime.datetime) -> str:
    return time.astimezone(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _some(values: dict[str, object]) -> dict[str, object]:
    """The values that say something: no None, no empty text or list."""
    return {name: value for name, value in values.items() if isinstance(value, bool | int) or value}
