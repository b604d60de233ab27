"""The results as text: by family, by cause, and beside torch.onnx.export."""

from __future__ import annotations

import collections
from collections.abc import Mapping

from benchmarks.coverage.comparison import Outcome

from .trials import Result, Trial

Results = Mapping[Trial, Result]

_WRONG = {Outcome.DIFFERENT.value, Outcome.NO_KERNEL.value}
_MODES = {False: "static", True: "dynamic"}


def summary(results: Results) -> str:
    """By family and mode: how many are equal, told, silently wrong and failed; then every trial that is not equal."""
    lines = [f"{'':26}{'static':>36}{'dynamic':>44}", f"{'family':26}" + f"{'equal':>12}{'told':>8}{'wrong':>8}{'failed':>8}    " * 2]
    families = list(dict.fromkeys(trial.family for trial in results))
    for family in [*families, "all"]:
        lines.append(f"{family:26}" + "".join(_counts(results, family, dynamic) for dynamic in _MODES))
    causes = collections.Counter((each.outcome, each.rules) for each in results.values() if each.outcome != Outcome.OK.value)
    lines += [f"{count:5} {outcome} {rules}" for (outcome, rules), count in causes.most_common()]
    return "\n".join(lines)


def failures(results: Results) -> str:
    """Every trial that is not equal, with its cause."""
    return "\n".join(
        f"{trial.family} {trial.name} {_MODES[trial.dynamic]}: {each.outcome} {each.rules}: {each.message} {each.line}"
        for trial, each in sorted(results.items(), key=lambda pair: (pair[1].outcome, pair[1].rules, pair[1].message))
        if each.outcome != Outcome.OK.value
    )


def comparison(ours: Results, theirs: Results) -> str:
    """The trials that only one of the exporters gets right."""
    pairs = {trial: (ours[_own(trial)], result) for trial, result in theirs.items() if _own(trial) in ours}
    right = [(mine.outcome == Outcome.OK.value, other.outcome == Outcome.OK.value) for mine, other in pairs.values()]
    lost = [trial for trial, each in zip(pairs, right, strict=True) if each == (False, True)]
    lines = [f"theirs: {sum(other for _, other in right)} of {len(right)}; {right.count((True, False))} gained, {len(lost)} lost"]
    return "\n".join(lines + [f"  lost: {trial.family} {trial.name} {_MODES[trial.dynamic]}" for trial in lost])


def _own(trial: Trial) -> Trial:
    return Trial(trial.family, trial.name, trial.dynamic)


def _counts(results: Results, family: str, dynamic: bool) -> str:
    found = [
        each
        for trial, each in results.items()
        if trial.dynamic is dynamic and family in (trial.family, "all") and each.outcome != Outcome.NO_SAMPLE.value
    ]
    outcomes = collections.Counter(each.outcome for each in found)
    equal, told, wrong = outcomes[Outcome.OK.value], outcomes[Outcome.TOLD.value], sum(outcomes[each] for each in _WRONG)
    return f"{f'{equal}/{len(found)}':>12}{told or '':>8}{wrong or '':>8}{len(found) - equal - told - wrong or '':>8}    "
