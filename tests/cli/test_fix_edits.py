"""`onnxplain fix` on logs that are made up: which edits are applied, in which files, and what the command tells."""

from __future__ import annotations

import codecs
import json
import linecache
import os
import pathlib
import re
import stat
import sys
from collections.abc import Sequence

import pytest
from click.testing import CliRunner, Result
from logs import context

from onnxplain.cli import main
from onnxplain.cli.edited_file import CannotEdit, EditedFile
from onnxplain.cli.log_edits import Replacement
from onnxplain.diagnostics import Confidence, Edit, Fix, Location, Prepared, Region, replace_file, sarif
from onnxplain.rules import DataDependentBranch

SOURCE = "one = 1\ntwo = 2\nthree = 3\n"


@pytest.fixture(autouse=True)
def here(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The current folder, an empty one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def edit(line: int, column: int, end_column: int, text: str, *, end_line: int | None = None, file: str = "a.py") -> Edit:
    return Edit(str(pathlib.Path(file).absolute()), Region(line, column, end_line or line, end_column), text)


def fix(*edits: Edit, confidence: Confidence = Confidence.SAFE) -> Fix:
    return Fix(f"Change {' and '.join(each.replacement for each in edits)}.", confidence, edits=edits)


def told(*fixes: Sequence[Fix], arguments: Sequence[str] = (), at: Location | None = None) -> Result:
    """Runs the command on a log with a finding for each list of fixes."""
    made = context()
    for number, each in enumerate(fixes):
        made.report(DataDependentBranch(condition=f"x > {number}"), at=at, fixes=each)
    sarif.write(made.log(), pathlib.Path("a.sarif"))
    return change(*arguments)


def change(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["fix", "a.sarif", *arguments])


def write(text: str | bytes, file: str = "a.py") -> pathlib.Path:
    path = pathlib.Path(file)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_fixes_are_counted(count: int) -> None:
    path = write(SOURCE)
    result = told(*([fix(edit(line, 1, 4, f"n{line}"))] for line in range(1, count + 1)), [Fix("Think.", Confidence.SAFE)])
    assert result.exit_code == 0
    assert re.findall(r"^(\d) fix", result.stdout, re.MULTILINE) == [str(count)]
    assert len(re.findall("Change n", result.stdout)) == count
    assert result.stderr.count("OXP1001") == 1
    names = [line.partition(" ")[0] for line in path.read_text(encoding="utf-8").splitlines()]
    assert names == ["n1", "n2", "n3ee"][:count] + ["one", "two", "three"][count:]


def test_a_diff_is_all_that_goes_to_the_output() -> None:
    path = write(SOURCE)
    result = told([fix(edit(2, 1, 4, "deux"))], [fix(edit(2, 2, 4, "other"))], arguments=["--diff"])
    assert result.exit_code == 1
    assert [line for line in result.stdout.splitlines() if not line.startswith(("---", "+++", "@@"))] == [
        " one = 1",
        "-two = 2",
        "+deux = 2",
        " three = 3",
    ]
    assert (result.stderr.count("Change deux"), len(re.findall(r"^1 fix", result.stderr, re.MULTILINE))) == (1, 1)
    assert path.read_text(encoding="utf-8") == SOURCE


@pytest.mark.parametrize(
    ("fixes", "arguments", "name"), [(0, [], "safe"), (0, ["--unsafe"], "behaviour"), (1, [], "one"), (1, ["--unsafe"], "guess")]
)
def test_the_first_allowed_fix_is_taken(fixes: int, arguments: list[str], name: str) -> None:
    path = write(SOURCE)
    guess = [fix(edit(1, 1, 4, "guess"), confidence=Confidence.GUESS)]
    chosen = [fix(edit(1, 1, 4, "behaviour"), confidence=Confidence.CHANGES_BEHAVIOUR), fix(edit(1, 1, 4, "safe"))]
    assert told([chosen, guess][fixes], arguments=arguments).exit_code == 0
    assert path.read_text(encoding="utf-8").partition(" ")[0] == name


APART = {
    "side by side": ((2, 1, 4), (2, 4, 5), True),
    "the same": ((2, 1, 4), (2, 1, 4), False),
    "one within the other": ((2, 1, 8), (2, 3, 4), False),
    "one around the other": ((2, 3, 4), (2, 1, 8), False),
    "overlapping": ((2, 1, 4), (2, 3, 6), False),
    "an insertion at the start": ((2, 3, 6), (2, 3, 3), False),
    "an insertion at the end": ((2, 3, 6), (2, 6, 6), True),
    "an insertion within": ((2, 3, 6), (2, 4, 4), False),
    "insertions at one place": ((2, 3, 3), (2, 3, 3), False),
    "other lines": ((2, 3, 6), (3, 3, 6), True),
    "before": ((2, 3, 6), (1, 3, 6), True),
}


@pytest.mark.parametrize(("first", "second", "apart"), APART.values(), ids=APART)
def test_edits_that_meet_are_not_both_applied(first: tuple[int, int, int], second: tuple[int, int, int], apart: bool) -> None:
    path = write(SOURCE)
    far = [fix(edit(3, 10, 10, "0"))]
    result = told(far, [fix(edit(*first, "A"))], [fix(edit(*second, "B"))])
    text = path.read_text(encoding="utf-8")
    assert ("A" in text, "B" in text, "30" in text, result.exit_code) == (True, apart, True, not apart)
    assert (f"a.py, line {second[0]}" in result.stderr) != apart


def test_equal_fixes_are_one_edit() -> None:
    path = write(SOURCE)
    assert told([fix(edit(2, 1, 4, "A"), edit(3, 1, 6, "C"))], [fix(edit(2, 1, 4, "A"), edit(3, 1, 6, "C"))]).exit_code == 0
    assert path.read_text(encoding="utf-8") == "one = 1\nA = 2\nC = 3\n"


def test_a_fix_is_applied_as_a_whole() -> None:
    first, second = write(SOURCE), write(SOURCE, "b.py")
    result = told([fix(edit(1, 1, 4, "A"))], [fix(edit(2, 1, 4, "B", file="b.py"), edit(1, 2, 3, "C"))])
    assert result.exit_code == 1
    assert first.read_text(encoding="utf-8") == SOURCE.replace("one", "A")
    assert second.read_text(encoding="utf-8") == SOURCE


FILES: dict[str, tuple[bytes, bytes]] = {
    "UTF-8": (SOURCE.encode(), b"one = 1\nX\nthree = 3\n"),
    "a mark": (codecs.BOM_UTF8 + SOURCE.encode(), codecs.BOM_UTF8 + b"one = 1\nX\nthree = 3\n"),
    "Latin-1": ("# coding: latin-1\ntwo = 2\né = 3".encode("latin-1"), "# coding: latin-1\nX\né = 3".encode("latin-1")),
    "line ends of Windows": (SOURCE.replace("\n", "\r\n").encode(), b"one = 1\r\nX\r\nthree = 3\r\n"),
    "line ends of two kinds": (b"one = 1\r\ntwo = 2\nthree = 3\r\n", b"one = 1\r\nX\nthree = 3\r\n"),
    "no last line end": (b"one = 1\ntwo = 2", b"one = 1\nX"),
    "wide characters": ("'😀'\ntwo = 2\n'é'\n".encode(), "'😀'\nX\n'é'\n".encode()),
}


@pytest.mark.parametrize(("before", "after"), FILES.values(), ids=FILES)
def test_the_rest_of_the_file_stays_byte_for_byte(before: bytes, after: bytes) -> None:
    path = write(before)
    path.chmod(0o644)
    assert told([fix(edit(2, 1, 8, "X"))]).exit_code == 0
    assert path.read_bytes() == after
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one = 1\r\ntwo = 2\r\n", b"one = 1\r\nX\r\nY\r\n"),
        (b"one = 1\ntwo = 2\r\n", b"one = 1\nX\r\nY\r\n"),
        (b"one = 1\r\ntwo = 2", b"one = 1\r\nX\r\nY"),
        (b"one = 1\rtwo = 2\r", b"one = 1\rX\rY\r"),
    ],
)
@pytest.mark.parametrize("inserted", ["X\nY", "X\r\nY", "X\rY"])
def test_new_lines_end_as_the_line_at_the_edit(before: bytes, after: bytes, inserted: str) -> None:
    path = write(before)
    assert told([fix(edit(2, 1, 8, inserted))]).exit_code == 0
    assert path.read_bytes() == after


