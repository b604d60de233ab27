"""SARIF files: the code flow leads into the graphs beside the log, and no file is half-written."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import random
import stat
from typing import Any

import pytest
from sarif_checks import check_log
from sarif_logs import at, make_context, physical, results, source

from onnxplain.diagnostics import DiagnosticContext, Evidence, GraphText, Level, Location, Log, Region, SarifProfile, Step, sarif
from onnxplain.rules import DataDependentBranch, TrainingMode, UnsupportedOperator

CAPTURED = GraphText("captured", "# The captured graph.\nx = input\nsum_1 = aten.sum.default(x)\n", {"x": (2, ""), "sum_1": (3, "")})

ONNX = GraphText("onnx", "# The ONNX graph.\ns = ReduceSum(x)\n", {"sum_1": (2, "translated to ReduceSum (ONNX)")})


def with_way(file: str) -> DiagnosticContext:
    """A finding with a stack, a path through two graphs, and related places."""
    place = at(file, "x.sum()", function="forward")
    evidence = Evidence(
        location=place,
        stack=(at(file, "class Flip", function="<module>"), place),
        code_flow=(
            Step("the source calls sum"),
            Step("captured as aten.sum.default", "captured", "sum_1"),
            Step("decomposed to nothing", "prepared", "sum_1"),
            Step("gone from the graph", "captured", "elsewhere"),
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
        "gone from the graph",
        "translated to ReduceSum (ONNX)",
    ]
    places = [(step["physicalLocation"]["artifactLocation"]["uri"], step["physicalLocation"]["region"]["startLine"]) for step in told]
    assert places == [
        ("model.py", 6),
        ("logs/flip.graphs/captured.txt", 3),
        ("model.py", 6),
        ("model.py", 6),
        ("logs/flip.graphs/onnx.txt", 2),
    ]
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


def test_write(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "deeper").mkdir()
    monkeypatch.chdir(tmp_path / "deeper")
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=at(source(tmp_path), "x.sum()"))
    path = tmp_path / ".sarif/new/export.sarif"
    sarif.write(context.log(), path)
    run = check_log(path)["runs"][0]
    assert run["invocations"][0]["workingDirectory"] == {"uri": "deeper/", "uriBaseId": "SRCROOT"}
    assert [child.name for child in path.parent.iterdir()] == ["export.sarif"]
    assert path.read_bytes().count(b"\n") == 1


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, steps, real = tmp_path / "logs/export.sarif", list[str](), pathlib.Path.replace

    def sync(handle: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else f"{os.fstat(handle).st_size} bytes")

    def replace(temporary: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
        steps.append("replace")
        return real(temporary, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(pathlib.Path, "replace", replace)
    sarif.write(make_context().log(), path)
    assert steps == [f"{path.stat().st_size} bytes", "replace", *(["folder"] if os.name == "posix" else [])]


def test_permissions_stay(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "export.sarif"
    path.touch()
    path.chmod(0o640)
    sarif.write(make_context().log(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


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
    assert log.folder is not None
    assert "workingDirectory" not in for_github(log, log.folder)["invocations"][0]
    own = {result["guid"]: result["partialFingerprints"]["onnxplain/v1"] for result in run["results"]}
    full = json.loads(sarif.to_json(log, tmp_path / "repo"))["runs"][0]["results"]
    assert own.items() <= {result["guid"]: result["partialFingerprints"]["onnxplain/v1"] for result in full}.items()


def test_github_gets_the_model_where_a_finding_has_no_place(tmp_path: pathlib.Path) -> None:
    file = source(tmp_path)
    context = make_context(at(file, "class Flip").saying("The model."))
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
def test_limits_are_applied_and_told(tmp_path: pathlib.Path, profile: SarifProfile, limit: int) -> None:
    file = source(tmp_path, "".join(f"y{number} = x{number}.item()\n" for number in range(limit + 7)))
    context = make_context(levels={"OXP3001": Level.NOTE})
    for number in range(7):
        context.report(UnsupportedOperator(operator=f"my::{number}"), at=Location(file, Region(number + 1)))
    for number in range(limit):
        context.report(DataDependentBranch(condition=f"x{number}"), at=Location(file, Region(number + 1)))
    path = tmp_path / "log.sarif"
    (said,) = sarif.write(context.log(), path, profile=profile, base=tmp_path)
    run = json.loads(path.read_text(encoding="utf-8"))["runs"][0]
    assert len(run["results"]) == limit
    assert {result["level"] for result in run["results"]} == {"error"}, "the worst are kept"
    assert run["properties"]["onnxplain/leftOut"] == {"note": 7}
    assert run["invocations"][0]["toolExecutionNotifications"][-1]["message"]["text"] == said
    assert ("GitHub" in said) is (profile == "github")


def test_github_gets_no_file_beyond_its_limit(tmp_path: pathlib.Path) -> None:
    """GitHub refuses logs of more than 10 MB, compressed."""
    count, limit = 1_200, 10 * 10**6
    file = source(tmp_path, "".join(f"y{number} = x{number}.item()\n" for number in range(count)))
    context = make_context()
    noise = random.Random(0)
    for number in range(count):
        note = noise.randbytes(10_000).hex()
        context.report(DataDependentBranch(condition=f"x{number}"), at=Location(file, Region(number + 1)), notes=[note])
    path = tmp_path / "log.sarif"
    sarif.write(context.log(), path, profile="github", base=tmp_path)
    data = path.read_bytes()
    assert len(gzip.compress(data, 1)) <= limit
    run = json.loads(data)["runs"][0]
    assert 0 < len(run["results"]) < count
    assert run["properties"]["onnxplain/leftOut"] == {"error": count - len(run["results"])}
