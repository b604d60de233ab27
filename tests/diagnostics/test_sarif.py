"""Results of SARIF logs: valid, complete, and the same for the same log."""

from __future__ import annotations

import itertools
import json
import linecache
import logging
import pathlib
import re
import tokenize
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from sarif_checks import OASIS_SCHEMA, check_log
from sarif_logs import MODEL, Read, at, make_context, physical, results, source

from onnxplain.diagnostics import Confidence, Edit, Evidence, ExportFailed, Fix, GraphText, Location, Log, Region, Step, sarif
from onnxplain.rules import DataDependentBranch, TrainingMode, UnsupportedOperator


def test_the_standard_schema_is_that_of_our_version() -> None:
    if not OASIS_SCHEMA.exists():
        pytest.skip(f"{OASIS_SCHEMA} is missing: logs are checked against our own schema only")
    assert json.loads(OASIS_SCHEMA.read_text(encoding="utf-8"))["properties"]["version"]["enum"] == ["2.1.0"]


def test_empty_log(read: Read) -> None:
    content = read(make_context().finish())
    run = content["runs"][0]
    assert run["results"] == []
    assert run["tool"]["driver"]["rules"] == []
    assert run["automationDetails"]["id"] == "onnx-export/Flip/"
    assert (run["invocations"][0]["executionSuccessful"], run["invocations"][0]["exitCode"]) == (True, 0)


def test_result(tmp_path: pathlib.Path, read: Read) -> None:
    context = make_context()
    file = source(tmp_path)
    place = at(file, "x.sum() < 0", function="forward", module="encoder.layers.3")
    with context.stage("capture"):
        context.report(DataDependentBranch(condition="x.sum() < 0"), at=place, notes=["The condition is a tensor."])
    content = read(context.log())

    (result,) = results(content)
    assert (result["ruleId"], result["level"]) == ("OXP1001", "error")
    assert result["message"]["arguments"] == ["x.sum() < 0"]
    (advice,) = result["properties"].pop("fixes")
    assert advice["confidence"] == "guess"
    assert result["properties"] == {"stage": "capture", "blocking": False, "notes": ["The condition is a tensor."]}
    assert result["suppressions"] == []
    assert result["locations"][0]["logicalLocations"] == [
        {"fullyQualifiedName": "encoder.layers.3", "index": 3, "kind": "module"},
        {"fullyQualifiedName": "forward", "kind": "function"},
    ]
    assert content["runs"][0]["logicalLocations"] == [
        {"name": "Flip", "fullyQualifiedName": "Flip", "kind": "type"},
        {"name": "encoder", "fullyQualifiedName": "encoder", "kind": "module", "parentIndex": 0},
        {"name": "layers", "fullyQualifiedName": "encoder.layers", "kind": "module", "parentIndex": 1},
        {"name": "3", "fullyQualifiedName": "encoder.layers.3", "kind": "module", "parentIndex": 2},
    ]
    assert physical(result) == {
        "artifactLocation": {"uri": "model.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 6, "startColumn": 12, "endLine": 6, "endColumn": 23, "snippet": {"text": "x.sum() < 0"}},
        "contextRegion": {"startLine": 4, "endLine": 8, "snippet": {"text": "\n".join(MODEL.splitlines()[3:8])}},
    }
    assert [*content["runs"][0]["originalUriBaseIds"]] == ["SRCROOT"]
    assert content["runs"][0]["invocations"][0]["exitCode"] == 1


@pytest.mark.parametrize("as_errors", [False, True])
def test_level_is_always_written(read: Read, as_errors: bool) -> None:
    context = make_context(warnings_as_errors=as_errors)
    context.report(TrainingMode(layers=("Dropout",)))
    context.event("A warning.", logging.WARNING)
    run = read(context.log())["runs"][0]
    assert run["results"][0]["level"] == ("error" if as_errors else "warning")
    assert run["tool"]["driver"]["rules"][0]["defaultConfiguration"]["level"] == "warning"
    assert run["invocations"][0]["toolExecutionNotifications"][0]["level"] == "warning"


def test_suppression(tmp_path: pathlib.Path, read: Read) -> None:
    file = source(tmp_path, "if x:  # onnxplain: ignore[OXP1001] x is a bool\n    pass\n")
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=at(file, "if x"))
    content = read(context.log())
    (suppression,) = results(content)[0]["suppressions"]
    assert (suppression["kind"], suppression["status"], suppression["justification"]) == ("inSource", "accepted", "x is a bool")
    assert suppression["location"]["physicalLocation"]["region"]["startLine"] == 1
    assert content["runs"][0]["invocations"][0]["executionSuccessful"]