def test_columns_count_characters() -> None:
    path = write('a = "😀字é", 2; b = 3\n')
    assert told([fix(edit(1, 12, 13, "20"), edit(1, 19, 20, "30"))]).exit_code == 0
    assert path.read_text(encoding="utf-8") == 'a = "😀字é", 20; b = 30\n'


def test_an_edit_over_lines() -> None:
    path = write(SOURCE)
    assert told([fix(edit(1, 5, 4, "0\nA", end_line=2))]).exit_code == 0
    assert path.read_text(encoding="utf-8") == "one 0\nA = 2\nthree = 3\n"


CHANGED: dict[str, tuple[str, str]] = {
    "another line": (SOURCE.replace("1", "100"), "done"),
    "the text": (SOURCE.replace("two", "dos"), "left"),
    "the text behind it": (SOURCE.replace("2", "20"), "left"),
    "a line before": (f"\n{SOURCE}", "left"),
    "a shorter file": ("one = 1\n", "left"),
    "a shorter line": ("one = 1\ntw\n", "left"),
    "an empty file": ("", "left"),
}


@pytest.mark.parametrize(("text", "outcome"), CHANGED.values(), ids=CHANGED)
def test_only_text_that_the_log_saw_is_replaced(text: str, outcome: str) -> None:
    path = write(SOURCE)
    told([fix(edit(2, 1, 4, "A"))], arguments=["--diff"])
    write(text)
    result = change()
    assert result.exit_code == (outcome == "left")
    assert path.read_text(encoding="utf-8") == (text if outcome == "left" else text.replace("two", "A"))


