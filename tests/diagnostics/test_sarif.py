"""SARIF logs: valid, complete, exact about places, the same for the same log, and never half-written."""

from __future__ import annotations

import gzip
import itertools
import json
import linecache
import logging
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import torch
from click.testing import CliRunner
from sarif_checks import OASIS_SCHEMA, check_log

import onnxplain
from onnxplain import schemas
from onnxplain.diagnostics import (
    Added,
    Confidence,
    Deprecated,
    DiagnosticContext,
    DiagnosticOptions,
    Edit,
    Evidence,
    ExportFailed,
    Fix,
    GraphText,
    Level,
    Location,
    Log,
    Region,
    Renamed,
    Rule,
    SarifProfile,
    Step,
    Tool,
    fingerprint,
    sarif,
)
from onnxplain.diagnostics.sarif import places, run
from onnxplain.rules import (
    CheckDropped,
    DataDependentBranch,
    InternalError,
    LoopUnrolled,
    NameChanged,
    OutputsDiffer,
    RuntimeRejected,
    TrainingMode,
    UnsupportedOperator,
    UnusedInput,
    UserCodeRaised,
)

MODEL = """\
import torch


class Flip(torch.nn.Module):
    def forward(self, x):
        if x.sum() < 0:
            return -x
        return x
"""

Read = Callable[[Log], dict[str, Any]]


def make_context(places: Callable[[], tuple[Location, ...]] = tuple, **options: Any) -> DiagnosticContext:
    return DiagnosticContext(
        tool=Tool("onnxplain", "0.1.0", "https://example.org/onnxplain"),
        subject="Flip",
        options=DiagnosticOptions(**options),
        internal_error=lambda stage, error: InternalError(stage=stage, error=type(error).__name__),
        clock=itertools.count(1_700_000_000).__next__,
        places=places,
    )


def source(folder: pathlib.Path, text: str = MODEL, name: str = "model.py") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def at(file: str, blamed: str, **more: str) -> Location:
    """The first place where `blamed` stands in `file`."""
    for number, line in enumerate(pathlib.Path(file).read_text(encoding="utf-8").splitlines(), 1):
        if blamed in line:
            column = line.index(blamed) + 1
            return Location(file, Region(number, column, number, column + len(blamed)), **more)
    raise AssertionError(f"{blamed!r} is not in {file}")


@pytest.fixture
def read(tmp_path: pathlib.Path) -> Read:
    """A log as checked SARIF, relative to tmp_path."""
    return lambda log: check_log(json.loads(sarif.to_json(log, tmp_path)))


