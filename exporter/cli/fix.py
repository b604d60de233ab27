"""`onnxplain fix`: applies the fixes of a log to the source files."""

from __future__ import annotations

import bisect
import dataclasses
import difflib
import pathlib
from collections.abc import Mapping, Sequence

import click

from onnxplain.diagnostics import Prepared, SourceTree, shown_path, visible

from .edited_file import CannotEdit, EditedFile
from .log_edits import LogFinding, LogFix, Position, Replacement, findings

_SAFE = "safe"


class _Skipped(Exception):
    """A fix does not fit the files as they are now."""


@dataclasses.dataclass
class _Edits:
    """The files that are being edited, and what is replaced in them."""

    files: dict[pathlib.Path, EditedFile] = dataclasses.field(default_factory=dict)
    replaced: dict[pathlib.Path, list[Replacement]] = dataclasses.field(default_factory=dict)
    """In the order of the text."""

    def add(self, finding: LogFinding, fix: LogFix) -> None:
        """Adds all replacements of `fix`, or none of them.

        Raises:
            _Skipped: A file has changed since the log was written, cannot be edited, or is already changed there.
        """
        new: dict[pathlib.Path, list[Replacement]] = {}
        for path, replacements in fix.changes.items():
            others = self.replaced.setdefault(path, [])
            # NOTE: one edit may fix several findings.
            new[path] = [each for each in replacements if each not in _neighbours(each, others)]
            file = self._opened(path)
            for each in (*new[path], *finding.still.get(path, ())):
                if not file.has(each):
                    raise _Skipped(f"{_shown(path)}, line {each.start[0]}, has changed since the log was written.")
            _check_apart(path, new[path], others)
        for path, replacements in new.items():
            for each in replacements:
                bisect.insort(self.replaced[path], each, key=_start)

    def texts(self) -> Mapping[EditedFile, str]:
        """What each file will contain."""
        return {self.files[path]: self.files[path].with_replacements(each) for path, each in self.replaced.items() if each}

    def _opened(self, path: pathlib.Path) -> EditedFile:
        if path not in self.files:
            try:
                self.files[path] = EditedFile(path)
            except CannotEdit as error:
                raise _Skipped(f"{_shown(path)} {error}.") from error
        return self.files[path]


@click.command(
    "fix",
    epilog="""\b
    Exit codes:
      0  every chosen fix was applied
      1  a source file has changed since the log was written or cannot be edited; the command left it alone
      2  LOG is not a log of onnxplain, or would edit something else than Python files below the root; no file was changed""",
)
@click.argument("log", type=click.Path(path_type=pathlib.Path))
@click.option("--unsafe", is_flag=True, help="Also apply fixes that change the model's results, and guesses.")
@click.option("--diff", "only_diff", is_flag=True, help="Print the changes, and write nothing.")
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=pathlib.Path),
    help="Edit only files below this folder.  [default: the git checkout around the current folder, or else that folder]",
)
def command(log: pathlib.Path, unsafe: bool, only_diff: bool, root: pathlib.Path | None) -> None:
    """Apply the fixes in LOG to the source files.

    LOG is a SARIF log of onnxplain. For each finding, the command applies the first fix that has an edit and is marked safe.
    """
    found = findings(log, SourceTree.around(root))
    chosen = [(each, _first(each.fixes, unsafe)) for each in found]
    refused = dict.fromkeys(f"{each.rule}: {fix.refused}." for each, fix in chosen if fix is not None and fix.refused)
    if refused:
        lines = "\n".join(map(visible, refused))
        raise click.UsageError(f"{lines}\nNo file was changed. With --root FOLDER, onnxplain edits Python files below FOLDER.")
    edits, applied, skipped = _Edits(), 0, []
    for each, fix in chosen:
        if fix is None:
            click.echo(visible(f"{each.rule}: {_why_not(each)}"), err=True)
            continue
        try:
            edits.add(each, fix)
        except _Skipped as why:
            skipped.append(f"{each.rule}: {why}")
            continue
        applied += 1
        click.echo(visible(f"{each.rule}: {fix.description}"), err=only_diff)
    if only_diff:
        for file, text in edits.texts().items():
            _print_diff(file, text)
    else:
        _write(edits.texts())
    for problem in skipped:
        click.echo(visible(problem), err=True)
    done = "can be applied" if only_diff else "applied"
    click.echo(f"{applied} {'fix' if applied == 1 else 'fixes'} {done}.", err=only_diff)
    if skipped:
        raise click.exceptions.Exit(1)


def _first(fixes: Sequence[LogFix], unsafe: bool) -> LogFix | None:
    return next((fix for fix in fixes if unsafe or fix.confidence == _SAFE), None)


def _why_not(finding: LogFinding) -> str:
    if not finding.fixes:
        return "none of its fixes is an edit; `onnxplain report` shows its advice."
    return f"its edit is marked '{finding.fixes[0].confidence}', not 'safe'; --unsafe applies it."


def _check_apart(path: pathlib.Path, replacements: Sequence[Replacement], others: Sequence[Replacement]) -> None:
    for each in replacements:
        if any((each.start < other.end and other.start < each.end) or each.start == other.start for other in _neighbours(each, others)):
            raise _Skipped(f"{_shown(path)}, line {each.start[0]}, is already changed by another fix; export again, then apply this one.")


def _neighbours(replacement: Replacement, others: Sequence[Replacement]) -> Sequence[Replacement]:
    """The two of `others`, which lie apart and in order, that begin before and not before `replacement`."""
    index = bisect.bisect_left(others, replacement.start, key=_start)
    return others[max(0, index - 1) : index + 1]


def _start(replacement: Replacement) -> Position:
    return replacement.start


def _print_diff(file: EditedFile, text: str) -> None:
    name = _shown(file.path)
    for line in difflib.unified_diff(file.text.splitlines(True), text.splitlines(True), name, name):
        click.echo(visible(line.rstrip("\r\n")))


def _write(texts: Mapping[EditedFile, str]) -> None:
    """Writes all files, or none of them: half of an edit may be worse than none."""
    done = 0
    new: dict[EditedFile, Prepared] = {}
    try:
        for file, text in texts.items():
            new[file] = file.prepared(text)
        for file, content in new.items():
            file.check_same(content)
        for file, content in new.items():
            file.put(content)
            done += 1
    except CannotEdit as error:
        others = f"{done} of {len(texts)} files were changed." if done else "No file was changed."
        raise click.ClickException(visible(f"{_shown(file.path)} {error}. {others}")) from error
    finally:
        for content in new.values():
            content.discard()


def _shown(path: pathlib.Path) -> str:
    return shown_path(str(path))
