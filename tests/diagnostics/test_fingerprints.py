"""Fingerprints recognize a finding in later logs, and line hashes are those of GitHub."""

from __future__ import annotations

import json
import linecache
import pathlib
from collections.abc import Iterator

import pytest
from sarif_checks import check_log
from sarif_logs import MODEL, Read, at, make_context, results, source

from onnxplain.diagnostics import Location, Region, Rule, sarif
from onnxplain.rules import (
    CheckDropped,
    DataDependentBranch,
    LoopUnrolled,
    OutputsDiffer,
    RuntimeRejected,
    TrainingMode,
    UnsupportedOperator,
    UnusedInput,
    UserCodeRaised,
)


def test_fingerprints_survive_moved_lines_and_machines(tmp_path: pathlib.Path) -> None:
    def fingerprints(folder: str, text: str) -> list[tuple[str, str]]:
        file = source(tmp_path / folder, text)
        context = make_context()
        for line, content in enumerate(text.splitlines(), 1):
            if "return" in content:
                context.report(DataDependentBranch(condition="x"), at=Location(file, Region(line)))
        log = check_log(json.loads(sarif.to_json(context.log(), tmp_path / folder)))
        return [(result["partialFingerprints"]["onnxplain/v1"], result["guid"]) for result in results(log)]

    before = fingerprints("here", MODEL + "        return x\n")
    assert fingerprints("there", "# moved\n\n" + MODEL.replace("        return x", "    return x") + "        return x\n") == before
    assert [known.rpartition(":")[2] for known, _ in before] == ["1", "1", "2"]
    assert fingerprints("elsewhere", MODEL.replace("return x", "return x.T"))[1] not in before


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (DataDependentBranch(condition="x"), DataDependentBranch(condition="y"), False),
        (DataDependentBranch(condition="x"), TrainingMode(layers=("x",)), False),
        (UnusedInput(name="x_1"), UnusedInput(name="x_2"), False),
        (CheckDropped(check="u0 > 2*s77"), CheckDropped(check="u12 > 2*s3"), True),
        (CheckDropped(check="u0 > s77"), CheckDropped(check="u0 < s77"), False),
        (RuntimeRejected(error="Node 'add' of /tmp/a/m.onnx failed"), RuntimeRejected(error="Node 'add_12' of /tmp/b/m.onnx failed"), True),
        (UserCodeRaised(error="KeyError: <F at 0x7f2a>"), UserCodeRaised(error="KeyError: <F at 0xbeef1>"), True),
        (UserCodeRaised(error="KeyError: 'x'"), UserCodeRaised(error="ValueError: 'x'"), False),
        (LoopUnrolled(rounds=12), LoopUnrolled(rounds=24), True),
        (OutputsDiffer(output="mul", difference=0.5, tolerance=1e-4), OutputsDiffer(output="mul_1", difference=0.25, tolerance=1e-4), True),
        (TrainingMode(layers=("a",)), TrainingMode(layers=("a", "b")), True),
    ],
)
def test_what_makes_another_finding(tmp_path: pathlib.Path, read: Read, one: Rule, other: Rule, same: bool) -> None:
    def known(rule: Rule) -> str:
        context = make_context()
        context.report(rule, at=at(source(tmp_path), "x.sum()"))
        return str(results(read(context.log()))[0]["partialFingerprints"]["onnxplain/v1"])

    assert (known(one) == known(other)) is same


def test_where_makes_another_finding(tmp_path: pathlib.Path, read: Read) -> None:
    def known(rule: Rule, text: str, module: str = "", *, file: bool = True) -> str:
        place = at(source(tmp_path, text), "x.sum()", module=module)
        linecache.clearcache()
        context = make_context()
        context.report(rule, at=place if file else Location("", module=module))
        return str(results(read(context.log()))[0]["partialFingerprints"]["onnxplain/v1"])

    branch, operator = DataDependentBranch(condition="x"), UnsupportedOperator(operator="a::b")
    assert known(branch, "if x.sum():\n") != known(branch, "if x.sum() < 0:\n")
    # A line that runs in several modules has one finding, at the first of them.
    assert known(branch, "if x.sum():\n", "a") == known(branch, "if x.sum():\n", "b")
    assert known(branch, "if x.sum():\n", "a", file=False) != known(branch, "if x.sum():\n", "b", file=False)
    # To accept another finding of the line changes its text.
    assert known(branch, "if x.sum():\n") == known(branch, "if x.sum():  # onnxplain: ignore[OXP1007] as it is\n")
    assert known(operator, "if x.sum():\n") == known(operator, "y = x.sum()\n"), "it is one finding, wherever it stands"


WINDOWS = "a\r\n\r \n\tb  c\r\r\n" + 'x = "😀"\n\n\nx = "😀"'


def line_hashes(folder: pathlib.Path, text: str) -> list[str]:
    """The hashes that a log has of all lines of a file with `text`."""
    path = folder / "model.py"
    path.write_bytes(text.encode())
    linecache.clearcache()
    context = make_context()
    for line in range(1, len(linecache.getlines(str(path))) + 1):
        context.report(DataDependentBranch(condition=f"x{line}"), at=Location(str(path), Region(line)))
    log = check_log(json.loads(sarif.to_json(context.log(), folder)))
    return [result["partialFingerprints"]["primaryLocationLineHash"] for result in results(log)]


def test_line_hashes_are_those_of_github(tmp_path: pathlib.Path) -> None:
    # NOTE: codeql-action's src/fingerprints.ts computed these.
    assert line_hashes(tmp_path, WINDOWS) == [
        "ea1297a666f569e5:1",
        "b5d4510803b23ffe:1",
        "4f8f902289a2ad4c:1",
        "879faef7e5627992:1",
        "6f8f8fa7cb551acf:1",
        "279f9d3a642c4d81:1",
        "8c6334e1392f6e75:1",
        "52367e8744ba647f:1",
        "e9c02386efcff3f1:1",
    ]


@pytest.mark.parametrize("text", [MODEL, MODEL.replace("\n", "\r\n"), "x = 1\n" * 250, "\t y " * 100, f"{'a' * 300}\n\n", WINDOWS, "\n"])
def test_line_hashes_equal_a_rolling_hash(text: str, tmp_path: pathlib.Path) -> None:
    found = line_hashes(tmp_path, text)
    assert found == [*rolling_hashes(text)][: len(found)]
    assert found


def rolling_hashes(text: str) -> Iterator[str]:
    """The same hashes by GitHub's algorithm: a hash that rolls over the file, read 100 characters behind the start of each line."""
    data = text.replace("\r\n", "\n").replace("\r", "\n").replace(" ", "").replace("\t", "").encode("utf-16-le")
    units = [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)] + [0xFFFF]
    is_start = [i == 0 or units[i - 1] == ord("\n") for i in range(len(units))]
    value, counts = 0, dict[int, int]()
    for end in range(len(units) + 100):
        if end >= 100:
            if end - 100 < len(is_start) and is_start[end - 100]:
                counts[value] = counts.get(value, 0) + 1
                yield f"{value:x}:{counts[value]}"
            value -= (units[end - 100] if end - 100 < len(units) else 0) * 37**99
        value = (value * 37 + (units[end] if end < len(units) else 0)) % 2**64