def results(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = content["runs"][0]["results"]
    return found


def physical(result: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = result["locations"][0]["physicalLocation"]
    return found


def test_the_standard_schema_is_at_hand() -> None:
    if not OASIS_SCHEMA.exists():
        pytest.skip(f"{OASIS_SCHEMA} is missing: logs are checked against our own schema only")


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
    assert content["runs"][0]["originalUriBaseIds"]["SRCROOT"]["uri"] == tmp_path.as_uri() + "/"
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


def test_rules_are_those_reported_by_id(read: Read) -> None:
    context = make_context()
    context.report(NameChanged(kind="input", asked="x", given="x_1"))
    context.report(UnsupportedOperator(operator="my::op", nearest="aten::add"))
    context.report(NameChanged(kind="output", asked="x", given="x_2"))
    run = read(context.log())["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["OXP3001", "OXP4001"]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 1, 1]
    assert rules[0]["messageStrings"]["default"]["text"].count("{") == 2
    assert rules[0]["helpUri"] == "https://example.org/onnxplain/blob/main/rules/CATALOG.md#oxp3001-unsupportedoperator"
    assert rules[1]["properties"] == {
        "tags": ["build", "onnx"],
        "precision": "high",
        "problem.severity": "warning",
        "revision": 1,
        "since": "0.1.0",
        "history": ["0.1.0: added."],
        "arguments": ["kind", "asked", "given"],
    }


def test_history_and_long_pages(monkeypatch: pytest.MonkeyPatch, read: Read) -> None:
    monkeypatch.setattr(Rule, "_book", {})
    example = "```python\npass\n```"
    page = (
        f"It aged.\n\nWhat happened:\n    {'So much. ' * 200}\n\nWhy it matters:\n    It does.\n\n"
        f"How to fix it:\n    Wait.\n\nExample:\n    {example}\n\n    {example}\n"
    )
    history = [Added("0.1.0"), Renamed("0.2.0", "Young", "Aged"), Deprecated("0.3.0", "OXP7001")]
    body = {"__doc__": page, "message": "It aged.", "__annotations__": {}, "__module__": __name__}
    aged = type("Aged", (Rule,), body, id="OXP7999", level=Level.NOTE, history=history)

    context = make_context()
    context.report(aged())
    run = read(context.log())["runs"][0]
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["deprecatedNames"] == ["Young"]
    assert rule["properties"]["deprecated"] == {"version": "0.3.0", "replacement": "OXP7001"}
    assert rule["properties"]["problem.severity"] == "recommendation"
    assert len(rule["fullDescription"]["text"]) == 1024
    assert run["results"][0]["message"] == {"id": "default", "text": "It aged."}


def test_columns_are_utf16_code_units(tmp_path: pathlib.Path, read: Read) -> None:
    line = 'name = "模型 😀😀"; y = x.item() + 1\n'
    file = source(tmp_path, f"import torch\n{line}")
    context = make_context()
    context.report(DataDependentBranch(condition="x.item()"), at=at(file, "x.item()"))
    region = physical(results(read(context.log()))[0])["region"]
    start = len(line[: line.index("x.item()")].encode("utf-16-le")) // 2 + 1
    assert start == line.index("x.item()") + 3
    assert region == {
        "startLine": 2,
        "startColumn": start,
        "endLine": 2,
        "endColumn": start + len("x.item()"),
        "snippet": {"text": "x.item()"},
    }


def test_whole_line_begins_after_its_indentation(tmp_path: pathlib.Path, read: Read) -> None:
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=Location(source(tmp_path), Region(7)))
    region = physical(results(read(context.log()))[0])["region"]
    assert region.pop("properties") == {"wholeLine": True}
    assert region == {"startLine": 7, "startColumn": 13, "endLine": 7, "endColumn": 22, "snippet": {"text": "return -x"}}


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("my model.py", "my%20model.py"),
        ("src/模型#1?.py", "src/%E6%A8%A1%E5%9E%8B%231%3F.py"),
        ("100%.py", "100%25.py"),
        ("c:x.py", "c%3Ax.py"),
    ],
)
def test_uris_below_the_root_are_relative_and_encoded(tmp_path: pathlib.Path, read: Read, name: str, uri: str) -> None:
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=at(source(tmp_path, name=name), "return"))
    (result,) = results(read(context.log()))
    assert physical(result)["artifactLocation"] == {"uri": uri, "uriBaseId": "SRCROOT"}
    assert "primaryLocationLineHash" in result["partialFingerprints"]


def test_uris_outside_the_root_are_absolute(tmp_path: pathlib.Path) -> None:
    file = source(tmp_path / "other place")
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=at(file, "return"))
    content = check_log(json.loads(sarif.to_json(context.log(), tmp_path / "root")))
    assert physical(results(content)[0])["artifactLocation"] == {"uri": pathlib.Path(file).as_uri()}


def test_uris_have_no_dots_and_follow_links(tmp_path: pathlib.Path, read: Read) -> None:
    file = source(tmp_path / "src")
    (tmp_path / "a").mkdir()
    link = tmp_path.with_name(f"{tmp_path.name}-link")
    link.symlink_to(tmp_path)
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=Location(str(tmp_path / "a/../src/model.py"), Region(6)))
    context.report(DataDependentBranch(condition="y"), at=Location(str(link / "src/model.py"), Region(6)))
    assert pathlib.Path(file).exists()
    assert {physical(result)["artifactLocation"]["uri"] for result in results(read(context.log()))} == {"src/model.py"}


@pytest.mark.parametrize("name", ["<stdin>", "<eval_with_key>.1 from model.py:3"])
def test_source_in_no_file(read: Read, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(linecache.cache, name, (7, None, ["y = x\n"], name))
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=Location(name, Region(1, 5, 1, 6)))
    (result,) = results(read(context.log()))
    assert "uriBaseId" not in physical(result)["artifactLocation"]
    assert physical(result)["region"]["snippet"] == {"text": "x"}
    assert "primaryLocationLineHash" in result["partialFingerprints"]


