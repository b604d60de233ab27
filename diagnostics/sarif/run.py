"""The one run of a log: tool, invocation, files, and the findings that become results."""

from __future__ import annotations

import dataclasses
import datetime
import logging
import pathlib
from collections.abc import Mapping, Sequence

import sarif_om

from onnxplain.diagnostics import git_checkout
from onnxplain.diagnostics.diagnostic import Diagnostic
from onnxplain.diagnostics.level import Level
from onnxplain.diagnostics.location import Location
from onnxplain.diagnostics.log import DIFFERENCES, KILLED, MEMORY, PROFILE, Artifact, Event, Log
from onnxplain.diagnostics.privacy import BASES, ROOT, Privacy
from onnxplain.diagnostics.sarif_file import SCHEMA

from .descriptors import descriptor, some
from .places import Sources, artifact_location, folder_location
from .results import Results, rule_of

_LIMITS = {False: 1_000, True: 5_000}
"""`github` to the most results of a run. VS Code's panel takes 3 s for 1,000 results and 26 s for 10,000. GitHub keeps 5,000."""


@dataclasses.dataclass(frozen=True)
class Built:
    """A SARIF log, its graphs, and what it omits.

    Attributes:
        log: The log.
        graphs: The text of the graphs that it refers to, by name.
        results: The number of its results.
        left_out: What it omits, one sentence each.
    """

    log: sarif_om.SarifLog
    graphs: Mapping[str, str]
    results: int
    left_out: tuple[str, ...]


def build(log: Log, privacy: Privacy, folder: pathlib.Path | None, *, github: bool, limit: int | None = None) -> Built:
    """The SARIF log of `log`.

    Args:
        log: The log.
        privacy: What the SARIF log tells of the machine.
        folder: The future folder of the graphs. Without it no step of a code flow points to a graph.
        github: Whether the log is for GitHub code scanning.
        limit: The most results that it may have. The worst findings come first.
    """
    sources = Sources(privacy)
    graphs = {} if github or folder is None else {graph.name: (folder / f"{graph.name}.txt", graph) for graph in log.graphs}
    for file, graph in graphs.values():
        sources.add(str(file), graph.text)
    run = _Run(log, sources, Results(log.subject, sources, graphs, github=github), github=github)
    made = run.build(_LIMITS[github] if limit is None else limit)
    return Built(
        sarif_om.SarifLog(schema_uri=SCHEMA, version="2.1.0", runs=[made]),
        {name: graph.text for name, (_, graph) in graphs.items()},
        len(made.results),
        tuple(run.left_out_told),
    )


