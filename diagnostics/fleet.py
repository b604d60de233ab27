"""The logs of many exports together: findings with one cause, and what changed since an earlier run."""

from __future__ import annotations

import collections
import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence

from .diagnostic import Diagnostic
from .disclosed import disclosed
from .display import describe, shown_path
from .level import Level
from .log import Log

Cause = tuple[str, str]
"""What findings with one cause share: the id of the rule, and what `shared_cause` tells."""


class Outcome(enum.Enum):
    """How an export ended."""

    FAILED = "failed"
    WARNED = "exported with warnings"
    EXPORTED = "exported"


class Change(enum.Enum):
    """How an export differs from that of the same model in an earlier run."""

    NONE = ""
    BROKEN = "newly failing"
    FIXED = "fixed"
    NEW = "new"


@dataclasses.dataclass(frozen=True)
class Model:
    """An exported model.

    Attributes:
        log: Its log, with what reports may tell of the machine.
        findings: Its active findings, likewise.
        causes: The cause of each finding.
        outcome: How its export ended.
        change: How that differs from the earlier run.
    """

    log: Log
    findings: tuple[Diagnostic, ...]
    causes: tuple[Cause, ...]
    outcome: Outcome
    change: Change


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The findings with one cause.

    Attributes:
        cause: What they share.
        example: The first of them; with known sizes, that of the smallest model.
        smallest: The smallest of the models that it blocks, else of those that have it; empty if the sizes are not known.
        blocked: Names of the models whose export fails because of them.
        touched: Names of all models that have them, the blocked ones first.
        new: Whether the earlier run has none of them. False without an earlier run.
    """

    cause: Cause
    example: Diagnostic
    smallest: str
    blocked: tuple[str, ...]
    touched: tuple[str, ...]
    new: bool


@dataclasses.dataclass(frozen=True)
class Family:
    """Models that are alike.

    Attributes:
        name: Its name.
        models: How many models it has.
        failed: How many of them were not exported.
        cause: The cause that blocks the most of them; None if all were exported.
    """

    name: str
    models: int
    failed: int
    cause: Cause | None


@dataclasses.dataclass(frozen=True)
class Fleet:
    """Many exports.

    Attributes:
        models: The models, those that failed first, else in order.
        clusters: The causes of their findings, those that block the most models first.
        families: The families of the models, those in which the most fail first. None if each model has another.
        gone: Causes of the earlier run that no finding has any more; None without an earlier run.
        missing: Models of the earlier run that this one lacks.
    """

    models: tuple[Model, ...]
    clusters: tuple[Cluster, ...]
    families: tuple[Family, ...]
    gone: tuple[Cause, ...] | None
    missing: tuple[str, ...]

    def count(self, kind: Outcome | Change) -> int:
        """The number of models with this outcome or change."""
        return sum(kind in (model.outcome, model.change) for model in self.models)

    @property
    def verdict(self) -> str:
        """The outcome of all exports: `870 of 1,000 models exported, 12 of them with warnings`. Of one export, that of its log."""
        if len(self.models) == 1:
            return self.models[0].log.verdict
        warned, failed = self.count(Outcome.WARNED), self.count(Outcome.FAILED)
        told = f"{len(self.models) - failed:,} of {len(self.models):,} models exported"
        return f"{told}, {warned:,} of them with warnings" if warned else told

    @property
    def trend(self) -> str:
        """What changed since the earlier run, as a sentence; empty without one."""
        if self.gone is None:
            return ""
        new = sum(cluster.new for cluster in self.clusters)
        counts = {
            "fixed": self.count(Change.FIXED),
            "newly failing": self.count(Change.BROKEN),
            "new": self.count(Change.NEW),
            "missing": len(self.missing),
        }
        models = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "none changed"
        return f"Since the earlier run: models: {models}; causes: {new:,} new, {len(self.gone):,} gone."


def gather(logs: Iterable[Log], against: Iterable[Log] | None = None, sizes: Mapping[str, int] | None = None) -> Fleet:
    """Groups the findings of `logs` by their causes, and compares with the logs `against` of an earlier run, by the names of the models.

    Args:
        logs: The logs, each of a model with another name.
        against: The logs of an earlier run.
        sizes: The places of the models, by name, in an order from the smallest to the largest.
    """
    before = {model.log.subject: model for model in _models(against or (), {})}
    models = sorted(_models(logs, None if against is None else before), key=lambda model: model.outcome is not Outcome.FAILED)
    known = {cause for model in before.values() for cause in model.causes}
    clusters = _clusters(models, known if against is not None else None, sizes)
    present, names = {cluster.cause for cluster in clusters}, {model.log.subject for model in models}
    return Fleet(
        tuple(models),
        tuple(clusters),
        tuple(_families(models)),
        None if against is None else tuple(sorted(known - present)),
        tuple(sorted(before.keys() - names)),
    )


def cause_of(finding: Diagnostic) -> Cause:
    """What a finding shares with those of other models that have the same cause."""
    place = finding.location
    line = "" if place is None or not place.file else f"{shown_path(place.file)}:{place.line}" if place.line else describe(place)
    arguments = dict(zip(finding.rule.arguments(), finding.rule.argument_texts(), strict=True))
    return finding.rule.id, shared_cause(arguments, line, finding.message)


def shared_cause(arguments: Mapping[str, str], line: str, message: str) -> str:
    """What findings of one rule share if they have the same cause: an operator, what ended a process and in which stage, or a line.

    Args:
        arguments: The arguments of the rule, by their names.
        line: The file and line, if there is one.
        message: The message, for findings that have nothing else.
    """
    if "cause" in arguments:
        # NOTE: at which line a limit ends a process is chance. The cause of a crash names its function.
        return ", in the stage ".join(each for each in (arguments["cause"], arguments.get("stage")) if each)
    return arguments.get("operator") or line or message


def _models(logs: Iterable[Log], before: dict[str, Model] | None) -> list[Model]:
    models = []
    for log, findings in disclosed(logs):
        outcome = _outcome(log)
        change = Change.NONE if before is None else _change(outcome, before.get(log.subject))
        models.append(Model(log, findings, tuple(map(cause_of, findings)), outcome, change))
    return models


def _outcome(log: Log) -> Outcome:
    if not log.succeeded:
        return Outcome.FAILED
    return Outcome.WARNED if log.count(Level.WARNING) else Outcome.EXPORTED


def _change(outcome: Outcome, earlier: Model | None) -> Change:
    if earlier is None:
        return Change.NEW
    if (outcome is Outcome.FAILED) == (earlier.outcome is Outcome.FAILED):
        return Change.NONE
    return Change.BROKEN if outcome is Outcome.FAILED else Change.FIXED


def _families(models: Sequence[Model]) -> list[Family]:
    members: dict[str, list[Model]] = {}
    for model in models:
        if model.log.family:
            members.setdefault(model.log.family, []).append(model)
    if not 1 < len(members) < len(models):
        return []
    found = [_family(name, of_family) for name, of_family in members.items()]
    return sorted(found, key=lambda each: (-each.failed, each.name))


def _family(name: str, models: Sequence[Model]) -> Family:
    failed = [model for model in models if model.outcome is Outcome.FAILED]
    causes = collections.Counter(
        cause for model in failed for cause in {cause for finding, cause in zip(model.findings, model.causes, strict=True) if finding.fails}
    )
    return Family(name, len(models), len(failed), min(causes, key=lambda cause: (-causes[cause], cause), default=None))


def _clusters(models: Sequence[Model], known: set[Cause] | None, sizes: Mapping[str, int] | None) -> list[Cluster]:
    """The clusters, those that block the most models first."""
    examples, touched, blocked = dict[Cause, tuple[Diagnostic, str]](), dict[Cause, dict[str, None]](), dict[Cause, dict[str, None]]()
    for model in sorted(models, key=lambda model: (model.outcome is not Outcome.FAILED, (sizes or {}).get(model.log.subject, 0))):
        for finding, cause in zip(model.findings, model.causes, strict=True):
            examples.setdefault(cause, (finding, model.log.subject))
            touched.setdefault(cause, {})[model.log.subject] = None
            if finding.fails:
                blocked.setdefault(cause, {})[model.log.subject] = None
    clusters = [
        Cluster(
            cause,
            example,
            smallest if sizes else "",
            tuple(blocked.get(cause, ())),
            tuple(blocked.get(cause, {}) | touched[cause]),
            known is not None and cause not in known,
        )
        for cause, (example, smallest) in examples.items()
    ]
    return sorted(clusters, key=lambda each: (-len(each.blocked), -len(each.touched), each.cause))