@pytest.mark.parametrize(
    ("text", "region", "around"),
    [
        ("only = 1\n", Region(1), None),
        ("only = 1", Region(1, 1, 1, 5), (1, 1)),
        ("a\nb\nc\nd\ne\nf\n", Region(1), (1, 3)),
        ("a\nb\nc\nd\ne\nf\n", Region(3, 1, 4, 2), (1, 6)),
        ("a\nb\nc\nd\ne\nf", Region(6), (4, 6)),
    ],
)
def test_context_is_a_proper_superset_inside_the_file(
    tmp_path: pathlib.Path, read: Read, text: str, region: Region, around: tuple[int, int] | None
) -> None:
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=Location(source(tmp_path, text), region))
    found = physical(results(read(context.log()))[0]).get("contextRegion")
    assert (found and (found["startLine"], found["endLine"])) == around


@pytest.mark.parametrize(
    ("region", "expected"),
    [
        (Region(4), None),
        (Region(0), None),
        (Region(2, 3, 99, 7), (2, 3, 3, 5)),
        (Region(2, 99), (2, 5, 2, 5)),
        (Region(2, 3, 2, 1), (2, 3, 2, 5)),
        (Region(2, -3, 1, -3), (2, 1, 2, 5)),
    ],
)
def test_regions_stay_inside_the_file(
    tmp_path: pathlib.Path, read: Read, region: Region, expected: tuple[int, int, int, int] | None
) -> None:
    file = source(tmp_path, "aaaa\nbbbb\ncccc\n")
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=Location(file, region))
    found = physical(results(read(context.log()))[0]).get("region")
    assert (found and (found["startLine"], found["startColumn"], found["endLine"], found["endColumn"])) == expected


def test_source_that_is_not_at_hand(read: Read) -> None:
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=Location("/nowhere/model.py", Region(3, 5, 3, 9)))
    context.report(DataDependentBranch(condition="y"), at=Location("", module="encoder"))
    context.report(DataDependentBranch(condition="z"))
    unseen, module, nowhere = results(read(context.log()))
    assert physical(unseen) == {"artifactLocation": {"uri": "file:///nowhere/model.py"}, "region": {"startLine": 3, "endLine": 3}}
    assert module["locations"] == [{"logicalLocations": [{"fullyQualifiedName": "encoder", "index": 1, "kind": "module"}]}]
    assert "locations" not in nowhere
    assert "primaryLocationLineHash" not in unseen["partialFingerprints"]


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
        context.report(UnsupportedOperator(operator="my::op", nearest="aten::add"), at=Location(file, Region(line)))
    (result,) = results(read(context.log()))
    assert result["occurrenceCount"] == result["properties"]["occurrences"] == 4
    lines = [location["physicalLocation"]["region"]["startLine"] for location in result["relatedLocations"]]
    assert (physical(result)["region"]["startLine"], lines) == (6, [7, 8])


CAPTURED = GraphText("captured", "# The captured graph.\nx = input\nsum_1 = aten.sum.default(x)\n", {"x": (2, ""), "sum_1": (3, "")})
ONNX = GraphText("onnx", "# The ONNX graph.\ns = ReduceSum(x)\n", {"sum_1": (2, "translated to ReduceSum (ONNX)")})


def with_way(file: str) -> DiagnosticContext:
    """A finding with a stack, a way through two graphs, and related places."""
    place = at(file, "x.sum()", function="forward")
    evidence = Evidence(
        location=place,
        stack=(at(file, "class Flip", function="<module>"), place),
        code_flow=(
            Step("the source calls sum"),
            Step("captured as aten.sum.default", "captured", "sum_1"),
            Step("decomposed to nothing", "prepared", "sum_1"),
            Step("", "onnx", "sum_1"),
            Step("", "onnx", "elsewhere"),
        ),
        related=(at(file, "class Flip").saying("The module."), at(file, "return -x"), Location("")),
    )
    context = make_context()
    context.graph("captured", lambda: CAPTURED)
    context.graph("onnx", lambda: ONNX)
    context.report(DataDependentBranch(condition="x"), at=evidence)
    return context


