"""Many logs as one markdown report for GitHub, such as the summary of a job."""

from __future__ import annotations

from collections.abc import Iterable

from .fleet import Change, Cluster, Family, Fleet, Model, Outcome, gather
from .log import Log
from .markdown import cell, cells, fitting, prose, template

_ROOM = 15_000
"""Size of each table in UTF-16 code units. A comment on GitHub holds 65,536."""
_CAUSE_LIMIT = 20


def to_markdown(logs: Iterable[Log], against: Iterable[Log] | None = None) -> str:
    """The report on `logs`, each of a model with another name, short enough for a comment on GitHub. It counts what it omits.

    Args:
        logs: The logs, such as those of `read_logs`.
        against: The logs of an earlier run, to tell what changed.
    """
    fleet = gather(logs, against)
    blocking = [cluster for cluster in fleet.clusters if cluster.blocked]
    causes = fitting(map(_cause, blocking[:_CAUSE_LIMIT]), _ROOM)
    told = [model for model in fleet.models if model.outcome is Outcome.FAILED or model.findings]
    return template("summary").render(
        fleet=fleet,
        causes=causes,
        causes_left_out=len(blocking) - len(causes),
        families=fitting(map(_family, fleet.families), _ROOM),
        family_count=len(fleet.families),
        broken=_models(fleet, Change.BROKEN),
        models=fitting(map(_model, told), _ROOM),
        model_count=len(told),
    )


def _models(fleet: Fleet, change: Change) -> list[str]:
    return list(fitting((_model(model) for model in fleet.models if model.change is change), _ROOM))


def _family(family: Family) -> str:
    cause = " ".join(family.cause) if family.cause else ""
    return cells([cell(family.name), f"{family.models:,}", f"{family.models - family.failed:,}", cell(cause)])


def _cause(cluster: Cluster) -> str:
    rule = f"{cluster.example.rule.id}{' (new)' if cluster.new else ''}"
    where = cluster.cause[1] if cluster.cause[1] != cluster.example.message else ""
    return cells([f"{len(cluster.blocked):,}", rule, cell(where), cell(cluster.example.message, prose)])


def _model(model: Model) -> str:
    rules = ", ".join(dict.fromkeys(finding.rule.id for finding in model.findings))
    return cells([cell(model.log.subject), model.outcome.value, cell(f"{rules or 'none'}")])
