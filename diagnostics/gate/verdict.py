"""The gate's verdict: whether logs hold more new findings than the limits allow."""

from __future__ import annotations

import collections
import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Any

from onnxplain.diagnostics import fingerprint
from onnxplain.diagnostics.atomic_files import write_file
from onnxplain.diagnostics.display import Span
from onnxplain.diagnostics.errors import InvalidArgument
from onnxplain.diagnostics.json_text import to_json
from onnxplain.diagnostics.json_values import string
from onnxplain.diagnostics.level import Level
from onnxplain.diagnostics.rule import Rule
from onnxplain.diagnostics.sarif_file import SIZE_LIMIT, Json, content_errors, present_results
from onnxplain.diagnostics.source_tree import SourceTree

from .baseline import as_kept
from .comparison import Compared, State, compare, listed
from .outputs import replaced
from .results import Result, SarifFile, load, load_all

_NEW_LIMIT = 100
_OTHER_LIMIT = 20
"""Findings that a list shows."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A gate's verdict.

    Attributes:
        compared: The findings that count, worst first, then those that were fixed.
        suppressed: The number of findings that the source or another tool suppresses. They do not count.
        max_errors: The limit for new errors.
        max_warnings: The limit for new warnings; None for no limit.
        logs: The files that the gate judged.
        baseline: The file that it compared them with.
        models: The models of the logs.
        flaky: The new and the fixed findings that come and go between exports of one input. They do not count.
    """

    compared: tuple[Compared, ...]
    suppressed: int
    max_errors: int
    max_warnings: int | None
    logs: tuple[pathlib.Path, ...]
    baseline: pathlib.Path | None
    models: tuple[str, ...]
    flaky: tuple[Compared, ...] = ()

    def having(self, *states: State) -> tuple[Compared, ...]:
        """The findings in these states."""
        return tuple(each for each in self.compared if each.state in states)

    def new(self, level: Level) -> int:
        """The number of new findings of `level`."""
        return sum(each.result.level is level for each in self.having("new"))

    def limit(self, level: Level) -> int | None:
        """The limit for new findings of `level`; None for no limit."""
        return {Level.ERROR: self.max_errors, Level.WARNING: self.max_warnings, Level.NOTE: None}[level]

    def exceeded(self, level: Level) -> bool:
        """True if there are more new findings of `level` than the limit allows."""
        limit = self.limit(level)
        return limit is not None and self.new(level) > limit

    @property
    def passed(self) -> bool:
        """True if no limit is exceeded."""
        return not any(map(self.exceeded, Level))

    @property
    def summary(self) -> str:
        """The verdict on one line: `The gate failed: 2 new errors (at most 0), 1 fixed, 3 known.`."""
        told = []
        for level in Level:
            limit = self.limit(level)
            if self.new(level) or limit is not None:
                most = "" if limit is None else f" (at most {limit})"
                told.append(f"{self.new(level) or 'no'} new {level.value}{'' if self.new(level) == 1 else 's'}{most}")
        known, fixed = len(self.having("updated", "unchanged")), len(self.having("absent"))
        told += [f"{fixed} fixed"] if fixed else []
        told += [f"{known} known"] if known else []
        told += [f"{self.suppressed} suppressed"] if self.suppressed else []
        told += [f"{len(self.flaky)} flaky"] if self.flaky else []
        return f"The gate {'passed' if self.passed else 'failed'}: {', '.join(told)}."

    def lines(self) -> Iterator[list[Span]]:
        """The new, the fixed, the flaky and the known findings, one line each, and the verdict."""
        yield from listed("New", self.having("new"), _NEW_LIMIT)
        yield from listed("Fixed", self.having("absent"), _OTHER_LIMIT)
        yield from listed("Flaky", self.flaky, _OTHER_LIMIT)
        yield from listed("Known", self.having("updated", "unchanged"), _OTHER_LIMIT)
        yield self.headline()

    def headline(self) -> list[Span]:
        """The summary as a line."""
        return [(self.summary, "headline" if self.passed else "error")]


