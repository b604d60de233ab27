"""What the page shows, as data: texts that are fit to be shown, and each finding once."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Generic, TypeVar

from onnxplain.diagnostics import markdown
from onnxplain.diagnostics.diagnostic import Diagnostic
from onnxplain.diagnostics.differences import curve, differences_of, height, layers
from onnxplain.diagnostics.display import describe, marked, shortened, visible, visible_lines
from onnxplain.diagnostics.fix import Edit, Fix
from onnxplain.diagnostics.fleet import Cause, Change, Cluster, Fleet, Model, Outcome
from onnxplain.diagnostics.graph import Graph
from onnxplain.diagnostics.location import Location
from onnxplain.diagnostics.log import DIFFERENCES, PICTURE, PROFILE, REPRO, Log

_Value = TypeVar("_Value")
_TEXT_LIMIT = 8_000
_SHORT_TEXT_LIMIT = 1_000
"""Characters of a cause, a stack or a note, on a page of few and of many models: a browser has to open it at once."""
_CELL_LIMIT = 200
_PLACE_LIMIT = 10
_STACK_LIMIT = 40
_DETAILED = 20
"""Up to this number of models, the page shows the steps and the profile of each."""


@dataclasses.dataclass(frozen=True)
class Page:
    """Everything that the page shows. The indices of its parts are places in `findings`, `clusters`, `families` and `settings`."""

    verdict: str
    trend: str
    told: str
    counts: dict[str, int]
    changes: dict[str, int]
    models: list[ModelData]
    clusters: list[ClusterData]
    families: list[FamilyData]
    findings: list[FindingData]
    settings: list[str]


@dataclasses.dataclass(frozen=True)
class ModelData:
    """A model and its export."""

    name: str
    family: int
    outcome: str
    change: str
    verdict: str
    summary: str
    when: str
    findings: list[int]
    clusters: list[int]
    files: list[str]
    command: str
    setting: int
    stages: list[tuple[str, float, bool]]
    differences: DifferencesData | None
    folds: list[tuple[str, str]]
    picture: str


@dataclasses.dataclass(frozen=True)
class DifferencesData:
    """How far a model is from eager PyTorch behind its operators: a curve of logarithms to the base 10, and a table of layers.

    Each point is the difference, the tolerance and, if the operator is to blame, its name and line.
    """

    points: list[tuple[float, float, str]]
    layers: list[tuple[str, ...]]


@dataclasses.dataclass(frozen=True)
class ClusterData:
    """Findings with one cause: the smallest model if known, how many models they block and touch, and one of them, with a script if any."""

    rule: str
    title: str
    level: str
    where: str
    smallest: str
    blocked: int
    touched: int
    new: bool
    finding: int


@dataclasses.dataclass(frozen=True)
class FamilyData:
    """A family of models: how many it has, how many of them failed, and the cluster that blocks the most of them or -1."""

    name: str
    models: int
    failed: int
    cluster: int


@dataclasses.dataclass(frozen=True)
class FindingData:
    """A finding. Two models may share it."""

    rule: str
    title: str
    level: str
    message: str
    place: str
    line: int | None
    code: tuple[str, str, str]
    places: list[str]
    notes: list[str]
    fixes: list[FixData]
    graph: GraphData | None
    folds: list[tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class FixData:
    """A way to fix a finding. Each edit is its place, and the lines before and after it."""

    confidence: str
    description: str
    snippet: str
    edits: list[tuple[str, list[str], list[str]]]


@dataclasses.dataclass(frozen=True)
class GraphData:
    """The graph around a finding: the lines of each node, edges between their indices, the index of the node to mark or -1."""

    nodes: list[list[str]]
    edges: list[tuple[int, int]]
    marked: int


class _Pool(Generic[_Value]):
    """A list that has each of its values once."""

    def __init__(self) -> None:
        self.values: list[_Value] = []
        self._places: dict[str, int] = {}

    def place(self, value: _Value) -> int:
        """The index of `value`, which is added if need be."""
        key = json.dumps(value, default=vars)
        if key not in self._places:
            self._places[key] = len(self.values)
            self.values.append(value)
        return self._places[key]


def page_of(fleet: Fleet) -> Page:
    """The page on `fleet`."""
    findings, settings, examples = _Pool[FindingData](), _Pool[str](), dict[Cause, int]()
    places = {cluster.cause: index for index, cluster in enumerate(fleet.clusters)}
    families = {family.name: index for index, family in enumerate(fleet.families)}
    detailed = len(fleet.models) <= _DETAILED
    limit = _TEXT_LIMIT if detailed else _SHORT_TEXT_LIMIT

    def placed(model: Model) -> Iterator[int]:
        script = next((each.text for each in model.log.attachments if each.name == REPRO), "")
        for finding, cause in zip(model.findings, model.causes, strict=True):
            reproduced, script = (script, "") if finding.fails else ("", script)
            index = findings.place(_finding(finding, limit, reproduced))
            if reproduced:
                examples.setdefault(cause, index)
            yield index

    models = [
        _model(
            model,
            family=families.get(model.log.family, -1),
            findings=[*placed(model)],
            clusters=list(dict.fromkeys(places[cause] for cause in model.causes)),
            setting=settings.place(visible_lines(markdown.setting(model.log))),
            detailed=detailed,
        )
        for model in fleet.models
    ]
    for cluster in fleet.clusters:
        if cluster.cause not in examples:
            examples[cluster.cause] = findings.place(_finding(cluster.example, limit))
    clusters = [_cluster(cluster, examples[cluster.cause]) for cluster in fleet.clusters]
    return Page(
        verdict=visible(fleet.verdict),
        trend=visible(fleet.trend),
        told=", ".join(sorted({visible(f"{model.log.tool.name} {model.log.tool.version}") for model in fleet.models})),
        counts={outcome.value: fleet.count(outcome) for outcome in Outcome},
        changes={} if fleet.gone is None else {change.value: fleet.count(change) for change in Change if change is not Change.NONE},
        models=models,
        clusters=clusters,
        families=[
            FamilyData(visible(each.name), each.models, each.failed, -1 if each.cause is None else places[each.cause])
            for each in fleet.families
        ],
        findings=findings.values,
        settings=settings.values,
    )


def _model(model: Model, *, family: int, findings: list[int], clusters: list[int], setting: int, detailed: bool) -> ModelData:
    log = model.log
    folds = []
    if detailed and log.events:
        folds.append((f"Steps ({len(log.events)})", _block(markdown.steps(log.events))))
    if detailed:
        folds += [("Profile", _block(each.text)) for each in log.attachments if each.name == PROFILE]
    return ModelData(
        name=visible(log.subject),
        family=family,
        outcome=model.outcome.value,
        change=model.change.value,
        verdict=visible(log.verdict),
        summary=log.summary,
        when=log.started.strftime("%Y-%m-%d %H:%M UTC"),
        findings=findings,
        clusters=clusters,
        files=[visible(f"{artifact.path}, {artifact.size:,} bytes") for artifact in log.artifacts],
        command=_block(log.command_line),
        setting=setting,
        stages=[
            (visible(each.name), round(each.seconds, 3), each.completed)
            for each in log.stages
            if each.seconds >= markdown.SHORTEST or not each.completed
        ],
        differences=_differences(log) if detailed else None,
        folds=folds,
        picture=next((each.text for each in log.attachments if each.name == PICTURE), "") if detailed else "",
    )


def _differences(log: Log) -> DifferencesData | None:
    rows = differences_of(next((each.text for each in log.attachments if each.name == DIFFERENCES), ""))
    if not rows:
        return None
    points = [
        (
            round(height(row.difference, rows), 2),
            round(height(row.tolerance, rows), 2),
            visible(f"{row.rule} {row.operator}{f', line {row.line}' if row.line else ''}") if row.rule else "",
        )
        for row in curve(rows)
    ]
    table = [
        (
            visible(shortened(each.module, _CELL_LIMIT)) or "outside of modules",
            str(each.operators),
            *(f"{number:.3g}" for number in (each.difference, each.own, each.tolerance)),
            visible(shortened(", ".join(each.rules), _CELL_LIMIT)),
        )
        for each in layers(rows)
    ]
    return DifferencesData(points, table)


def _cluster(cluster: Cluster, finding: int) -> ClusterData:
    example = cluster.example
    return ClusterData(
        rule=visible(example.rule.id),
        title=visible(example.rule.title()),
        level=example.level.value,
        where=visible(cluster.cause[1]),
        smallest=visible(cluster.smallest),
        blocked=len(cluster.blocked),
        touched=len(cluster.touched),
        new=cluster.new,
        finding=finding,
    )


def _finding(finding: Diagnostic, limit: int, script: str = "") -> FindingData:
    place = finding.location
    others = [_related(each) for each in (*finding.occurrences[1:], *finding.related)]
    left_out = [f"And at {len(others) - _PLACE_LIMIT:,} more places"] if len(others) > _PLACE_LIMIT else []
    folds = [("A script that fails alike", _block(script))] if script else []
    if len(finding.stack) > 1:
        folds.append(("Call stack, innermost last", _block(markdown.stack(finding.stack[-_STACK_LIMIT:]), limit)))
    folds += [(title, _block(text, limit)) for title, text in markdown.causes(finding.cause)]
    return FindingData(
        rule=visible(finding.rule.id),
        title=visible(finding.rule.title()),
        level=finding.level.value,
        message=visible(finding.message),
        place=visible(describe(place)) if place else "",
        line=place.line if place else None,
        code=marked(place) if place else ("", "", ""),
        places=[*others[:_PLACE_LIMIT], *left_out],
        notes=[_block(note, limit) for note in finding.notes],
        fixes=list(map(_fix, finding.fixes)),
        graph=_graph(finding.graph) if finding.graph else None,
        folds=folds,
    )


def _related(place: Location) -> str:
    return visible(f"{place.message}: {describe(place)}" if place.message else f"Also at {describe(place)}")


def _fix(fix: Fix) -> FixData:
    return FixData(fix.confidence.value, visible(fix.description), _block(fix.snippet), [] if fix.snippet else list(map(_edit, fix.edits)))


def _edit(edit: Edit) -> tuple[str, list[str], list[str]]:
    before, after = (list(map(visible, lines)) for lines in edit.lines())
    return visible(f"{edit.file}:{edit.region.line}"), before, after


def _graph(graph: Graph) -> GraphData:
    places = {node.id: index for index, node in enumerate(graph.nodes)}
    return GraphData(
        [[visible(text) for text in markdown.node_texts(node)] for node in graph.nodes],
        [(places[source], places[target]) for source, target in graph.edges if source in places and target in places],
        places.get(graph.blamed, -1),
    )


def _block(text: str, limit: int = _TEXT_LIMIT) -> str:
    return visible_lines(shortened(text, limit))
