"""Findings of the same cause across models."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from .verdicts import LoggedFinding, Verdict


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Failing findings of one rule with one cause.

    Attributes:
        rule: The rule's id.
        title: The rule's name.
        cause: The operator, the line, or what ended the process.
        models: The models that it blocks, the smallest first.
        alone: How many of them nothing else blocks.
        message: The message for the smallest model.
        first: The smallest model whose export this finding fails first, which is what a script can show; empty if there is none.
    """

    rule: str
    title: str
    cause: str
    models: tuple[str, ...]
    alone: int
    message: str
    first: str

    @property
    def smallest(self) -> str:
        """The model with the fewest weights, of these the first by name."""
        return self.models[0]


def clusters(verdicts: Iterable[Verdict]) -> list[Cluster]:
    """The clusters, those that block the most models first."""
    found: dict[tuple[str, str], dict[str, tuple[Verdict, LoggedFinding]]] = {}
    blocked: dict[str, set[tuple[str, str]]] = {}
    for verdict in verdicts:
        for finding in verdict.findings:
            if finding.fails:
                cause = (finding.rule, finding.cause)
                found.setdefault(cause, {}).setdefault(verdict.name, (verdict, finding))
                blocked.setdefault(verdict.name, set()).add(cause)
    made = [_cluster(cause, [*of_cause.values()], blocked) for cause, of_cause in found.items()]
    return sorted(made, key=lambda each: (-len(each.models), -each.alone, each.rule, each.cause))


def size(verdict: Verdict) -> tuple[bool, int, str]:
    """What orders models from the smallest to the largest: weights, then names. One whose weights are not known did not come far.

    The times of two runs differ, and with them the model that stands for a cause would.
    """
    return not verdict.weights, verdict.weights, verdict.name


def _cluster(cause: tuple[str, str], members: list[tuple[Verdict, LoggedFinding]], blocked: dict[str, set[tuple[str, str]]]) -> Cluster:
    members = sorted(members, key=lambda each: size(each[0]))
    names = tuple(verdict.name for verdict, _ in members)
    example = members[0][1]
    first = next((verdict.name for verdict, found in members if found is next(each for each in verdict.findings if each.fails)), "")
    return Cluster(example.rule, example.title, cause[1], names, sum(len(blocked[name]) == 1 for name in names), example.message, first)