def judge_logs(
    logs: Sequence[pathlib.Path],
    baseline: pathlib.Path | None = None,
    *,
    max_errors: int = 0,
    max_warnings: int | None = None,
    replaced_output: Callable[[str], Rule] | None = None,
    flaky: Set[tuple[str, str]] = frozenset(),
) -> Verdict:
    """Judges `logs` together: their findings add up.

    With a baseline, the gate writes the `baselineState` of each result into the logs, and adds fixed findings with the state `absent`. It
    reads and judges all files before it writes one.

    Args:
        logs: SARIF logs of exports.
        baseline: A file that `accept_findings` wrote, or an earlier log. Without it all findings are new.
        max_errors: The limit for new errors.
        max_warnings: The limit for new warnings; None for no limit.
        replaced_output: Makes the finding for an output, given its path, that another program or export has replaced since. Without it
            the gate does not look at outputs.
        flaky: Models and fingerprints of findings that come and go between exports of one input, which count neither as new nor as fixed.

    Raises:
        UnreadableLog: A file is not a log, is truncated, was written by another tool or a newer version, or contradicts itself.
        InvalidArgument: There is no log, one is given twice or omits findings that the limits need, or the baseline is missing.
        OSError: The gate cannot write the states; `filename` is the log.
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
            if any(run.omitted.get(level) for level, limit in limits.items() if limit is not None):
                raise log.incomplete(run)
    results = [result for log in loaded for result in log.results]
    if replaced_output is not None:
        tree = SourceTree.around()
        for log in loaded:
            with content_errors(log.path):
                for run, content in zip(log.runs, log.content["runs"], strict=True):
                    results += replaced(run, content, tree, replaced_output)
    compared = compare(results, _comparable(loaded, known) if known is not None else ())
    if known is not None:
        for path, text in [(log.path, _with_states(log, loaded, compared)) for log in loaded]:
            # NOTE: a log that the states make too large to be read stays as it is.
            if len(text.encode()) <= SIZE_LIMIT:
                write_file(path, text)
    active = [each for each in compared if not each.result.suppressed]
    unsteady = [each for each in active if each.state in ("new", "absent") and (each.result.model, each.result.fingerprint) in flaky]
    counting = [each for each in active if each not in unsteady]
    return Verdict(
        compared=tuple(sorted(counting, key=lambda each: each.result.level.rank)),
        suppressed=len(compared) - len(active),
        max_errors=max_errors,
        max_warnings=max_warnings,
        logs=tuple(logs),
        baseline=baseline,
        models=tuple(sorted({run.model for log in loaded for run in log.runs})),
        flaky=tuple(unsteady),
    )


def _comparable(logs: Sequence[SarifFile], baseline: SarifFile) -> list[Result]:
    """The results of `baseline` that `logs` can have again: those of their models, except levels of which a log omits findings."""
    runs = [run for log in logs for run in log.runs]
    known = {run.id for run in runs}
    unknown = {(run.id, level) for run in runs for level, count in run.omitted.items() if count}
    return [each for run in baseline.runs if run.id in known for each in run.results if (run.id, each.level) not in unknown]


def _with_states(log: SarifFile, logs: Sequence[SarifFile], compared: Sequence[Compared]) -> str:
    """The content of `log` with the state of each result, and with the fixed results of its models. Raises `UnreadableLog`."""
    with content_errors(log.path):
        return to_json({**log.content, "runs": _runs_with_states(log, logs, compared)})


def _runs_with_states(log: SarifFile, logs: Sequence[SarifFile], compared: Sequence[Compared]) -> list[Json]:
    states = {each.result: each.state for each in compared}
    runs = list[Json]()
    for run, content in zip(log.runs, log.content["runs"], strict=True):
        present = present_results(content)
        results = [{**written, "baselineState": states[result]} for result, written in zip(run.results, present, strict=True)]
        # NOTE: of several logs of one model the first gets the fixed results. Logs for GitHub get none: GitHub would show them as open.
        if run is next((each for other in logs for each in other.runs if each.id == run.id and not each.for_github), None):
            fixed = (each.result for each in compared if each.state == "absent" and each.result.model == run.model)
            results += _absent(fixed, results, content)
        runs.append({**content, "results": results})
    return runs


def _absent(fixed: Iterable[Result], results: Sequence[Json], run: Json) -> Iterator[dict[str, Any]]:
    """The `fixed` results as results of `run`, with fingerprints and guids that differ from those of `results`."""
    taken = {result["partialFingerprints"][fingerprint.NAME] for result in results}
    numbers: collections.Counter[str] = collections.Counter()
    indices = {string(rule["id"]): index for index, rule in enumerate(run["tool"]["driver"].get("rules", ()))}
    for result in fixed:
        numbers[result.fingerprint] += 1
        while f"{result.fingerprint}:{numbers[result.fingerprint]}" in taken:
            numbers[result.fingerprint] += 1
        kept = as_kept(result, numbers[result.fingerprint])
        # NOTE: the log's rules stay as they were, so a rule of fixed results only has no descriptor.
        index = {"ruleIndex": indices[result.rule]} if result.rule in indices else {}
        guid = fingerprint.guid(result.model, kept["partialFingerprints"][fingerprint.NAME])
        yield {**kept, **index, "guid": guid, "suppressions": [], "baselineState": "absent"}
