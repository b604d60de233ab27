"""A finding as lines of text: what the terminal shows and what an exception says, the same words with and without colour."""

from __future__ import annotations

import pathlib
import re
import unicodedata
from collections.abc import Iterator, Sequence

from .finding import Diagnostic
from .fix import Edit
from .level import Level
from .location import Location
from .log import Log

Span = tuple[str, str]
"""A piece of text and its role: a level's name, `headline`, `place`, `gutter`, `label`, `code`, `removed`, `added` or nothing."""

_PLACE_LIMIT = 5
_STACK_LIMIT = 4
_TAB = " " * 4
_FOLDERS = re.compile(r"(?<![\w./\\:~-])(?:(?:file://)?(?:/[^\s/'\"<>|:]+)+/|[A-Za-z]:(?:[/\\][^\s/\\'\"<>|:]+)+[/\\])(?=[^\s/\\])")


def plain(finding: Diagnostic) -> str:
    """`finding` as text without colour codes."""
    return "\n".join("".join(text for text, _ in line) for line in lines(finding))


def summary(log: Log) -> str:
    """How many findings of each level there are: `2 errors, 1 warning.`"""
    counts = [(log.count(level), level.value) for level in Level]
    told = ", ".join(f"{count} {name}{'s' if count != 1 else ''}" for count, name in counts if count)
    suppressed = len(log.findings) - len(log.active)
    if suppressed:
        told = f"{told or 'no findings'} ({suppressed} suppressed in the source)"
    return f"{told or 'no findings'}."


def verdict(log: Log) -> str:
    """What became of the export: `Exported Net in 2.3 s`, or `The export of Net failed in capture`."""
    if log.succeeded:
        return f"Exported {log.subject} in {(log.ended - log.started).total_seconds():.1f} s"
    stopped = [stage.name for stage in log.stages if not stage.completed]
    return f"The export of {log.subject} failed{f' in {stopped[-1]}' if stopped else ''}"


def lines(finding: Diagnostic) -> Iterator[list[Span]]:
    """The lines of `finding`, each a list of spans: headline, place, source excerpt, notes, callers, fixes."""
    for line in _lines(finding):
        yield [(visible(text), role) for text, role in line]


def visible(text: str) -> str:
    """`text` with all but tabs that is not printable as `repr` shows it: what comes from a model must not steer a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode() for char in text)


def _lines(finding: Diagnostic) -> Iterator[list[Span]]:
    rule, level = finding.rule, finding.level.value
    yield [(f"{level}[{rule.id}]", level), (f": {finding.message}", "headline")]
    if finding.location:
        yield from excerpt(finding.location, level)
    yield from _places("also", finding.occurrences[1:])
    yield from _places("see", finding.related)
    for frame in _callers(finding):
        yield _labelled("called from", describe(frame))
    for note in finding.notes:
        yield from _block("note", note)
    for fix in finding.fixes:
        yield _labelled(f"fix ({fix.confidence.value})", fix.description)
        for line in fix.snippet.splitlines():
            yield [("   |   ", "gutter"), (line, "code")]
        for edit in () if fix.snippet else fix.edits:
            before, after = change(edit)
            yield from ([("   - ", "removed"), (line, "code")] for line in before)
            yield from ([("   + ", "added"), (line, "code")] for line in after)
    if finding.suppression and not finding.blocking:
        yield _labelled("suppressed", finding.suppression.justification or "by a comment in the source")


def describe(place: Location) -> str:
    """`model.py:7:12 in forward (encoder.layers.3)`."""
    text = shown_path(place.file) if place.file else ""
    if place.region:
        text += f":{place.region.line}" + (f":{place.region.column}" if place.region.column else "")
    if place.function:
        text += f" in {place.function}"
    if place.module:
        text += f" (module {place.module})" if text else f"module {place.module}"
    return text


def shown_path(path: str) -> str:
    """`path` relative to the current folder if it lies below it."""
    try:
        return str(pathlib.Path(path).relative_to(pathlib.Path.cwd()))
    except ValueError:
        return path


def without_folders(text: str) -> str:
    """`text` in which absolute paths are names of files only: the folders are those of one machine."""
    return _FOLDERS.sub("", text)


def caret(place: Location) -> tuple[str, str]:
    """The source line of `place` and a line that underlines its region; both empty where the source is not at hand."""
    region = place.region
    if region is None or not (text := region.texts(place.file)[0].rstrip()):
        return "", ""
    start = region.column or len(text) - len(text.lstrip()) + 1
    end = region.end_column if region.end_column and region.last_line == region.line else len(text) + 1
    before, marked, after = (visible(part).replace("\t", _TAB) for part in (text[: start - 1], text[start - 1 : end - 1], text[end - 1 :]))
    return before + marked + after, " " * _width(before) + "^" * max(1, _width(marked))


def change(edit: Edit) -> tuple[list[str], list[str]]:
    """The lines that `edit` touches, before and after."""
    region = edit.region
    before = list(region.texts(edit.file))
    head = before[0][: (region.column or 1) - 1]
    tail = before[-1][region.end_column - 1 :] if region.end_column else ""
    return before, (head + edit.replacement + tail).splitlines()


def excerpt(place: Location, role: str) -> Iterator[list[Span]]:
    """The lines that show `place` and its source, the underline in `role`."""
    yield [("  --> ", "gutter"), (describe(place), "place")]
    text, underline = caret(place)
    if text:
        number = str(place.line)
        margin = " " * len(number)
        yield [(f" {number} | ", "gutter"), (text, "code")]
        yield [(f" {margin} | ", "gutter"), (underline, role)]


def _callers(finding: Diagnostic) -> list[Location]:
    """The frames above the finding's own, innermost first."""
    frames = [frame for frame in reversed(finding.stack) if not _same_line(frame, finding.location)]
    return frames[:_STACK_LIMIT]


def _same_line(frame: Location, place: Location | None) -> bool:
    return place is not None and (frame.file, frame.line) == (place.file, place.line)


def _places(label: str, places: Sequence[Location]) -> Iterator[list[Span]]:
    for place in places[:_PLACE_LIMIT]:
        yield _labelled(label, f"{place.message}: {describe(place)}" if place.message else describe(place))
    if len(places) > _PLACE_LIMIT:
        yield _labelled(label, f"{len(places) - _PLACE_LIMIT} more places")


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else not unicodedata.combining(char) for char in text)


def _block(label: str, text: str) -> Iterator[list[Span]]:
    first, *rest = text.splitlines() or [""]
    yield _labelled(label, first)
    for line in rest:
        yield [("   |   ", "gutter"), (line, "")]


def _labelled(label: str, text: str) -> list[Span]:
    return [("   = ", "gutter"), (f"{label}: ", "label"), (text, "")]