def test_what_stops_the_export_is_not_suppressed(tmp_path: pathlib.Path, read: Read) -> None:
    file = source(tmp_path, "if x:  # onnxplain: ignore[OXP1001]\n    pass\n")
    context = make_context()
    with pytest.raises(ExportFailed) as failed, context.stage("capture"):
        raise context.fail(DataDependentBranch(condition="x"), at=at(file, "if x"))
    (result,) = results(read(failed.value.log))
    assert (result["suppressions"], result["properties"]["blocking"]) == ([], True)


def test_equal_findings_are_one_result(tmp_path: pathlib.Path, read: Read) -> None:
    file = source(tmp_path)
    context = make_context()
    for line in (6, 7, 8, 7):
        context.report(UnsupportedOperator(operator="my::op"), at=Location(file, Region(line)))
    (result,) = results(read(context.log()))
    assert result["occurrenceCount"] == result["properties"]["occurrences"] == 4
    lines = [location["physicalLocation"]["region"]["startLine"] for location in result["relatedLocations"]]
    assert (physical(result)["region"]["startLine"], lines) == (6, [7, 8])


@pytest.mark.parametrize(("count", "found"), [(1, []), (2, ["2"]), (1500, ["1500"])])
def test_the_message_tells_how_often(count: int, found: list[str], tmp_path: pathlib.Path, read: Read) -> None:
    file = source(tmp_path)
    context = make_context()
    for _ in range(count):
        context.report(UnsupportedOperator(operator="my::op"), at=Location(file, Region(6)))
    (result,) = results(read(context.log()))
    assert result.get("occurrenceCount") == (count if found else None)
    assert re.findall(r"found-(\d+)", result["message"]["id"]) == found
    assert [each.replace(",", "") for each in re.findall(r"\d[\d,]*", result["message"]["text"])] == found


def test_links_in_the_message(tmp_path: pathlib.Path, read: Read) -> None:
    file = source(tmp_path, "".join(f"y = x{number}\n" for number in range(12)))
    context = make_context()
    for number in range(12):
        context.report(UnsupportedOperator(operator="x[0](1)"), at=Location(file, Region(number + 1), module=f"m.{number}"))
    content = read(context.log())
    (result,) = results(content)
    message, related = result["message"], result["relatedLocations"]
    links = re.findall(r"\[([^\]]*)\]\((\d+)\)", message["text"])
    lines = {each["id"]: each["physicalLocation"]["region"]["startLine"] for each in related}
    assert [(text, lines[int(id)]) for text, id in links] == [(f"'model.py:{line} (m.{line - 1})'", line) for line in range(2, 7)]
    assert len(related) == 11
    assert "12" in message["text"]
    # NOTE: that of VS Code and the web component, which know no escape.
    assert "[0]" not in re.sub(r"\[[^\]]*\]\([^)]+\)", "", "x[0](1)")
    assert "[0]" in re.sub(r"\[[^\]]*\]\([^)]+\)", "", message["text"])


def test_as_many_links_as_places_leave_none_to_count(tmp_path: pathlib.Path, read: Read) -> None:
    file = source(tmp_path, "y = x\n" * 6)
    context = make_context()
    for number in range(6):
        context.report(UnsupportedOperator(operator="my::op"), at=Location(file, Region(number + 1)))
    (result,) = results(read(context.log()))
    text = re.sub(r"\[[^\]]*\]\(\d+\)", "", result["message"]["text"])
    assert re.findall(r"\d+", text) == ["6"]


