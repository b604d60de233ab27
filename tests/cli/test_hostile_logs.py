"""What a log from somebody else can make `fix` and `report` do: nothing outside of the user's folder, and nothing that it does not tell."""

from __future__ import annotations

import copy
import os
import pathlib
import time
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from log_victim import SOURCE, Victim

import onnxplain
from onnxplain.cli import main
from onnxplain.diagnostics import visible


@pytest.fixture
def victim(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Victim:
    made = Victim(tmp_path)
    monkeypatch.chdir(made.root)
    return made


def test_an_honest_log_is_applied(victim: Victim) -> None:
    victim.save()
    assert victim.fix().exit_code == 0
    assert "torch.cond" in victim.source.read_text(encoding="utf-8")


FILES = {
    "another-file": "file://{outside}/secret.py",
    "absolute": "{outside}/secret.py",
    "upwards": "../outside/secret.py",
    "upwards-and-back": "sub/../net.py",
    "escaped-dots": "%2e%2e/outside/secret.py",
    "backslashes": "..\\outside\\secret.py",
    "another-host": "file://elsewhere/net.py",
    "the-web": "https://example.com/net.py",
    "link-to-a-file": "innocent.py",
    "link-to-a-folder": "linked/secret.py",
    "fifo": "pipe.py",
    "device": "zero.py",
    "folder": "folder.py",
    "no-python": "Makefile",
    "hook": ".git/hooks/post-checkout",
    "nothing": "",
    "nul": "net.py%00",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("recorded", [True, False], ids=["with-text", "without-text"])
def test_only_python_files_below_the_root_are_edited(victim: Victim, name: str, recorded: bool) -> None:
    (victim.root / "innocent.py").symlink_to(victim.secret)
    (victim.root / "linked").symlink_to(victim.outside)
    (victim.root / "zero.py").symlink_to("/dev/zero")
    (victim.root / "folder.py").mkdir()
    (victim.root / "Makefile").write_text("all:\n", encoding="utf-8")
    (victim.root / ".git" / "hooks").mkdir(parents=True)
    (victim.root / ".git" / "hooks" / "post-checkout").write_text("true\n", encoding="utf-8")
    os.mkfifo(victim.root / "pipe.py")

    def change(document: dict[str, Any]) -> None:
        made = victim.change_of(document)
        made["artifactLocation"] = {"uri": FILES[name].format(outside=victim.outside)}
        region = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 6, "snippet": {"text": "token"}}
        if not recorded:
            region = {"startLine": 999999, "startColumn": 1, "endLine": 999999, "endColumn": 1}
        made["replacements"] = [{"deletedRegion": region, "insertedContent": {"text": "stolen"}}]

    victim.save(change)
    before = victim.files()
    told = [victim.fix(), victim.fix("--diff")]
    assert [each.exit_code for each in told] == [2, 2]
    assert victim.files() == before
    assert not any("hunter2" in each.output for each in told)


@pytest.mark.parametrize("base", ["outside", "missing", "relative", "web"])
def test_a_base_leads_nowhere_else(victim: Victim, base: str) -> None:
    uris = {"outside": victim.outside.as_uri() + "/", "missing": None, "relative": "../outside/", "web": "https://example.com/"}

    def change(document: dict[str, Any]) -> None:
        victim.run_of(document)["originalUriBaseIds"] = {"SRCROOT": {"uri": uris[base]} if uris[base] else {}}
        made = victim.change_of(document)
        made["artifactLocation"] = {"uri": "secret.py", "uriBaseId": "SRCROOT"}
        region = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 6, "snippet": {"text": "token"}}
        made["replacements"] = [{"deletedRegion": region, "insertedContent": {"text": "stolen"}}]

    victim.save(change)
    before = victim.files()
    assert victim.fix().exit_code in (1, 2)
    assert victim.files() == before


def test_the_checkout_of_another_machine_is_this_one(victim: Victim) -> None:
    victim.save(lambda document: victim.run_of(document)["originalUriBaseIds"]["SRCROOT"].update(uri="file:///another/machine/"))
    assert victim.fix().exit_code == 0
    assert "torch.cond" in victim.source.read_text(encoding="utf-8")


NUMBERS = [None, "1", 1.5, float("nan"), float("inf"), -1, 0, True, [], {}, 10**30]


@pytest.mark.parametrize("field", ["startLine", "startColumn", "endLine", "endColumn"])
@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_odd_positions_change_nothing(victim: Victim, field: str, number: object) -> None:
    victim.save(lambda document: victim.change_of(document)["replacements"][0]["deletedRegion"].update({field: number}))
    before = victim.files()
    told = victim.fix()
    assert told.exit_code in (1, 2), told.output
    assert "unexpected" not in told.output
    assert victim.files() == before