@pytest.mark.parametrize(("text", "applied"), [(SOURCE, True), (SOURCE.replace("2", "20"), False), (SOURCE.replace("3", "30"), True)])
def test_an_insertion_needs_the_line_that_the_log_saw(text: str, applied: bool) -> None:
    path = write(SOURCE)
    told([fix(edit(2, 1, 1, "# A\n"))], arguments=["--diff"])
    write(text)
    assert change().exit_code == (not applied)
    assert path.read_text(encoding="utf-8") == (text.replace("two", "# A\ntwo") if applied else text)


def test_a_place_behind_one_that_is_out_of_reach_must_not_have_changed() -> None:
    path = write(SOURCE)
    told([fix(edit(1, 1, 4, "A"))], arguments=["--diff"], at=Location(str(path.absolute()), Region(3, 1, 3, 6)))
    log = pathlib.Path("a.sarif")
    document = json.loads(log.read_text(encoding="utf-8"))
    locations = document["runs"][0]["results"][0]["locations"]
    (place,) = (each["physicalLocation"] for each in locations)
    locations.insert(0, {"physicalLocation": {**place, "artifactLocation": {"uri": "https://example.com/a.py"}}})
    log.write_text(json.dumps(document), encoding="utf-8")
    write(SOURCE.replace("three", "trois"))
    assert change().exit_code == 1
    assert path.read_text(encoding="utf-8").startswith("one")


@pytest.mark.parametrize(
    ("text", "applied"), [(SOURCE, True), (SOURCE.replace("= 3", "= 30"), True), (SOURCE.replace("three", "thr_ee"), False)]
)
def test_the_place_of_the_finding_must_be_as_it_was(text: str, applied: bool) -> None:
    path = write(SOURCE)
    told([fix(edit(1, 1, 4, "A"))], arguments=["--diff"], at=Location(str(path.absolute()), Region(3, 1, 3, 6)))
    write(text)
    assert change().exit_code == (not applied)
    assert ("A" in path.read_text(encoding="utf-8")) == applied


