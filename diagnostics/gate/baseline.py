"""The baseline: a file that keeps the accepted findings of each model. It is SARIF, and meant to be committed.

It holds nothing of one machine or one run, such as times, folders or source text. As long as the findings stay the same, so does the file,
byte for byte.
"""

from __future__ import annotations

import collections
import dataclasses
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from packaging.version import Version

from onnxplain.diagnostics import fingerprint
from onnxplain.diagnostics.atomic_files import write_file
from onnxplain.diagnostics.display import Span, visible
from onnxplain.diagnostics.errors import InvalidArgument
from onnxplain.diagnostics.json_text import to_json
from onnxplain.diagnostics.sarif_file import SCHEMA, SIZE_LIMIT

from .comparison import Compared, compare, listed
from .results import Result, Run, load, load_all

_LIMIT = 100
"""Findings that a list shows."""


@dataclasses.dataclass(frozen=True)
class Acceptance:
    """How accepting findings changed a baseline.

    Attributes:
        baseline: The file.
        compared: The accepted findings, compared with the earlier baseline. Findings that it lost are `absent`.
    """

    baseline: pathlib.Path
    compared: tuple[Compared, ...]

    def lines(self) -> Iterator[list[Span]]:
        """The findings that the baseline gained and lost, and how many it kept."""
        added = [each for each in self.compared if each.state == "new"]
        removed = [each for each in self.compared if each.state == "absent"]
        kept = len(self.compared) - len(added) - len(removed)
        yield from listed("Added", added, _LIMIT)
        yield from listed("Removed", removed, _LIMIT)
        yield [(f"{visible(str(self.baseline))}: {len(added)} added, {len(removed)} removed, {kept} kept.", "headline")]


def accept_findings(logs: Sequence[pathlib.Path], baseline: pathlib.Path) -> Acceptance:
    """Makes the findings of `logs` the accepted ones of their models, and leaves other models of `baseline` as they are.

    Args:
        logs: SARIF logs of exports.
        baseline: The file; a missing one is created.

    Raises:
        UnreadableLog: A log, or the present baseline, cannot be read.
        InvalidArgument: The logs cannot be accepted, or `baseline` is a log, or would be too large to be read.
        OSError: The baseline cannot be written.
    """
    loaded = load_all(logs, {"baseline": baseline})
    for log in loaded:
        for run in log.runs:
            if any(run.omitted.values()):
                raise log.incomplete(run)
    present = load(baseline, export=False) if baseline.exists() else None
    if present is not None and any("invocations" in run for run in present.content["runs"]):
        raise InvalidArgument(f"baseline: expected a file that `onnxplain baseline accept` wrote, got a log, {str(baseline)!r}")
    new = _by_id(run for log in loaded for run in log.runs)
    old = _by_id(present.runs if present is not None else ())
    results = [result for runs in new.values() for run in runs for result in run.results]
    known = [result for id, runs in old.items() if id in new for run in runs for result in run.results]
    compared = tuple(each for each in compare(results, known) if not each.result.suppressed)
    text = to_json(_document({**old, **new}), indent=1)
    if (size := len(text.encode())) > SIZE_LIMIT:
        limit = SIZE_LIMIT // 10**6
        raise InvalidArgument(
            f"LOG: expected findings for a baseline of at most {limit} MB, got {size // 10**6} MB: write several baselines"
        )
    write_file(baseline, text)
    return Acceptance(baseline, compared)


def as_kept(result: Result, number: int) -> dict[str, Any]:
    """`result` as SARIF, with the properties that a baseline keeps. `number` counts results with equal fingerprints."""
    return {
        "ruleId": result.rule,
        "level": result.level.value,
        "message": {"text": result.message},
        **({"locations": [result.location]} if result.location else {}),
        "partialFingerprints": {fingerprint.NAME: f"{result.fingerprint}:{number}"},
    }


def _by_id(runs: Iterable[Run]) -> dict[str, list[Run]]:
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.id, []).append(run)
    return found


def _document(runs: dict[str, list[Run]]) -> dict[str, Any]:
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(id, of_model) for id, of_model in sorted(runs.items())]}


def _run(id: str, runs: Sequence[Run]) -> dict[str, Any]:
    results = sorted((result for run in runs for result in run.results if not result.suppressed), key=_order)
    numbers: collections.Counter[str] = collections.Counter()
    kept = []
    for result in results:
        numbers[result.fingerprint] += 1
        kept.append(as_kept(result, numbers[result.fingerprint]))
    return {
        "tool": {"driver": {"name": "onnxplain", "semanticVersion": max((run.version for run in runs), key=Version)}},
        "automationDetails": {"id": id},
        "columnKind": "utf16CodeUnits",
        "results": kept,
    }


def _order(result: Result) -> tuple[object, ...]:
    """Sorts results by place."""
    place = result.place
    return (
        place.file,
        place.line or 0,
        place.column or 0,
        result.rule,
        result.fingerprint,
        result.message,
        result.level.rank,
        str(result.location),
    )