@pytest.mark.parametrize("name", ["reversed", "twice", "overlapping", "two-names", "data_free_code", "insertion-data_free_code"])
def test_odd_replacements_change_nothing(victim: Victim, name: str) -> None:
    (victim.root / "same.py").symlink_to("net.py")

    def change(document: dict[str, Any]) -> None:
        made = victim.change_of(document)
        (each,) = made["replacements"]
        region = each["deletedRegion"]
        if name == "reversed":
            region.update(startColumn=region["endColumn"], endColumn=region["startColumn"])
        elif name == "twice":
            made["replacements"] = [each, copy.deepcopy(each)]
        elif name == "overlapping":
            other = copy.deepcopy(each)
            other["deletedRegion"].update(startColumn=region["startColumn"] + 1)
            made["replacements"] = [each, other]
        elif name == "two-names":
            changes = victim.run_of(document)["results"][0]["fixes"][0]["artifactChanges"]
            changes.append({**copy.deepcopy(made), "artifactLocation": {"uri": "same.py", "uriBaseId": "SRCROOT"}})
        else:
            del region["snippet"]
            each.pop("properties", None)
            if name == "insertion-data_free_code":
                region.update(endLine=region["startLine"], endColumn=region["startColumn"], snippet={"text": ""})

    victim.save(change)
    before = victim.files()
    told = victim.fix()
    assert told.exit_code == 2, told.output
    assert victim.files() == before


@pytest.mark.parametrize(
    ("prefix", "encoding", "newline"),
    [
        (b"", "utf-8", "\r\n"),
        (b"\xef\xbb\xbf", "utf-8", "\n"),
        (b"\xef\xbb\xbf", "utf-8", "\r\n"),
        (b"# -*- coding: latin-1 -*-\n", "latin-1", "\n"),
        (b"# coding: cp1252\r\n", "cp1252", "\r\n"),
        (b"", "utf-8", "\r"),
    ],
    ids=["crlf", "mark", "mark-crlf", "latin-1", "cp1252", "cr"],
)
def test_what_is_not_edited_stays_byte_for_byte(tmp_path: pathlib.Path, prefix: bytes, encoding: str, newline: str) -> None:
    path, log = tmp_path / "net.py", tmp_path / "net.sarif"
    text = "name = 'é'  # déjà vu\n" + SOURCE
    data = prefix + text.replace("\n", newline).encode(encoding)
    path.write_bytes(data)
    scope: dict[str, Any] = {}
    exec(compile(data, str(path), "exec"), scope)
    with pytest.raises(onnxplain.ExportFailed):
        onnxplain.export(scope["Net"](), (torch.ones(3),), sarif=log, control_flow="report")
    told = CliRunner().invoke(main, ["fix", str(log), "--root", str(tmp_path)])
    assert told.exit_code == 0, told.output
    start = data.index(b"x * 2 if")
    end = data.index(b"x - 1") + len(b"x - 1")
    edited = path.read_bytes()
    assert edited.startswith(data[:start])
    assert edited.endswith(data[end:])
    assert b"torch.cond" in edited


def test_links_stay_links(victim: Victim) -> None:
    real = victim.root / "sub" / "real.py"
    victim.source.rename(real)
    victim.source.symlink_to(real)
    victim.save()
    assert victim.fix().exit_code == 0
    assert victim.source.is_symlink()
    assert "torch.cond" in real.read_text(encoding="utf-8")


def test_read_only_sources_are_left(victim: Victim) -> None:
    victim.save()
    victim.source.chmod(0o444)
    assert victim.fix().exit_code == 1
    assert victim.source.read_text(encoding="utf-8") == SOURCE


@pytest.mark.parametrize("command", ["fix", "report"])
@pytest.mark.parametrize("runs", [[], [{}], None, [{"tool": {"driver": {"name": "ruff"}}, "results": []}]], ids=repr)
def test_what_holds_no_run_of_ours_is_refused(victim: Victim, command: str, runs: object) -> None:
    victim.save(lambda document: document.update(runs=runs))
    assert CliRunner().invoke(main, [command, str(victim.log)]).exit_code == 2


@pytest.mark.parametrize("snippet", ["\n", "t", "token", " "], ids=repr)
@pytest.mark.parametrize("uri", ["{outside}/secret.py", "file://{outside}/secret.py", "../outside/secret.py", "innocent.py"])
def test_a_report_quotes_sources_below_the_root_only(victim: Victim, snippet: str, uri: str) -> None:
    (victim.root / "innocent.py").symlink_to(victim.secret)

    def change(document: dict[str, Any]) -> None:
        for result in victim.run_of(document)["results"]:
            result.pop("fixes", None)
            result["properties"].pop("fixes", None)
            for location in result["locations"]:
                place = location["physicalLocation"]
                place["artifactLocation"] = {"uri": uri.format(outside=victim.outside)}
                place["region"] = {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 2, "snippet": {"text": snippet}}
                place.pop("contextRegion", None)

    victim.save(change)
    told = CliRunner().invoke(main, ["report", str(victim.log)])
    assert told.exit_code == 0, told.output
    assert "hunter2" not in told.output