UNEDITABLE: dict[str, bytes] = {
    "no encoding": b"# coding: no-such\ntwo = 2\n",
    "not its encoding": b"# coding: utf-8\ntwo = 2 # \xff\n",
    "two spellings": b"# coding: utf-7\ntwo = 2 # +AOk-\n",
}


@pytest.mark.parametrize("data", UNEDITABLE.values(), ids=UNEDITABLE)
def test_files_that_cannot_be_edited_are_left_alone(data: bytes) -> None:
    write(b"# coding: ascii\ntwo = 2\n")
    told([fix(edit(2, 1, 4, "A"))], arguments=["--diff"])
    path = write(data)
    result = change()
    assert (result.exit_code, path.read_bytes()) == (1, data)
    assert "a.py" in result.stderr


def test_a_file_that_is_read_only_is_left_alone() -> None:
    path = write(SOURCE)
    path.chmod(0o444)
    result = told([fix(edit(2, 1, 4, "A"))])
    assert (result.exit_code, path.read_text(encoding="utf-8")) == (1, SOURCE)


def test_an_encoding_that_lacks_a_character() -> None:
    path = write("# coding: latin-1\ntwo = 2\n")
    result = told([fix(edit(2, 1, 4, "字"))])
    assert (result.exit_code, path.read_bytes()) == (1, b"# coding: latin-1\ntwo = 2\n")
    assert "a.py" in result.stderr


@pytest.mark.parametrize(
    ("before", "change_of", "applied"),
    [
        ("# coding: latin-1\n\xe9 = 2\n", (11, 18, "utf-8"), False),
        ("# coding: latin-1\n\xe9 = 2\n", (11, 18, "no-such"), False),
        ("# coding: latin-1\n\xe9 = 2\n", (1, 1, "# one\n# two\n"), False),
        ("# coding: latin-1\n\xe9 = 2\n", (1, 1, "# one\n"), True),
        ("# coding: latin-1\n\xe9 = 2\n", (11, 18, "iso-8859-1"), True),
        ("one = 1\n\xe9 = 2\n", (1, 1, "# coding: latin-1\n"), False),
        ("one = 1\n\xe9 = 2\n", (1, 1, "\ufeff"), False),
        ("one = 1\n\xe9 = 2\n", (1, 1, "# coding: utf8\n"), True),
    ],
)
def test_a_file_keeps_its_encoding(before: str, change_of: tuple[int, int, str], applied: bool) -> None:
    data = before.encode("latin-1" if "latin-1" in before else "utf-8")
    path = write(data)
    result = told([fix(edit(1, *change_of))])
    assert (result.exit_code, path.read_bytes() != data) == ((0, True) if applied else (1, False)), result.output
    assert "unexpected" not in result.output


def test_files_are_written_together_or_not_at_all() -> None:
    first, second = write(SOURCE), write("# coding: latin-1\none = 1\n", "b.py")
    result = told([fix(edit(1, 1, 4, "eins"))], [fix(edit(2, 1, 4, "'€'", file="b.py"))])
    assert result.exit_code == 1
    assert "latin-1" in result.stderr.replace("iso-8859-1", "latin-1")
    assert "No file was changed" in result.stderr
    assert first.read_text(encoding="utf-8") == SOURCE
    assert second.read_text(encoding="utf-8") == "# coding: latin-1\none = 1\n"
    assert sorted(path.name for path in pathlib.Path().iterdir()) == ["a.py", "a.sarif", "b.py"]


def test_a_folder_that_takes_no_file_keeps_all_files(monkeypatch: pytest.MonkeyPatch) -> None:
    pathlib.Path("sub").mkdir()
    first, _ = write(SOURCE), write(SOURCE, "sub/b.py")
    prepared = EditedFile.prepared

    def refused(file: EditedFile, text: str) -> Prepared:
        if file.path.name == "b.py":
            raise CannotEdit("cannot be written: Permission denied")
        return prepared(file, text)

    monkeypatch.setattr(EditedFile, "prepared", refused)
    assert told([fix(edit(1, 1, 4, "eins"))], [fix(edit(2, 1, 4, "zwei", file="sub/b.py"))]).exit_code == 1
    assert first.read_text(encoding="utf-8") == SOURCE