class _Run:
    """The one run of a log."""

    def __init__(self, log: Log, sources: Sources, results: Results, *, github: bool) -> None:
        self._log = log
        self._sources = sources
        self._privacy = sources.privacy
        self._results = results
        self._github = github
        self._left_out: dict[Level, int] = {}
        self.left_out_told: list[str] = []

    def build(self, limit: int) -> sarif_om.Run:
        log, private = self._log, self._privacy.text
        chosen = self._chosen(limit)
        results = [self._results.result(finding, place, own) for finding, place, own in chosen]
        rules = sorted(self._results.messages, key=lambda rule: rule.id)
        indices = {rule.id: index for index, rule in enumerate(rules)}
        for result in results:
            result.rule_index = indices[result.rule_id]
        files = {artifact.path: artifact for artifact in log.artifacts}.values()
        # NOTE: GitHub code scanning ignores them.
        artifacts = [] if self._github else list(map(self._artifact, files))
        # NOTE: this must precede `logical_locations` and the bases, because stacks may name further modules and files.
        invocation = self._invocation([finding for finding, _, _ in chosen], indices)
        bases = {ROOT, *self._sources.bases(), *(artifact.location.uri_base_id for artifact in artifacts)}
        return sarif_om.Run(
            tool=sarif_om.Tool(
                driver=sarif_om.ToolComponent(
                    name=log.tool.name,
                    semantic_version=log.tool.version,
                    information_uri=log.tool.uri,
                    rules=[descriptor(rule, log.tool, self._results.messages[rule]) for rule in rules],
                )
            ),
            automation_details=sarif_om.RunAutomationDetails(id=f"onnx-export/{log.subject}/"),
            version_control_provenance=self._provenance(),
            column_kind="utf16CodeUnits",
            original_uri_base_ids={
                base: sarif_om.ArtifactLocation(description=sarif_om.Message(text=text)) for base, text in BASES.items() if base in bases
            },
            invocations=[invocation],
            artifacts=artifacts or None,
            logical_locations=self._modules(),
            results=results,
            properties=some(
                {
                    "onnxplain/subject": log.subject,
                    "onnxplain/family": log.family,
                    "onnxplain/sarifProfile": "github" if self._github else "full",
                    "onnxplain/leftOut": {level.value: self._left_out[level] for level in Level if level in self._left_out},
                    "onnxplain/unfinished": log.unfinished,
                    "onnxplain/stages": [
                        {"name": stage.name, "seconds": round(stage.seconds, 6), "completed": stage.completed} for stage in log.stages
                    ],
                    "onnxplain/environment": dict(log.environment),
                    "onnxplain/options": {name: _option(value) for name, value in log.options.changed().items()},
                    "onnxplain/memory": next((private(each.text) for each in log.attachments if each.name == MEMORY), ""),
                    "onnxplain/differences": next((private(each.text) for each in log.attachments if each.name == DIFFERENCES), ""),
                    "onnxplain/profile": next((private(each.text) for each in log.attachments if each.name == PROFILE), ""),
                }
            ),
        )

    def _chosen(self, limit: int) -> list[tuple[Diagnostic, Location | None, str]]:
        """The findings that become results, worst first, each with its place and its fingerprint. Counts the findings that it omits."""
        log = self._log
        chosen: list[tuple[Diagnostic, Location | None, str]] = []
        without_place: list[Diagnostic] = []
        for finding in log.findings:
            own = self._results.fingerprint(finding)
            finding = self._privacy.finding(finding)
            if self._github and finding.suppression is not None and not finding.blocking:
                continue
            place = self._place(finding) if self._github else finding.location
            if self._github and place is None:
                without_place.append(finding)
            else:
                chosen.append((finding, place, own))
        cut = [finding for finding, _, _ in chosen[limit:] if finding.suppression is None or finding.blocking]
        reason = "GitHub code scanning keeps" if self._github else "viewers are slow beyond"
        self._leave_out(without_place, "they have no place in the repository")
        self._leave_out(cut, f"{reason} {limit:,} findings per log")
        return chosen[:limit]

    def _leave_out(self, findings: Sequence[Diagnostic], reason: str) -> None:
        if not findings:
            return
        counts = {level: sum(finding.level is level for finding in findings) for level in Level}
        for level, count in counts.items():
            if count:
                self._left_out[level] = self._left_out.get(level, 0) + count
        told = ", ".join(f"{count:,} of level {level.value}" for level, count in counts.items() if count)
        self.left_out_told.append(f"This log omits {len(findings):,} findings ({told}): {reason}.")

    def _place(self, finding: Diagnostic) -> Location | None:
        """The place in the repository that is nearest to the finding."""
        candidates = (finding.location, *reversed(finding.stack), *finding.related, *self._log.places)
        return next((place for place in candidates if self._sources.has(place)), None)

    def _provenance(self) -> list[sarif_om.VersionControlDetails] | None:
        found = git_checkout.read(self._privacy.root)
        # NOTE: VS Code throws on an empty list.
        if found is None:
            return None
        details = sarif_om.VersionControlDetails(
            repository_uri=found.repository,
            revision_id=found.revision,
            branch=found.branch or None,
            mapped_to=sarif_om.ArtifactLocation(uri_base_id=ROOT),
        )
        return [details]

    def _modules(self) -> list[sarif_om.LogicalLocation] | None:
        """The submodules that places name, as a tree below the model."""
        indices = self._results.modules
        if len(indices) == 1:
            return None
        model = sarif_om.LogicalLocation(name=self._log.subject, fully_qualified_name=self._log.subject, kind="type")
        return [
            model,
            *(
                sarif_om.LogicalLocation(
                    name=path.rpartition(".")[2], fully_qualified_name=path, kind="module", parent_index=indices[path.rpartition(".")[0]]
                )
                for path in list(indices)[1:]
            ),
        ]

    def _invocation(self, findings: Sequence[Diagnostic], indices: Mapping[str, int]) -> sarif_om.Invocation:
        log = self._log
        notifications = [
            *(self._internal(finding, indices) for finding in findings if finding.blocking and rule_of(finding).chapter() == "internal"),
            *(_notification(dataclasses.replace(event, text=self._privacy.text(event.text))) for event in log.events),
            *(_notification(Event(logging.WARNING, "sarif", text, log.ended.timestamp())) for text in self.left_out_told),
        ]
        ended = "succeeded" if log.succeeded else "was cut short" if log.unfinished else "failed"
        return sarif_om.Invocation(
            execution_successful=log.succeeded,
            # NOTE: nobody knows the exit code before the process ends.
            exit_code=None if log.unfinished else log.exit_code,
            exit_code_description=f"The export {ended}: {log.summary}",
            exit_signal_name=log.unfinished if log.unfinished.startswith("SIG") else None,
            start_time_utc=_time(log.started),
            end_time_utc=None if log.unfinished == KILLED else _time(log.ended),
            command_line=self._privacy.text(log.command_line) or None,
            # NOTE: GitHub code scanning would take it for the root of the checkout.
            working_directory=None if log.folder is None or self._github else folder_location(log.folder, self._privacy),
            tool_execution_notifications=notifications or None,
        )

    def _internal(self, finding: Diagnostic, indices: Mapping[str, int]) -> sarif_om.Notification:
        kind, _, message = finding.cause.partition(": ")
        exception = sarif_om.Exception(
            kind=kind, message=message or None, stack=None if self._github else self._results.stack(finding.stack)
        )
        return sarif_om.Notification(
            level="error",
            message=sarif_om.Message(text=str(finding.rule)),
            descriptor=_stage_descriptor(finding.stage),
            associated_rule=sarif_om.ReportingDescriptorReference(id=finding.rule.id, index=indices[finding.rule.id]),
            exception=exception if kind else None,
        )

    def _artifact(self, artifact: Artifact) -> sarif_om.Artifact:
        return sarif_om.Artifact(
            location=artifact_location(str(artifact.path), self._privacy),
            length=artifact.size,
            roles=[artifact.role],
            hashes={"sha-256": artifact.sha256},
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


def _time(time: datetime.datetime) -> str:
    return time.astimezone(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