@pytest.mark.parametrize("uri", ["/%00", "file:///net.py%00", "net%00.py", "net\ud800.py", "/\ud800"])
def test_an_impossible_name_names_no_file(victim: Victim, uri: str) -> None:
    def change(document: dict[str, Any]) -> None:
        victim.run_of(document)["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"] = {"uri": uri}

    victim.save(change)
    assert CliRunner().invoke(main, ["report", str(victim.log)]).exit_code == 2


def test_control_characters_are_shown(victim: Victim) -> None:
    evil = "\x1b]8;;https://example.com\x07\u202e\x1b[2J"

    def change(document: dict[str, Any]) -> None:
        fix = victim.run_of(document)["results"][0]["fixes"][0]
        fix["description"]["text"] += evil
        victim.change_of(document)["replacements"][0]["insertedContent"]["text"] += evil
        victim.run_of(document)["results"][0]["ruleId"] += evil

    victim.save(change)
    told = victim.fix("--diff")
    assert told.exit_code == 0
    assert not set("\x1b\x07\u202e") & set(told.output)


def test_each_finding_without_an_edit_has_a_reason(victim: Victim) -> None:
    victim.save(lambda document: victim.run_of(document)["results"][0]["fixes"][0]["properties"].update(confidence="guess"))
    guess = victim.fix()
    victim.save(lambda document: victim.run_of(document)["results"][0].pop("fixes"))
    nothing = victim.fix()
    assert (guess.exit_code, nothing.exit_code) == (0, 0)
    assert "--unsafe" in guess.stderr
    lines = nothing.stderr.splitlines()
    assert len(lines) == len(victim.run_of(victim.document)["results"])
    assert all("`onnxplain report`" in line for line in lines)


@pytest.mark.parametrize("base", ["ELSEWHERE", "PACKAGES", "OTHER", ""])
def test_another_base_is_not_the_root(victim: Victim, base: str) -> None:
    def change(document: dict[str, Any]) -> None:
        victim.run_of(document)["originalUriBaseIds"][base] = {}
        victim.change_of(document)["artifactLocation"] = {"uri": "net.py", "uriBaseId": base}

    victim.save(change)
    before = victim.files()
    told = [CliRunner().invoke(main, ["fix", str(victim.log)]), *([] if base == "ELSEWHERE" else [victim.fix()])]
    assert {each.exit_code for each in told} == {2}, [each.output for each in told]
    assert victim.files() == before


@pytest.mark.parametrize("content", [{"binary": "eA=="}, {}, {"rendered": {"text": "x"}}, {"text": None}, None, []], ids=repr)
def test_only_text_is_inserted(victim: Victim, content: object) -> None:
    victim.save(lambda document: victim.change_of(document)["replacements"][0].update(insertedContent=content))
    before = victim.files()
    told = victim.fix()
    assert (told.exit_code, "unexpected" in told.output) == (2, False), told.output
    assert victim.files() == before


def test_a_deletion_needs_no_inserted_text(victim: Victim) -> None:
    victim.save(lambda document: victim.change_of(document)["replacements"][0].pop("insertedContent"))
    assert victim.fix().exit_code == 0
    assert victim.source.read_text(encoding="utf-8") != SOURCE


def test_a_path_that_is_too_long_is_refused_at_once(victim: Victim) -> None:
    def change(document: dict[str, Any]) -> None:
        for location in (
            victim.change_of(document)["artifactLocation"],
            victim.run_of(document)["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"],
        ):
            location["uri"] = "/a" * 10**6

    victim.save(change)
    started = time.process_time()
    for command in ("fix", "report"):
        told = CliRunner().invoke(main, [command, str(victim.log)])
        assert (told.exit_code, "unexpected" in told.output) == (2, False), told.output[:1000]
    assert time.process_time() - started < 10


def test_many_notes_are_cut_before_they_are_rendered(victim: Victim) -> None:
    victim.save(lambda document: victim.run_of(document)["results"][0]["properties"].update(notes=["note"] * 280_000))
    started = time.process_time()
    told = CliRunner().invoke(main, ["report", str(victim.log)])
    assert (told.exit_code, "279,900 more notes" in told.output) == (0, True), told.output[:1000]
    assert time.process_time() - started < 10


@pytest.mark.parametrize("count", ["", ",", "1,,2", "٣"])
def test_a_text_that_looks_shortened(victim: Victim, count: str) -> None:
    text = "A" * 12_000 + f" [{count} characters omitted] " + "A" * 12_000
    victim.save(lambda document: victim.run_of(document)["results"][0]["properties"].update(notes=[text], cause=text))
    told = CliRunner().invoke(main, ["report", str(victim.log)])
    assert told.exit_code == 0, told.output[:1000]
    assert visible(text).count("characters omitted") == 1