def test_fixes(tmp_path: pathlib.Path, read: Read) -> None:
    file = source(tmp_path)
    whole = Edit(file, Region(8), "        return x.clone()")
    part = Edit(file, at(file, "x.sum() < 0").region or Region(1), "flag")
    deletion = Edit(file, Region(7, 1, 8, 1), "")
    fixes = [
        Fix("Use a flag.", Confidence.CHANGES_BEHAVIOUR, edits=(whole, part)),
        Fix("Drop it.", Confidence.GUESS, edits=(deletion,)),
        Fix("Paste this.", Confidence.SAFE, snippet="torch.where(c, a, b)"),
        Fix("Stale.", Confidence.SAFE, edits=(Edit(file, Region(99), "x"),)),
    ]
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=at(file, "x.sum()"), fixes=fixes)
    (result,) = results(read(context.log()))

    assert [fix["description"]["text"] for fix in result["fixes"]] == ["Use a flag (changes behaviour).", "Drop it (guess)."]
    assert len(result["properties"]["fixes"]) == 4
    assert result["properties"]["fixes"][2] == {"description": "Paste this.", "confidence": "safe", "snippet": "torch.where(c, a, b)"}
    assert applied(MODEL, result["fixes"][0]) == MODEL.replace("x.sum() < 0", "flag").replace("return x\n", "return x.clone()\n")
    assert applied(MODEL, result["fixes"][1]) == MODEL.replace("            return -x\n", "")
    first = result["fixes"][0]["artifactChanges"][0]["replacements"][0]["deletedRegion"]
    assert first["startColumn"] == 9, "VS Code would move the start past the indentation"


@pytest.mark.parametrize(("length", "is_kept"), [(10_000, True), (10_001, False)])
def test_long_lines_around_an_edit_are_left_out(length: int, is_kept: bool, tmp_path: pathlib.Path, read: Read) -> None:
    file = source(tmp_path, f"y = {'x' * (length - 4)}\n")
    context = make_context()
    fix = Fix("Rename it.", Confidence.SAFE, edits=(Edit(file, Region(1, 1, 1, 2), "z"),))
    context.report(DataDependentBranch(condition="x"), at=Location(file, Region(1)), fixes=[fix])
    (result,) = results(read(context.log()))
    (replacement,) = result["fixes"][0]["artifactChanges"][0]["replacements"]
    assert replacement["deletedRegion"]["snippet"]["text"] == "y"
    assert [len(each) for each in replacement.get("properties", {}).values()] == [length] * is_kept


def applied(text: str, fix: Mapping[str, Any]) -> str:
    """`text` (of the Basic Multilingual Plane) after `fix`."""
    starts = [0, *itertools.accumulate(len(line) for line in text.splitlines(keepends=True))]
    (change,) = fix["artifactChanges"]
    edits = []
    for replacement in change["replacements"]:
        region = replacement["deletedRegion"]
        start = starts[region["startLine"] - 1] + region["startColumn"] - 1
        end = starts[region["endLine"] - 1] + region["endColumn"] - 1
        edits.append((start, end, replacement.get("insertedContent", {"text": ""})["text"]))
    for start, end, inserted in sorted(edits, reverse=True):
        text = text[:start] + inserted + text[end:]
    return text


