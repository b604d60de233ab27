"""The baseline: a file that keeps, for each model, the findings that were accepted. It is SARIF, and meant to be committed.

Nothing of one machine or one run is in it, such as times, folders or texts of sources: what it is about stays the same, byte for byte, when
nothing changes.
"""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from packaging.version import Version

from . import atomic, encode, fingerprint
from .compare import Compared, Finding, Run, SarifFile, compare, load
from .errors import InvalidArgument


def accept(logs: Sequence[pathlib.Path], baseline: pathlib.Path) -> tuple[Compared, ...]:
    """Makes what `logs` hold the accepted findings of their models. Other models of `baseline` stay as they are; it is made if missing.

    Returns:
        The findings of `logs` that count, and those of the baseline that they do not have any more, with state `absent`.

    Raises:
        UnreadableLog: A log, or the present baseline, cannot be read.
        InvalidArgument: The logs cannot be accepted, or what `baseline` names is a log.
        OSError: The baseline cannot be written.
    """
    loaded = load_all(logs, {"baseline": baseline})
    for log in loaded:
        for run in log.runs:
            if any(run.left_out.values()):
                raise left_out(log, run)
    present = load(baseline, export=False) if baseline.exists() else None
    if present is not None and any("invocations" in run for run in present.content["runs"]):
        raise InvalidArgument(f"baseline: expected a file that `onnxplain baseline accept` wrote, got a log, {str(baseline)!r}")
    new = _by_id(run for log in loaded for run in log.runs)
    old = _by_id(present.runs if present is not None else ())
    findings = [finding for runs in new.values() for run in runs for finding in run.findings]
    known = [finding for id, runs in old.items() if id in new for run in runs for finding in run.findings]
    compared = tuple(each for each in compare(findings, known) if not each.finding.suppressed)
    atomic.write(baseline, encode.to_json(_document({**old, **new}), indent=1))
    return compared


def load_all(logs: Sequence[pathlib.Path], others: Mapping[str, pathlib.Path | None]) -> list[SarifFile]:
    """The logs at `logs`, each of which has to be another file than those before and than `others`, by the names of the arguments."""
    taken = {path.resolve(): argument for argument, path in others.items() if path is not None}
    for path in logs:
        argument = taken.setdefault(path.resolve(), "")
        if argument:
            raise InvalidArgument(f"LOG: expected each file once, got {str(path)!r} as {argument}, too")
        taken[path.resolve()] = "another LOG"
    return [load(path, export=True) for path in logs]


def left_out(log: SarifFile, run: Run) -> InvalidArgument:
    """What to say where findings are needed that `run` of `log` does not tell."""
    counts = ", ".join(f"{count} {level.value}s" for level, count in run.left_out.items() if count)
    return InvalidArgument(f"LOG: expected a full log, got {str(log.path)!r} for GitHub, which leaves findings out ({counts})")


def kept(finding: Finding, number: int) -> dict[str, Any]:
    """`finding` as a SARIF result with what a baseline keeps of it; `number` counts those with an equal fingerprint."""
    return {
        "ruleId": finding.rule,
        "level": finding.level.value,
        "message": {"text": finding.message},
        **({"locations": [finding.location]} if finding.location else {}),
        "partialFingerprints": {fingerprint.NAME: f"{finding.fingerprint}:{number}"},
    }


def _by_id(runs: Iterable[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.id, []).append(run)
    return found


def _document(runs: dict[str, list[Run]]) -> dict[str, Any]:
    return {"$schema": encode.SCHEMA, "version": "2.1.0", "runs": [_run(id, of_model) for id, of_model in sorted(runs.items())]}


def _run(id: str, runs: Sequence[Run]) -> dict[str, Any]:
    findings = sorted((finding for run in runs for finding in run.findings if not finding.suppressed), key=_place)
    numbers: collections.Counter[str] = collections.Counter()
    results = []
    for finding in findings:
        numbers[finding.fingerprint] += 1
        results.append(kept(finding, numbers[finding.fingerprint]))
    return {
        "tool": {"driver": {"name": "onnxplain", "semanticVersion": max((run.version for run in runs), key=Version)}},
        "automationDetails": {"id": id},
        "columnKind": "utf16CodeUnits",
        "results": results,
    }


def _place(finding: Finding) -> tuple[object, ...]:
    place = finding.place
    return (
        place.file,
        place.line or 0,
        place.column or 0,
        finding.rule,
        finding.fingerprint,
        finding.message,
        finding.level.rank,
        str(finding.location),
    )
