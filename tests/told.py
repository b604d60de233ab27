"""What findings tell, as text for golden files. A fix is shown as the lines that it changes."""

from __future__ import annotations

import difflib
import pathlib

from onnxplain.diagnostics import Diagnostic, Edit, Fix, Location


def told(findings: tuple[Diagnostic, ...], caller: str) -> str:
    """Each finding with what its rule is about, its lines, and the code of its fixes. `caller` is the file of the export."""
    parts = []
    for finding in findings:
        rule = finding.rule
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(rule).items() if name not in ("error", "type", "difference"))
        places = [_place(place, caller) for place in (finding.location, *finding.related) if place is not None]
        notes = ["  note"] * len(finding.notes)
        parts += [f"{rule.id}{' fails' if finding.fails else ''} at {' and '.join(places)}: {fields}", *notes, *map(shown, finding.fixes)]
    return "".join(f"{part}\n" for part in parts) or "no finding\n"


def _place(place: Location, caller: str) -> str:
    if place.file == caller:
        return "the call"
    column = place.region.column if place.region else None
    return f"{place.line}:{column}{f' of {place.module}' if place.module else ''}"


def shown(fix: Fix) -> str:
    """The confidence of a fix, and its code."""
    code = [*_changed(fix.edits), *fix.snippet.splitlines()]
    return "\n".join([f"  {fix.confidence.name}", *(f"  | {line}".rstrip() for line in code)])


def _changed(edits: tuple[Edit, ...]) -> list[str]:
    if not edits:
        return []
    before = pathlib.Path(edits[0].file).read_text(encoding="utf-8").splitlines()
    after = list(before)
    for edit in sorted(edits, key=lambda each: (each.region.line, each.region.column), reverse=True):
        first, last = edit.region.line - 1, edit.region.last_line - 1
        text = after[first][: (edit.region.column or 1) - 1] + edit.replacement + after[last][(edit.region.end_column or 1) - 1 :]
        after[first : last + 1] = text.split("\n")
    return [line for line in difflib.unified_diff(before, after, n=0, lineterm="") if not line.startswith(("---", "+++", "@@"))]
