"""The gate: whether logs hold more new findings than they may. What is new, what stayed and what was fixed is written into the logs."""

from __future__ import annotations

import collections
import dataclasses
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from . import atomic, encode, fingerprint
from .baseline import kept, left_out, load_all
from .compare import Compared, Finding, SarifFile, State, compare, load
from .errors import InvalidArgument
from .level import Level
from .read import Json, present


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a gate says.

    Attributes:
        compared: The findings that count, worst first, and what was fixed.
        suppressed: How many more findings were accepted in the source, or by another tool.
        max_errors: How many new errors may be.
        max_warnings: How many new warnings may be; None for any number.
        logs: The files that were judged.
        baseline: The file that they were compared with.
        models: The models that they are about.
    """

    compared: tuple[Compared, ...]
    suppressed: int
    max_errors: int
    max_warnings: int | None
    logs: tuple[pathlib.Path, ...]
    baseline: pathlib.Path | None
    models: tuple[str, ...]

    def having(self, *states: State) -> tuple[Compared, ...]:
        """The findings of these states."""
        return tuple(each for each in self.compared if each.state in states)

    def new(self, level: Level) -> int:
        """How many new findings have `level`."""
        return sum(each.finding.level is level for each in self.having("new"))

    def limit(self, level: Level) -> int | None:
        """How many new findings may have `level`."""
        return {Level.ERROR: self.max_errors, Level.WARNING: self.max_warnings, Level.NOTE: None}[level]

    def exceeded(self, level: Level) -> bool:
        """True if there are more new findings of `level` than there may be."""
        limit = self.limit(level)
        return limit is not None and self.new(level) > limit

    @property
    def passed(self) -> bool:
        """True if no limit is exceeded."""
        return not any(map(self.exceeded, Level))


def judge(
    logs: Sequence[pathlib.Path], baseline: pathlib.Path | None = None, *, max_errors: int = 0, max_warnings: int | None = None
) -> Verdict:
    """Judges `logs`, which are one gate: their findings add up.

    With a baseline the `baselineState` of each result is written into the logs, and what was fixed is added with the state `absent`. All
    files are read and judged before one is written.

    Args:
        logs: SARIF logs of exports.
        baseline: What `accept` of `onnxplain.diagnostics.baseline` wrote, or an earlier log. Without it all findings are new.
        max_errors: How many new errors may be.
        max_warnings: How many new warnings may be; None for any number.

    Raises:
        UnreadableLog: A file is no log, is truncated, of another tool or of a newer version, or contradicts itself.
        InvalidArgument: There is no log, one is given twice or leaves out what would have to be judged, or there is no such baseline.
        OSError: A state cannot be written; `filename` is the log.
    """
    if not logs:
        raise InvalidArgument("LOG: expected one or more logs, got none")
    if baseline is not None and not baseline.exists():
        raise InvalidArgument(f"baseline: there is no file {str(baseline)!r}; `onnxplain baseline accept` writes one")
    loaded = load_all(logs, {"baseline": baseline})
    known = load(baseline, export=False) if baseline is not None else None
    limits = {Level.ERROR: max_errors, Level.WARNING: max_warnings}
    for log in loaded:
        for run in log.runs:
            if any(run.left_out.get(level) for level, limit in limits.items() if limit is not None):
                raise left_out(log, run)
    findings = [finding for log in loaded for finding in log.findings]
    compared = compare(findings, _of_same_models(loaded, known) if known is not None else ())
    if known is not None:
        for path, text in [(log.path, encode.to_json(_with_states(log, loaded, compared))) for log in loaded]:
            atomic.write(path, text)
    count = [each for each in compared if not each.finding.suppressed]
    return Verdict(
        compared=tuple(sorted(count, key=lambda each: each.finding.level.rank)),
        suppressed=len(compared) - len(count),
        max_errors=max_errors,
        max_warnings=max_warnings,
        logs=tuple(logs),
        baseline=baseline,
        models=tuple(sorted({run.model for log in loaded for run in log.runs})),
    )


def _of_same_models(logs: Sequence[SarifFile], baseline: SarifFile) -> list[Finding]:
    """The findings of `baseline` that `logs` may have again: those of their models, but of a level of which a log leaves some out."""
    runs = [run for log in logs for run in log.runs]
    known = {run.id for run in runs}
    unknown = {(run.id, level) for run in runs for level, count in run.left_out.items() if count}
    return [each for run in baseline.runs if run.id in known for each in run.findings if (run.id, each.level) not in unknown]


def _with_states(log: SarifFile, logs: Sequence[SarifFile], compared: Sequence[Compared]) -> Json:
    """The content of `log` with the state of each of its results, and with what its models do not have any more."""
    states = {each.finding: each.state for each in compared}
    runs = []
    for run, content in zip(log.runs, log.content["runs"], strict=True):
        results = [{**result, "baselineState": states[finding]} for finding, result in zip(run.findings, present(content), strict=True)]
        # NOTE: of several logs of one model the first tells what is fixed. GitHub would show it as if it were not.
        if run is next((each for other in logs for each in other.runs if each.id == run.id and not each.for_github), None):
            fixed = (each.finding for each in compared if each.state == "absent" and each.finding.model == run.model)
            results += _absent(fixed, results, content)
        runs.append({**content, "results": results})
    return {**log.content, "runs": runs}


def _absent(findings: Iterator[Finding], results: Sequence[Json], run: Json) -> Iterator[dict[str, Any]]:
    """`findings` as results of `run`, whose fingerprints and guids are not those of `results`."""
    taken = {result["partialFingerprints"][fingerprint.NAME] for result in results}
    numbers: collections.Counter[str] = collections.Counter()
    indices = {rule["id"]: index for index, rule in enumerate(run["tool"]["driver"].get("rules", ()))}
    for finding in findings:
        numbers[finding.fingerprint] += 1
        while f"{finding.fingerprint}:{numbers[finding.fingerprint]}" in taken:
            numbers[finding.fingerprint] += 1
        result = kept(finding, numbers[finding.fingerprint])
        # NOTE: a rule that no other result has is not described: what the log says of its rules stays as it was.
        index = {"ruleIndex": indices[finding.rule]} if finding.rule in indices else {}
        guid = fingerprint.guid(finding.model, result["partialFingerprints"][fingerprint.NAME])
        yield {**result, **index, "guid": guid, "suppressions": [], "baselineState": "absent"}
