"""`onnxplain fix`: applies the fixes of a log to the source files."""

from __future__ import annotations

import dataclasses
import difflib
import io
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from onnxplain.diagnostics import file_of, opened_sarif, present_results, replace_file, shown_path

_SAFE = "safe"


@dataclasses.dataclass(frozen=True, order=True)
class _Replacement:
    """Replaces the text between two positions. A position is (line, column in UTF-16 code units), from 1; the end is exclusive."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str
    deleted: str | None


@dataclasses.dataclass(frozen=True)
class _Fix:
    """One fix of a log. `changes` are its replacements by file; `still` is the text of the finding, which must not have changed."""

    rule: str
    description: str
    confidence: str
    changes: Mapping[pathlib.Path, Sequence[_Replacement]]
    still: Mapping[pathlib.Path, Sequence[_Replacement]]


class _Changed(Exception):
    """A file has changed since the log was written."""


@click.command(
    "fix",
    epilog="""\b
    Exit codes:
      0  every chosen fix was applied
      1  a source file has changed since the log was written; the command left it alone
      2  LOG is not a log of onnxplain""",
)
@click.argument("log", type=click.Path(path_type=pathlib.Path))
@click.option("--unsafe", is_flag=True, help="Also apply fixes that change the model's results, and guesses.")
@click.option("--diff", "only_diff", is_flag=True, help="Print the changes, and write nothing.")
def command(log: pathlib.Path, unsafe: bool, only_diff: bool) -> None:
    """Apply the fixes in LOG to the source files.

    LOG is a SARIF log of onnxplain. For each finding, the command applies the first fix that has an edit and is marked safe.
    """
    findings = list(_findings(log))
    chosen = [fix for fixes in findings if (fix := _first(fixes, unsafe)) is not None]
    before: dict[pathlib.Path, str] = {}
    replaced: dict[pathlib.Path, list[_Replacement]] = {}
    applied, skipped = 0, []
    for fix in chosen:
        # NOTE: one edit may fix several findings.
        new = {path: [each for each in replacements if each not in replaced.get(path, ())] for path, replacements in fix.changes.items()}
        try:
            for path, replacements in new.items():
                before.setdefault(path, _read(path))
                _check_unchanged(path, before[path], [*replacements, *fix.still.get(path, ())])
                _check_apart(path, replacements, replaced.get(path, ()))
        except _Changed as changed:
            skipped.append(f"{fix.rule}: {changed}")
            continue
        for path, replacements in new.items():
            replaced.setdefault(path, []).extend(replacements)
        applied += 1
        click.echo(f"{fix.rule}: {fix.description}", err=only_diff)
    for path, replacements in replaced.items():
        text = _replace(before[path], replacements)
        if only_diff:
            name = shown_path(str(path))
            lines = difflib.unified_diff(before[path].splitlines(True), text.splitlines(True), name, name)
            click.echo("".join(line if line.endswith("\n") else f"{line}\n" for line in lines), nl=False)
        else:
            _write(path, text)
    for problem in skipped:
        click.echo(problem, err=True)
    kept_back = sum(_first(fixes, unsafe) is None for fixes in findings if fixes)
    hint = f" --unsafe applies {kept_back} more." if kept_back and not unsafe else ""
    done = "can be applied" if only_diff else "applied"
    click.echo(f"{applied} {'fix' if applied == 1 else 'fixes'} {done}.{hint}", err=only_diff)
    if skipped:
        raise click.exceptions.Exit(1)


def _first(fixes: Sequence[_Fix], unsafe: bool) -> _Fix | None:
    return next((fix for fix in fixes if unsafe or fix.confidence == _SAFE), None)


def _findings(log: pathlib.Path) -> Iterator[list[_Fix]]:
    """The fixes with edits of each finding that counts."""
    with opened_sarif(log) as document:
        for run in document["runs"]:
            for result in present_results(run):
                if not result.get("suppressions"):
                    yield [_fix(result, fix, run.get("originalUriBaseIds") or {}) for fix in result.get("fixes") or ()]


def _fix(result: Mapping[str, Any], fix: Mapping[str, Any], bases: Mapping[str, Any]) -> _Fix:
    changes = {
        pathlib.Path(file_of(change["artifactLocation"], bases)): [_replacement(each) for each in change["replacements"]]
        for change in fix["artifactChanges"]
    }
    still: dict[pathlib.Path, list[_Replacement]] = {}
    for location in result.get("locations") or ():
        place = location.get("physicalLocation") or {}
        if "startColumn" in (place.get("region") or {}):
            still.setdefault(pathlib.Path(file_of(place["artifactLocation"], bases)), []).append(
                _replacement({"deletedRegion": place["region"]})
            )
    return _Fix(result["ruleId"], fix["description"]["text"], fix["properties"]["confidence"], changes, still)


def _replacement(each: Mapping[str, Any]) -> _Replacement:
    region = each["deletedRegion"]
    text = each.get("insertedContent", {}).get("text", "")
    start, end = (region["startLine"], region["startColumn"]), (region["endLine"], region["endColumn"])
    return _Replacement(start, end, text, region.get("snippet", {}).get("text"))


def _read(path: pathlib.Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _Changed(f"{path} cannot be read: {error}") from error


def _write(path: pathlib.Path, text: str) -> None:
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error}") from error


def _check_unchanged(path: pathlib.Path, text: str, places: Sequence[_Replacement]) -> None:
    for each in places:
        there = text[_offset(text, each.start) : _offset(text, each.end)].replace("\r\n", "\n")
        if each.deleted is not None and there != each.deleted:
            raise _Changed(f"{shown_path(str(path))}, line {each.start[0]}, has changed since the log was written.")


def _check_apart(path: pathlib.Path, replacements: Sequence[_Replacement], others: Sequence[_Replacement]) -> None:
    for each in replacements:
        if any((each.start < other.end and other.start < each.end) or each.start == other.start for other in others):
            raise _Changed(
                f"{shown_path(str(path))}, line {each.start[0]}, is already changed by another fix; export again, then apply this one."
            )


def _replace(text: str, replacements: Sequence[_Replacement]) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    for each in sorted(replacements, reverse=True):
        start, end = _offset(text, each.start), _offset(text, each.end)
        text = text[:start] + each.text.replace("\n", newline) + text[end:]
    return text


def _offset(text: str, position: tuple[int, int]) -> int:
    """The index of a position in `text`; the end of the text for a line that it lacks."""
    line, column = position
    # NOTE: `splitlines` would end a line at a form feed.
    lines = list(io.StringIO(text, newline=""))
    if line > len(lines):
        return len(text)
    before = lines[line - 1].encode("utf-16-le")[: 2 * (column - 1)].decode("utf-16-le", "ignore")
    return sum(map(len, lines[: line - 1])) + len(before)
