"""`onnxplain baseline accept`: the file of accepted findings."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Sequence

import pytest
from gate_logs import BASELINE, IGNORED, LOG, accepted, run, text, write
from logs import context

from onnxplain.diagnostics import ExportFailed, Location, Region, sarif
from onnxplain.rules import DataDependentBranch, WriteFailed

pytestmark = pytest.mark.usefixtures("here")


def test_what_was_accepted_passes(here: pathlib.Path) -> None:
    outside = here.parent / f"{here.name}-other.py"
    write(["a  # E", "b  # W", IGNORED], file=str(outside))
    told = run("baseline", "accept", LOG)
    assert told.exit_code == 0
    assert told.stdout.count("error[OXP1002]") == 1
    assert run("gate", LOG, "--baseline", BASELINE, "--max-warnings", "0").exit_code == 0
    (made,) = accepted()["runs"]
    assert [each["ruleId"] for each in made["results"]] == ["OXP1002", "OXP1007"]
    assert made["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": outside.name}


def test_the_baseline_tells_nothing_of_the_machine(here: pathlib.Path) -> None:
    source = here / "net.py"
    source.write_text("torch.rand(2)\n" * 3, encoding="utf-8")
    made = context()
    error = RuntimeError(f"secret in {here}")
    at = Location(str(source), Region(1), "forward", "blocks.0")
    made.report(DataDependentBranch(condition=f"open('{here}/net.txt')"), at=at, notes=[str(here)], cause=error)
    with pytest.raises(ExportFailed), made.stage("capture"):
        raise made.fail(WriteFailed(path=f"{here}/net.onnx", error=f"OSError: {here}/net.onnx is full"), cause=error)
    sarif.write(made.log(), pathlib.Path(LOG))
    assert run("baseline", "accept", LOG).exit_code == 0
    accepted()
    text = pathlib.Path(BASELINE).read_text(encoding="utf-8")
    assert not [word for word in (str(here), "file:", "torch.rand", "secret", "Utc", "2026") if word in text]
    assert "net.onnx" in text
    assert "blocks.0" in text


def test_the_baseline_changes_only_with_the_findings() -> None:
    for model in ("Two", "One", "net/work"):
        write(["a  # E", "b  # W", "a  # E"], f"{model[:3]}.sarif", model=model)
    assert run("baseline", "accept", "Two.sarif", "One.sarif").exit_code == 0
    first = pathlib.Path(BASELINE).read_bytes()
    assert run("baseline", "accept", "One.sarif", "Two.sarif").exit_code == 0
    assert run("baseline", "accept", "Two.sarif").exit_code == 0
    assert pathlib.Path(BASELINE).read_bytes() == first
    assert first.count(b"\n") > 50, "a diff has lines to show"
    assert run("baseline", "accept", "net.sarif").exit_code == 0
    assert [made["automationDetails"]["id"] for made in accepted()["runs"]] == [
        f"onnx-export/{each}/" for each in ("One", "Two", "net/work")
    ]


def test_accept_updates_its_models_only() -> None:
    write(["a  # E", "b  # E"], "one.sarif", model="One")
    write(["a  # E"], "two.sarif", model="Two")
    run("baseline", "accept", "one.sarif", "two.sarif")
    before = accepted()["runs"]
    write(["b  # E", "c  # E"], "one.sarif", model="One")
    told = run("baseline", "accept", "one.sarif").stdout
    assert re.findall(r"^(\w+):$|'(\w)\.", told, re.MULTILINE) == [("Added", ""), ("", "c"), ("Removed", ""), ("", "a")]
    one, two = accepted()["runs"]
    assert (one != before[0], two) == (True, before[1])
    write(["a"], "one.sarif", model="One")
    assert run("baseline", "accept", "one.sarif").exit_code == 0
    assert [len(made["results"]) for made in accepted()["runs"]] == [0, 1]


def test_a_failed_export_can_be_accepted() -> None:
    write(["a  # E"])
    assert json.loads(text())["runs"][0]["invocations"][0]["executionSuccessful"] is False
    run("baseline", "accept", LOG, "--baseline", "ci/known.sarif")
    assert run("gate", LOG, "--baseline", "ci/known.sarif").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [(), (LOG, LOG), (LOG, "--baseline", LOG), (LOG, "--baseline", "."), (LOG, "--baseline", "other.sarif")]
)
def test_bad_usage_of_accept(arguments: Sequence[str]) -> None:
    write(["a  # E"])
    write(["a  # E"], "other.sarif", model="Other")
    before = pathlib.Path("other.sarif").read_bytes()
    assert run("baseline", "accept", *arguments).exit_code == 2
    assert pathlib.Path("other.sarif").read_bytes() == before, "a log is no baseline to write over"
    assert not pathlib.Path(BASELINE).exists()


def test_a_file_that_is_a_log_in_part_is_no_baseline() -> None:
    write(["a  # E"])
    assert run("baseline", "accept", LOG).exit_code == 0
    (kept,) = accepted()["runs"]
    mixed = json.loads(text())
    mixed["runs"] = [kept, {**mixed["runs"][0], "automationDetails": {"id": "onnx-export/Other/"}}]
    before = json.dumps(mixed)
    pathlib.Path(BASELINE).write_text(before, encoding="utf-8")
    assert run("baseline", "accept", LOG).exit_code == 2
    assert pathlib.Path(BASELINE).read_text(encoding="utf-8") == before


@pytest.mark.parametrize(("versions", "newest"), [(("0.0.9", "0.0.10"), "0.0.10"), (("0.1.0", "0.1.0rc1"), "0.1.0")])
def test_a_baseline_is_as_new_as_the_newest_of_its_logs(versions: Sequence[str], newest: str) -> None:
    """A gate refuses a log that a newer onnxplain wrote, so the baseline has to name that one."""
    for order in (versions, versions[::-1]):
        for number, version in enumerate(order):
            write([f"line{number}  # E"], f"{number}.sarif")
            content = json.loads(pathlib.Path(f"{number}.sarif").read_text(encoding="utf-8"))
            content["runs"][0]["tool"]["driver"]["semanticVersion"] = version
            pathlib.Path(f"{number}.sarif").write_text(json.dumps(content), encoding="utf-8")
        assert run("baseline", "accept", "0.sarif", "1.sarif").exit_code == 0
        (made,) = accepted()["runs"]
        assert made["tool"]["driver"]["semanticVersion"] == newest
        assert len(made["results"]) == 2


def test_nothing_is_written_that_is_too_large_to_be_read(here: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(["a  # E"])
    size = (here / LOG).stat().st_size
    for module in ("baseline", "verdict"):
        monkeypatch.setattr(f"onnxplain.diagnostics.gate.{module}.SIZE_LIMIT", 100)
    told = run("baseline", "accept", LOG)
    assert (told.exit_code, (here / BASELINE).exists()) == (2, False), told.output
    monkeypatch.setattr("onnxplain.diagnostics.gate.baseline.SIZE_LIMIT", 10**6)
    assert run("baseline", "accept", LOG).exit_code == 0
    assert run("gate", LOG, "--baseline", BASELINE).exit_code == 0
    assert (here / LOG).stat().st_size == size