@pytest.mark.parametrize("change_of", ["edited", "removed", "linked", "folder"])
def test_what_changes_meanwhile_is_not_overwritten(here: pathlib.Path, monkeypatch: pytest.MonkeyPatch, change_of: str) -> None:
    (here / "sub").mkdir()
    (here / "outside").mkdir()
    path, other = write(SOURCE, "sub/a.py"), write(SOURCE, "outside/a.py")
    texts = EditedFile.with_replacements

    def changed(file: EditedFile, replacements: Sequence[Replacement]) -> str:
        if change_of == "edited":
            path.write_text(SOURCE + "four = 4\n", encoding="utf-8")
        elif change_of == "folder":
            (here / "sub").rename(here / "moved")
            (here / "sub").symlink_to(here / "outside")
        else:
            path.unlink()
            if change_of == "linked":
                path.symlink_to(other.absolute())
        return texts(file, replacements)

    monkeypatch.setattr(EditedFile, "with_replacements", changed)
    result = told([fix(edit(1, 1, 4, "eins", file="sub/a.py"))])
    assert result.exit_code == 1, result.output
    assert "unexpected" not in result.output
    assert other.read_text(encoding="utf-8") == SOURCE
    assert not list(here.rglob(".onnxplain*"))
    if change_of == "edited":
        assert path.read_text(encoding="utf-8") == SOURCE + "four = 4\n"


def test_a_file_that_changes_while_others_are_written_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = write(SOURCE), write(SOURCE, "b.py")
    put = EditedFile.put

    def late(file: EditedFile, new: Prepared) -> None:
        if file.path.name == "b.py":
            write(SOURCE + "four = 4\n", "b.py")
        put(file, new)

    monkeypatch.setattr(EditedFile, "put", late)
    result = told([fix(edit(1, 1, 4, "eins"))], [fix(edit(2, 1, 4, "zwei", file="b.py"))])
    assert result.exit_code == 1
    assert "1 of 2 files were changed" in result.stderr
    assert [path.read_text(encoding="utf-8") for path in (first, second)] == [SOURCE.replace("one", "eins"), SOURCE + "four = 4\n"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_a_file_keeps_its_owner() -> None:
    path = write(SOURCE)
    os.chown(path, 12345, 54321)
    path.chmod(0o640)
    assert told([fix(edit(1, 1, 4, "eins"))]).exit_code == 0
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (12345, 54321, 0o640)
    replace_file(path, b"")
    found = path.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (12345, 54321, 0o640)


@pytest.mark.skipif(sys.platform != "linux", reason="Python sets extended attributes on Linux alone")
def test_a_file_keeps_its_extended_attributes() -> None:
    path = write(SOURCE)
    try:
        os.setxattr(path, "user.origin", b"a form")
    except OSError as error:
        pytest.skip(f"the file system has no extended attributes: {error}")
    assert told([fix(edit(1, 1, 4, "eins"))]).exit_code == 0
    assert path.read_text(encoding="utf-8") == SOURCE.replace("one", "eins")
    assert os.getxattr(path, "user.origin") == b"a form"
    replace_file(path, b"")
    assert os.getxattr(path, "user.origin") == b"a form"


@pytest.mark.parametrize("coding", ["hex", "rot13", "zlib", "base64", "undefined", "punycode", "idna", "unicode_escape"])
def test_encodings_that_are_none(coding: str) -> None:
    text = f"# coding: {coding}\none = 1\n"
    path = write("# coding: utf-8\none = 1\n")
    told([fix(edit(2, 1, 4, "eins"))], arguments=["--diff"])
    path.write_bytes(text.encode())
    linecache.clearcache()
    result = change()
    assert "unexpected" not in CliRunner().invoke(main, ["report", "a.sarif"]).output
    assert "unexpected" not in result.output
    assert path.read_text(encoding="utf-8") in (text, text.replace("one", "eins"))
    assert (result.exit_code == 0) == ("eins" in path.read_text(encoding="utf-8"))
    # NOTE: pytest would look for source lines in it.
    path.unlink()
    linecache.clearcache()