def test_way_to_the_finding(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "logs/flip.sarif"
    sarif.write(with_way(source(tmp_path)).log(), path, base=tmp_path)
    (result,) = results(check_log(path))

    (flow,) = result["codeFlows"]
    steps = flow["threadFlows"][0]["locations"]
    assert all(step["nestingLevel"] >= 1 for step in steps)
    told = [step["location"] for step in steps]
    assert [step["message"]["text"] for step in told] == [
        "the source calls sum",
        "captured as aten.sum.default",
        "decomposed to nothing",
        "translated to ReduceSum (ONNX)",
    ]
    places = [(step["physicalLocation"]["artifactLocation"]["uri"], step["physicalLocation"]["region"]["startLine"]) for step in told]
    assert places == [("model.py", 6), ("logs/flip.graphs/captured.txt", 3), ("model.py", 6), ("logs/flip.graphs/onnx.txt", 2)]
    for uri, line in places:
        assert "sum" in (tmp_path / uri).read_text(encoding="utf-8").splitlines()[line - 1].lower()
    assert not (tmp_path / "logs/flip.graphs/prepared.txt").exists()
    (stack,) = result["stacks"]
    assert stack["message"]["text"]
    assert [frame["location"]["logicalLocations"][0]["fullyQualifiedName"] for frame in stack["frames"]] == ["forward", "<module>"]
    assert [location["message"]["text"] for location in result["relatedLocations"]] == ["The module.", "return -x"]


def test_graphs_of_an_earlier_log_go_and_nothing_else(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "flip.sarif"
    sarif.write(with_way(source(tmp_path)).log(), path, base=tmp_path)
    assert sorted(each.name for each in (tmp_path / "flip.graphs").iterdir()) == ["captured.txt", "onnx.txt"]
    (tmp_path / "flip.graphs/mine.txt").touch()
    sarif.write(make_context().log(), path, base=tmp_path)
    assert [each.name for each in (tmp_path / "flip.graphs").iterdir()] == ["mine.txt"]
    (tmp_path / "flip.graphs/mine.txt").unlink()
    sarif.write(make_context().log(), path, base=tmp_path)
    assert not (tmp_path / "flip.graphs").exists()


def test_links_in_the_message(tmp_path: pathlib.Path, read: Read) -> None:
    file = source(tmp_path, "".join(f"y = x{number}\n" for number in range(12)))
    context = make_context()
    for number in range(12):
        context.report(
            UnsupportedOperator(operator="my::op", nearest="x[0](1)"), at=Location(file, Region(number + 1), module=f"m.{number}")
        )
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


def test_internal_error_is_a_notification_too(read: Read) -> None:
    context = make_context()
    with pytest.raises(ExportFailed) as failed, context.stage("build"):
        raise KeyError("boom: x")
    run = read(failed.value.log)["runs"][0]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["level"] == "error"
    assert notification["associatedRule"] == {"id": "OXP0001", "index": 0}
    assert notification["exception"] == {"kind": "KeyError", "message": "'boom: x'"}
    assert (run["results"][0]["ruleId"], run["results"][0]["properties"]["cause"]) == ("OXP0001", "KeyError: 'boom: x'")
    assert run["properties"]["onnxplain/stages"] == [{"name": "build", "seconds": 1, "completed": False}]


def test_events_are_notifications(read: Read) -> None:
    context = make_context(verbosity_level=logging.DEBUG)
    with context.stage("capture"):
        context.event("Tried the strategy non-strict", logging.DEBUG)
        context.event("It failed.", logging.ERROR)
    context.event(" ")
    found = read(context.log())["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert [(each["level"], each["message"]["text"], each["descriptor"]["id"]) for each in found] == [
        ("note", "Tried the strategy non-strict.", "stage/capture"),
        ("error", "It failed.", "stage/capture"),
    ]
    assert found[0]["timeUtc"] == "2023-11-14T22:13:22.000Z"


def test_artifacts(tmp_path: pathlib.Path, read: Read) -> None:
    path = tmp_path / "my model.onnx"
    context = make_context()
    context.environment["torch"] = "2.13.0"
    for text in ("old", "newer"):
        path.write_text(text)
        context.wrote(path, "resultFile", "ab" * 32)
    run = read(context.log())["runs"][0]
    assert run["artifacts"] == [
        {
            "hashes": {"sha-256": "ab" * 32},
            "length": 5,
            "location": {"uri": "my%20model.onnx", "uriBaseId": "SRCROOT"},
            "roles": ["resultFile"],
        }
    ]
    assert run["properties"]["onnxplain/environment"] == {"torch": "2.13.0"}


def test_the_same_log_gives_the_same_bytes(tmp_path: pathlib.Path) -> None:
    file = source(tmp_path)

    def log() -> Log:
        context = make_context()
        context.report(DataDependentBranch(condition="x"), at=at(file, "x.sum()"))
        context.report(TrainingMode(layers=("Dropout", "BatchNorm2d")))
        return context.log()

    first = log()
    assert sarif.to_json(first, tmp_path) == sarif.to_json(first, tmp_path) == sarif.to_json(log(), tmp_path)


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
        (UnsupportedOperator(operator="a::b", nearest="a::c"), UnsupportedOperator(operator="a::b", nearest="none"), True),
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

    branch, operator = DataDependentBranch(condition="x"), UnsupportedOperator(operator="a::b", nearest="none")
    assert known(branch, "if x.sum():\n") != known(branch, "if x.sum() < 0:\n")
    # A line that runs in several modules has one finding, at the first of them.
    assert known(branch, "if x.sum():\n", "a") == known(branch, "if x.sum():\n", "b")
    assert known(branch, "if x.sum():\n", "a", file=False) != known(branch, "if x.sum():\n", "b", file=False)
    # To accept another finding of the line changes its text.
    assert known(branch, "if x.sum():\n") == known(branch, "if x.sum():  # onnxplain: ignore[OXP1007] as it is\n")
    assert known(operator, "if x.sum():\n") == known(operator, "y = x.sum()\n"), "it is one finding, wherever it stands"


WINDOWS = "a\r\n\r \n\tb  c\r\r\n" + 'x = "😀"\n\n\nx = "😀"'


def test_line_hashes_are_those_of_github() -> None:
    # NOTE: these were computed by codeql-action's own code, src/fingerprints.ts.
    assert fingerprint.line_hashes("") == ["c129715d7a2bc9a3:1"]
    assert fingerprint.line_hashes(WINDOWS) == [
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
def test_line_hashes_equal_a_rolling_hash(text: str) -> None:
    assert fingerprint.line_hashes(text) == list(rolling_hashes(text))


def rolling_hashes(text: str) -> Iterator[str]:
    """The same hashes by GitHub's description: a hash that rolls over the file, read 100 characters after each line's start."""
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
    assert result["message"]["arguments"][0].replace("\u2060", "") == shown
    assert "](1)" not in result["message"]["arguments"][0], "readers would make a link of it"


def test_write(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=at(source(tmp_path), "x.sum()"))
    path = tmp_path / ".sarif/new/export.sarif"
    sarif.write(context.log(), path)
    run = check_log(path)["runs"][0]
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == tmp_path.as_uri() + "/"
    assert run["invocations"][0]["workingDirectory"]["uri"] == (tmp_path / "deeper").as_uri() + "/"
    assert [child.name for child in path.parent.iterdir()] == ["export.sarif"]
    assert path.read_bytes().count(b"\n") == 1


@pytest.mark.parametrize("before", [None, "the log of yesterday"])
def test_a_crash_leaves_no_half_written_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    path = tmp_path / "logs/export.sarif"
    path.parent.mkdir()
    if before is not None:
        path.write_text(before)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pathlib.Path, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        sarif.write(make_context().log(), path)
    assert [child.read_text() for child in path.parent.iterdir()] == ([] if before is None else [before])


def test_many_findings(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 2000
    file = source(tmp_path, "".join(f"y{number} = x{number}.item()\n" for number in range(count)))
    monkeypatch.setattr(run, "_LIMITS", {False: count})
    calls: list[str] = []

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            calls.append(name)
            return function(*args)

        return call

    def size(findings: int) -> int:
        context = make_context()
        for number in range(findings):
            context.report(DataDependentBranch(condition=f"x{number}"), at=Location(file, Region(number + 1)))
        text = sarif.to_json(context.log(), tmp_path)
        assert text.count('"ruleId"') == findings
        return len(text)

    half = size(count // 2)
    monkeypatch.setattr(places, "artifact_location", counted("path", places.artifact_location))
    monkeypatch.setattr(places, "_lines", counted("read", places._lines))
    monkeypatch.setattr(fingerprint, "line_hashes", counted("hash", fingerprint.line_hashes))
    assert size(count) < 2.1 * half
    assert sorted(calls) == ["hash", "path", "read"], "each file is read once"


@pytest.mark.parametrize("name", ["sarif-onnxplain", "baseline", "gate", "rules"])
def test_schemas_are_valid_and_closed(name: str) -> None:
    schema = schemas.load(name)
    jsonschema.Draft202012Validator.check_schema(schema)

    def walk(item: Any) -> Iterator[Mapping[str, Any]]:
        if isinstance(item, Mapping):
            yield item
        for value in item.values() if isinstance(item, Mapping) else item if isinstance(item, list) else ():
            yield from walk(value)

    assert all("additionalProperties" in item for item in walk(schema) if item.get("type") == "object")


def test_rules_as_json() -> None:
    from onnxplain.cli.rules import command

    printed = CliRunner().invoke(command, ["--json"], catch_exceptions=False).output
    jsonschema.Draft202012Validator(schemas.load("rules")).validate(json.loads(printed))


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


def in_checkout(folder: pathlib.Path, remote: str = "") -> str:
    """Makes `folder` a git checkout with one commit. Returns its hash."""

    def git(*command: str) -> str:
        done = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=folder, capture_output=True, check=True)
        return done.stdout.decode().strip()

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    if remote:
        git("remote", "add", "origin", remote)
    return git("rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("remote", "uri"),
    [
        ("https://github.com/owner/name.git", "https://github.com/owner/name"),
        ("https://me:secret@example.com:8443/a b/name", "https://example.com:8443/a%20b/name"),
        ("git@github.com:owner/name.git", "https://github.com/owner/name"),
        ("ssh://git@example.com:2222/owner/name.git", "https://example.com/owner/name"),
        ("https://[broken", None),
        ("../elsewhere", None),
        ("", None),
    ],
)
def test_the_checkout_is_named_without_secrets(tmp_path: pathlib.Path, read: Read, remote: str, uri: str | None) -> None:
    revision = in_checkout(tmp_path, remote)
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=at(source(tmp_path), "x.sum()"))
    (provenance,) = read(context.log())["runs"][0]["versionControlProvenance"]
    assert provenance == {
        "repositoryUri": uri or tmp_path.as_uri(),
        "revisionId": revision,
        "branch": "refs/heads/main",
        "mappedTo": {"uriBaseId": "SRCROOT"},
    }
    subprocess.run(["git", "checkout", "-q", "--detach"], cwd=tmp_path, check=True)
    assert "branch" not in read(context.log())["runs"][0]["versionControlProvenance"][0]


def test_no_checkout_is_named_where_there_is_none(tmp_path: pathlib.Path, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "versionControlProvenance" not in read(make_context().log())["runs"][0]
    (tmp_path / ".git").mkdir()
    assert "versionControlProvenance" not in read(make_context().log())["runs"][0], "no commit"
    monkeypatch.setenv("PATH", "")
    assert "versionControlProvenance" not in read(make_context().log())["runs"][0], "no git"


def for_github(log: Log, base: pathlib.Path) -> dict[str, Any]:
    content = check_log(json.loads(sarif.to_json(log, base, profile="github")))
    run: dict[str, Any] = content["runs"][0]
    return run


def test_github_gets_places_in_the_repository_only(tmp_path: pathlib.Path) -> None:
    inside, outside = source(tmp_path / "repo"), source(tmp_path / "elsewhere")
    installed = source(tmp_path / "repo/.venv/lib/site-packages/lib")
    context = make_context()
    context.report(DataDependentBranch(condition="a"), at=at(outside, "x.sum()"))
    context.report(
        DataDependentBranch(condition="b"),
        at=Evidence(at(installed, "x.sum()"), stack=(at(inside, "return x", function="forward"), at(installed, "x.sum()"))),
    )
    context.report(DataDependentBranch(condition="c"), at=Evidence(at(outside, "return x"), related=(at(inside, "class Flip"),)))
    context.report(DataDependentBranch(condition="d"), at=at(inside, "x.sum()"))
    context.report(TrainingMode(layers=("norm",)))
    log = context.log()
    run = for_github(log, tmp_path / "repo")
    shown = {result["message"]["arguments"][0]: physical(result)["region"]["startLine"] for result in run["results"]}
    assert shown == {"b": 8, "c": 4, "d": 6}
    assert {physical(result)["artifactLocation"]["uri"] for result in run["results"]} == {"model.py"}
    assert "elsewhere" not in json.dumps(run["results"])
    assert run["properties"]["onnxplain/leftOut"] == {"error": 1, "warning": 1}
    assert run["invocations"][0]["toolExecutionNotifications"][-1]["level"] == "warning"
    own = {result["guid"]: result["partialFingerprints"]["onnxplain/v1"] for result in run["results"]}
    full = json.loads(sarif.to_json(log, tmp_path / "repo"))["runs"][0]["results"]
    assert own.items() <= {result["guid"]: result["partialFingerprints"]["onnxplain/v1"] for result in full}.items()


def test_github_gets_the_model_where_a_finding_has_no_place(tmp_path: pathlib.Path) -> None:
    file = source(tmp_path)
    context = make_context(places=lambda: (at(file, "class Flip").saying("The model."),))
    context.report(TrainingMode(layers=("norm",)))
    run = for_github(context.log(), tmp_path)
    assert [physical(result)["region"]["startLine"] for result in run["results"]] == [4]
    assert "onnxplain/leftOut" not in run["properties"]


def test_github_gets_nothing_that_is_accepted_and_no_stacks_and_graphs(tmp_path: pathlib.Path) -> None:
    context = with_way(source(tmp_path))
    accepted = source(tmp_path, "if x:  # onnxplain: ignore[OXP1001] x is a bool\n    pass\n", "accepted.py")
    context.report(DataDependentBranch(condition="accepted"), at=at(accepted, "if x"))
    path = tmp_path / "github.sarif"
    assert sarif.write(context.log(), path, profile="github", base=tmp_path) == ()
    run = check_log(path)["runs"][0]
    (result,) = run["results"]
    assert result["message"]["arguments"][0] == "x"
    assert not result.keys() & {"stacks", "graphs"}
    steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["physicalLocation"]["region"]["startLine"] for step in steps] == [4, 6]
    assert "aten.sum.default" in steps[-1]["location"]["message"]["text"]
    assert not (tmp_path / "github.graphs").exists()
    assert "onnxplain/leftOut" not in run["properties"], "what is accepted does not count"


@pytest.mark.parametrize(("profile", "limit"), [("full", 1_000), ("github", 5_000)])
def test_limits_are_applied_and_said(tmp_path: pathlib.Path, profile: SarifProfile, limit: int) -> None:
    file = source(tmp_path, "".join(f"y{number} = x{number}.item()\n" for number in range(limit + 7)))
    context = make_context(levels={"OXP3001": Level.NOTE})
    for number in range(7):
        context.report(UnsupportedOperator(operator=f"my::{number}", nearest="none"), at=Location(file, Region(number + 1)))
    for number in range(limit):
        context.report(DataDependentBranch(condition=f"x{number}"), at=Location(file, Region(number + 1)))
    path = tmp_path / "log.sarif"
    (said,) = sarif.write(context.log(), path, profile=profile, base=tmp_path)
    run = json.loads(path.read_text(encoding="utf-8"))["runs"][0]
    assert len(run["results"]) == limit
    assert {result["level"] for result in run["results"]} == {"error"}, "the worst are kept"
    assert run["properties"]["onnxplain/leftOut"] == {"note": 7}
    assert run["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"] == said


def test_github_gets_no_file_beyond_its_limit(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = source(tmp_path, "".join(f"y{number} = x{number}.item()\n" for number in range(64)))
    context = make_context()
    for number in range(64):
        context.report(DataDependentBranch(condition=f"x{number}"), at=Location(file, Region(number + 1)))
    whole = len(gzip.compress(sarif.to_json(context.log(), tmp_path, profile="github").encode(), 1))
    monkeypatch.setattr(sarif, "_UPLOAD_LIMIT", whole * 2 // 3)
    run = for_github(context.log(), tmp_path)
    assert 0 < len(run["results"]) < 64
    assert run["properties"]["onnxplain/leftOut"] == {"error": 64 - len(run["results"])}


def test_columns_of_an_export_behind_other_scripts(load: Callable[..., ModuleType], tmp_path: pathlib.Path) -> None:
    if sys.version_info < (3, 11):
        pytest.skip("Python 3.10 knows no columns")
    module = load(
        """
        import torch

        class Solve(torch.nn.Module):
            def forward(self, x):
                label = "模型 😀😀"; y = torch.linalg.solve(x, x)
                return y
        """
    )
    path = tmp_path / "log.sarif"
    with pytest.raises(ExportFailed):
        onnxplain.export(module.Solve(), (torch.eye(3),), sarif=path)
    (result,) = results(check_log(path))
    region = physical(result)["region"]
    line = (tmp_path / "model.py").read_text(encoding="utf-8").splitlines()[region["startLine"] - 1].encode("utf-16-le")
    blamed = line[2 * (region["startColumn"] - 1) : 2 * (region["endColumn"] - 1)].decode("utf-16-le")
    assert blamed == region["snippet"]["text"] == "torch.linalg.solve(x, x)"