@pytest.mark.parametrize(
    "text",
    [
        "NUL \0 and \x1b[31mred\x1b[0m",
        "half of a pair \ud83d and its other half \udc00",
        "</script><!--",
        "two\nlines\r\nand\ttabs\u2028\u0085",
        "{0} {1} {} {{condition}}",
        "[link](1) **bold** `code`",
        '"quotes" and \\backslashes\\',
        "x" * 100_000,
        "😀模型",
        "",
    ],
    ids=lambda text: text[:12].encode("unicode_escape").decode(),
)
def test_any_text_is_only_data(tmp_path: pathlib.Path, text: str) -> None:
    file = source(tmp_path)
    context = make_context()
    context.subject = text.replace("\0", "")
    context.environment[text] = text
    context.event(text)
    evidence = Evidence(
        location=Location(file, Region(6), text, text, text),
        stack=(Location(text, Region(3), text, text, text),),
        code_flow=(Step(text), Step("", "onnx", text), Step(text, "captured", text)),
        related=(Location(text, message=text),),
    )
    fixes = (Fix(f"Do {text}", Confidence.GUESS, (Edit(file, Region(6), text),), text),)
    context.graph("captured", lambda: GraphText("captured", f"{text}\n", {text: (1, text)}))
    context.report(DataDependentBranch(condition=text), at=evidence, notes=[text], fixes=fixes, cause=ValueError(text))
    path = tmp_path / "log.sarif"
    sarif.write(context.log(), path)
    (result,) = results(check_log(path))
    shown = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    argument = result["message"]["arguments"][0].replace("\u2060", "")
    assert argument == shown or (len(shown) > len(argument) and "characters omitted" in argument)
    assert "](1)" not in result["message"]["arguments"][0], "readers would make a link of it"


def test_the_same_log_gives_the_same_bytes(tmp_path: pathlib.Path) -> None:
    file = source(tmp_path)

    def log() -> Log:
        context = make_context()
        context.report(DataDependentBranch(condition="x"), at=at(file, "x.sum()"))
        context.report(TrainingMode(layers=("Dropout", "BatchNorm2d")))
        return context.log()

    first = log()
    assert sarif.to_json(first, tmp_path) == sarif.to_json(first, tmp_path) == sarif.to_json(log(), tmp_path)


def test_many_findings(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1000
    file = source(tmp_path, "".join(f"y{number} = x{number}.item()\n" for number in range(count)))
    reads: list[str] = []

    def counted(how: str, read: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: object, *more: Any) -> Any:
            if str(path) == file:
                reads.append(how)
            return read(path, *more)

        return call

    def size(findings: int) -> int:
        context = make_context()
        for number in range(findings):
            context.report(DataDependentBranch(condition=f"x{number}"), at=Location(file, Region(number + 1)))
        log = context.log()
        linecache.clearcache()
        with monkeypatch.context() as patch:
            patch.setattr(tokenize, "open", counted("lines", tokenize.open))
            patch.setattr(pathlib.Path, "read_bytes", counted("bytes", pathlib.Path.read_bytes))
            text = sarif.to_json(log, tmp_path)
        assert text.count('"ruleId"') == findings
        return len(text)

    half = size(count // 2)
    assert size(count) < 2.1 * half
    assert sorted(reads) == ["bytes", "bytes", "lines", "lines"], "a log reads each file once for its lines, and once for GitHub's hashes"


@pytest.mark.parametrize(
    "damage",
    [
        lambda result: result.pop("level"),
        lambda result: result.update(level="fatal"),
        lambda result: result.update(ruleIndex=7),
        lambda result: result.update(rank=1.0),
        lambda result: result["message"].update(text="Another text."),
        lambda result: physical(result)["region"].update(byteOffset=0),
        lambda result: physical(result)["region"].pop("endColumn"),
        lambda result: physical(result)["contextRegion"].update(startLine=7),
        lambda result: physical(result)["artifactLocation"].update(uri="my model.py"),
        lambda result: physical(result)["artifactLocation"].update(uri="/model.py"),
        lambda result: result.update(suppressions=[{"kind": "inSource", "state": "accepted"}]),
        lambda result: result.update(relatedLocations=[]),
    ],
)
def test_the_check_refuses(tmp_path: pathlib.Path, read: Read, damage: Callable[[dict[str, Any]], object]) -> None:
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=at(source(tmp_path), "x.sum()"))
    content = read(context.log())
    damage(results(content)[0])
    with pytest.raises((AssertionError, IndexError)):
        check_log(content)
