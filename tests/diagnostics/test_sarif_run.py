"""The run of a SARIF log: rules, invocation, notifications, artifacts, and checkout."""

from __future__ import annotations

import logging
import pathlib
import subprocess

import pytest
from sarif_logs import Read, at, make_context, source

from onnxplain.diagnostics import Added, Deprecated, Evidence, ExportFailed, Level, Renamed, Rule
from onnxplain.rules import DataDependentBranch, ExportCutShort, NameChanged, TrainingMode, UnsupportedOperator


def test_rules_are_those_reported_by_id(read: Read) -> None:
    context = make_context()
    context.report(NameChanged(kind="input", asked="x", given="x_1"))
    context.report(UnsupportedOperator(operator="my::op"))
    context.report(NameChanged(kind="output", asked="x", given="x_2"))
    run = read(context.log())["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["OXP3001", "OXP4001"]
    assert [result["ruleIndex"] for result in run["results"]] == [0, 1, 1]
    assert rules[0]["messageStrings"]["default"]["text"].count("{") == 1
    assert rules[0]["helpUri"] == "https://example.com/blob/main/rules/CATALOG.md#oxp3001-unsupportedoperator"
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
    history = [Added("0.1.0"), Renamed("0.2.0", "Young", "Aged"), Deprecated("0.3.0", "OXP7901")]
    body = {"__doc__": page, "message": "It aged.", "__annotations__": {}, "__module__": __name__}
    aged = type("Aged", (Rule,), body, id="OXP7999", level=Level.NOTE, history=history)

    context = make_context()
    context.report(aged())
    run = read(context.log())["runs"][0]
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["deprecatedNames"] == ["Young"]
    assert rule["properties"]["deprecated"] == {"version": "0.3.0", "replacement": "OXP7901"}
    assert rule["properties"]["problem.severity"] == "recommendation"
    assert len(rule["fullDescription"]["text"]) == 1024
    assert run["results"][0]["message"] == {"id": "default", "text": "It aged."}


def test_an_internal_error_is_also_a_notification(read: Read) -> None:
    context = make_context()
    with pytest.raises(ExportFailed) as failed, context.stage("build"):
        raise KeyError("boom: x")
    run = read(failed.value.log)["runs"][0]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert notification["level"] == "error"
    assert notification["associatedRule"] == {"id": "OXP0001", "index": 0}
    assert notification["exception"] == {"kind": "KeyError", "message": "'boom: x'"}
    assert (run["results"][0]["ruleId"], run["results"][0]["properties"]["cause"]) == ("OXP0001", "KeyError: 'boom: x'")
    assert run["properties"]["onnxplain/stages"] == [{"name": "build", "seconds": 0.125, "completed": False}]


def test_other_findings_are_no_notifications(read: Read) -> None:
    context = make_context()
    with pytest.raises(ExportFailed) as failed, context.stage("capture"):
        raise context.fail(DataDependentBranch(condition="x"))
    assert "toolExecutionNotifications" not in read(failed.value.log)["runs"][0]["invocations"][0]


def test_an_interrupted_export_has_a_finding_in_its_stage(read: Read) -> None:
    context = make_context()
    with pytest.raises(KeyboardInterrupt) as interrupted, context.stage("build"):
        raise KeyboardInterrupt
    log = context.interrupted("KeyboardInterrupt", interrupted.value)
    assert [(finding.rule.id, finding.blocking) for finding in log.findings] == [("OXP0002", True)]
    assert [finding.rule for finding in log.findings] == [ExportCutShort(stage="build", reason="KeyboardInterrupt")]
    assert not log.succeeded
    (invocation,) = read(log)["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    log = make_context().interrupted("Killed", KeyboardInterrupt())
    assert [finding.rule for finding in log.findings] == [ExportCutShort(stage="", reason="Killed")]


def test_the_log_of_an_export_that_may_be_killed_has_the_finding_first() -> None:
    context = make_context()
    with context.stage("capture"):
        context.report(TrainingMode(layers=("dropout",)))
    log = context.log_if_killed("build")
    assert [finding.rule.id for finding in log.findings] == ["OXP0002", "OXP1007"]
    assert [(stage.name, stage.completed) for stage in log.stages] == [("capture", True), ("build", False)]
    assert not log.succeeded


VALUES = {
    "MY_SETTING": ("abcd1234efgh", True),
    "MY_SHORT_SETTING": ("abcd1234", True),
    "MY_TOKEN": ("letters-only", True),
    "MY_PASSWORD": ("two words here", True),
    "MY_NAME": ("other-letters", False),
    "MY_NUMBER": ("12345678", False),
    "MY_SENTENCE": ("abcd 1234 efgh", False),
    "MY_KEY": ("abc1234", True),
    "OTHER_KEY": ("ab3", False),
    "MY_KEYS": ("abc1234", False),
}


@pytest.mark.parametrize(("name", "value", "is_hidden"), [(name, *each) for name, each in VALUES.items()], ids=VALUES)
def test_values_of_the_environment_that_look_like_secrets(
    monkeypatch: pytest.MonkeyPatch, read: Read, name: str, value: str, is_hidden: bool
) -> None:
    monkeypatch.setenv(name, value)
    context = make_context()
    context.report(UnsupportedOperator(operator=f"my::{value}"))
    (result,) = read(context.log())["runs"][0]["results"]
    assert result["message"]["arguments"][0] == (f"my::${name}" if is_hidden else f"my::{value}")


def test_messages_of_places_hide_them_as_well(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, read: Read) -> None:
    monkeypatch.setenv("MY_TOKEN", "letters-only")
    place = at(source(tmp_path), "x.sum()")
    context = make_context()
    context.report(TrainingMode(layers=("a",)), at=Evidence(place, related=(place.saying("letters-only"), place.saying(""))))
    (result,) = read(context.log())["runs"][0]["results"]
    assert next(each["message"]["text"] for each in result["relatedLocations"]) == "$MY_TOKEN"


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
    assert found[0]["timeUtc"] == "2026-01-01T00:00:00.250Z"


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
    assert run["properties"]["onnxplain/environment"]["torch"] == "2.13.0"


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
    ],
)
def test_the_checkout_is_named_without_secrets(tmp_path: pathlib.Path, read: Read, remote: str, uri: str) -> None:
    revision = in_checkout(tmp_path, remote)
    context = make_context()
    context.report(DataDependentBranch(condition="x"), at=at(source(tmp_path), "x.sum()"))
    (provenance,) = read(context.log())["runs"][0]["versionControlProvenance"]
    assert provenance == {
        "repositoryUri": uri,
        "revisionId": revision,
        "branch": "refs/heads/main",
        "mappedTo": {"uriBaseId": "SRCROOT"},
    }
    subprocess.run(["git", "checkout", "-q", "--detach"], cwd=tmp_path, check=True)
    assert "branch" not in read(context.log())["runs"][0]["versionControlProvenance"][0]


@pytest.mark.parametrize("remote", ["https://[broken", "../elsewhere", "file:///srv/name.git", ""])
def test_a_checkout_without_a_page_is_not_named(tmp_path: pathlib.Path, read: Read, remote: str) -> None:
    in_checkout(tmp_path, remote)
    assert "versionControlProvenance" not in read(make_context().log())["runs"][0]


def test_no_checkout_is_named_where_there_is_none(tmp_path: pathlib.Path, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "versionControlProvenance" not in read(make_context().log())["runs"][0]
    (tmp_path / ".git").mkdir()
    assert "versionControlProvenance" not in read(make_context().log())["runs"][0], "no commit"
    monkeypatch.setenv("PATH", "")
    assert "versionControlProvenance" not in read(make_context().log())["runs"][0], "no git"
