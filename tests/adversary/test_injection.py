"""Hostile text in each field of a log: no command sends it to the terminal, links it in a report, or writes where it leads."""

from __future__ import annotations

import hashlib
import itertools
import json
import pathlib
import re
import shutil
from collections.abc import Callable

import pytest
from click.testing import CliRunner
from full_log import SAMPLES, SOURCES, Json, full_log
from markdown_it import MarkdownIt

from onnxplain.cli import main

TEXTS = {
    "terminal": "x\x1b[2J\x1b]8;;https://example.com\x07y\x1b]8;;\x07\x9b31m\x85\x00\x7f\u202e\u2066\u2028\r\b",
    "markdown": "x @octocat https://example.com/a www.example.com a@example.com #123 o/r#7 GH-7 0a1b2c3d4e <img src=x onerror=y> "
    "[a](https://example.com) ![a](b) <!-- `@octocat` ``#123 | @octocat\n\n# @octocat\n```\n@octocat\n<details>",
    "split": "`'{0}''{1}'@{0}",
    "huge": "https://example.com/" + "A" * 1_000_000,
    "unpaired": "\ud800x\udfff",
    "path": "../../outside/../../../../etc/passwd%00.py",
    "network": "file://example.com/../outside/secret.py",
}

COMMANDS = {
    "fix": ("fix", "{log}"),
    "fix --diff": ("fix", "{log}", "--diff"),
    "fix --unsafe": ("fix", "{log}", "--unsafe"),
    "gate": ("gate", "{log}"),
    "gate --baseline": ("gate", "{log}", "--baseline", "{honest}"),
    "gate --format json": ("gate", "{log}", "--format", "json"),
    "gate --format github": ("gate", "{log}", "--format", "github"),
    "report": ("report", "{log}"),
    "baseline accept": ("baseline", "accept", "{log}", "--baseline", "{baseline}"),
}

Field = Callable[[Json, Json, str], None]
"""Puts a text into a field of a run and of its first result."""


def rule(run: Json, result: Json) -> Json:
    found: Json = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    return found


def place(result: Json) -> Json:
    found: Json = result["locations"][0]["physicalLocation"]
    return found


def change(result: Json) -> Json:
    found: Json = result["fixes"][0]["artifactChanges"][0]
    return found


def set_rule_id(run: Json, result: Json, text: str) -> None:
    rule(run, result)["id"] = result["ruleId"] = text


def set_arguments(run: Json, result: Json, text: str) -> None:
    message = rule(run, result)["messageStrings"]["default"]["text"]
    result["message"] |= {"arguments": [text], "text": message.replace("{0}", text)}


def set_template(run: Json, result: Json, text: str) -> None:
    rule(run, result)["messageStrings"]["default"]["text"] = text
    result["message"]["text"] = text.replace("{0}", "octocat")
    result["message"]["arguments"] = ["octocat"]


def set_uri(run: Json, result: Json, text: str) -> None:
    place(result)["artifactLocation"]["uri"] = change(result)["artifactLocation"]["uri"] = text


def set_base(run: Json, result: Json, text: str) -> None:
    place(result)["artifactLocation"]["uriBaseId"] = change(result)["artifactLocation"]["uriBaseId"] = text
    run["originalUriBaseIds"][text] = {"uri": text}


def set_nodes(run: Json, result: Json, text: str) -> None:
    for node in result["graphs"][0]["nodes"]:
        node |= {"label": {"text": text}, "properties": {"value": text}}
    result["graphs"][0]["nodes"][0]["id"] = result["graphs"][0]["properties"]["blamed"] = text


def set_stacks(run: Json, result: Json, text: str) -> None:
    for frame in result["stacks"][0]["frames"]:
        frame["location"] |= {"message": {"text": text}, "logicalLocations": [{"fullyQualifiedName": text, "kind": "function"}]}


def set_description(run: Json, result: Json, text: str) -> None:
    result["fixes"][0]["description"]["text"] = result["properties"]["fixes"][0]["description"] = text


def set_notifications(run: Json, result: Json, text: str) -> None:
    for each in run["invocations"][0]["toolExecutionNotifications"]:
        each |= {"message": {"text": text}, "descriptor": {"id": text}}


FIELDS: dict[str, Field] = {
    "the message": lambda run, result, text: result["message"].update(text=text, markdown=text),
    "its arguments": set_arguments,
    "its template": set_template,
    "the rule's id": set_rule_id,
    "the rule's name": lambda run, result, text: rule(run, result).update(name=text),
    "the rule's help": lambda run, result, text: rule(run, result).update(
        help={"text": text, "markdown": text}, shortDescription={"text": text}, fullDescription={"text": text}, helpUri=text
    ),
    "the names of arguments": lambda run, result, text: rule(run, result)["properties"].update(arguments=[text], everywhere=True),
    "the level": lambda run, result, text: result.update(level=text),
    "the file": set_uri,
    "its base": set_base,
    "the snippet": lambda run, result, text: place(result)["region"]["snippet"].update(text=text),
    "the snippet around it": lambda run, result, text: place(result)["contextRegion"]["snippet"].update(text=text),
    "positions": lambda run, result, text: place(result)["region"].update(startLine=text),
    "the module": lambda run, result, text: result["locations"][0]["logicalLocations"].append(
        {"fullyQualifiedName": text, "kind": "module"}
    ),
    "the description of a fix": set_description,
    "the confidence of a fix": lambda run, result, text: result["fixes"][0]["properties"].update(confidence=text),
    "inserted text": lambda run, result, text: change(result)["replacements"][0]["insertedContent"].update(text=text),
    "deleted text": lambda run, result, text: change(result)["replacements"][0]["deletedRegion"]["snippet"].update(text=text),
    "advice": lambda run, result, text: result["properties"]["fixes"][1].update(description=text, snippet=text),
    "notes": lambda run, result, text: result["properties"].update(notes=[text, f"{text}\n{text}"]),
    "the cause": lambda run, result, text: result["properties"].update(cause=text, stage=text),
    "related places": lambda run, result, text: result["relatedLocations"][0]["message"].update(text=text),
    "stacks": set_stacks,
    "code flows": lambda run, result, text: result["codeFlows"][0]["threadFlows"][0]["locations"][0]["location"]["message"].update(
        text=text
    ),
    "graphs": set_nodes,
    "fingerprints": lambda run, result, text: result["partialFingerprints"].update({"onnxplain/v1": text, "primaryLocationLineHash": text}),
    "taxa and attachments": lambda run, result, text: result.update(taxa=[{"id": text}], attachments=[{"description": {"text": text}}]),
    "suppressions": lambda run, result, text: run["results"][-1]["suppressions"][0].update(justification=text, kind=text),
    "notifications": set_notifications,
    "the command line": lambda run, result, text: run["invocations"][0].update(commandLine=text),
    "the folder": lambda run, result, text: run["invocations"][0].update(workingDirectory={"uri": text}),
    "times": lambda run, result, text: run["invocations"][0].update(startTimeUtc=text),
    "written files": lambda run, result, text: run["artifacts"][0].update(
        location={"uri": text, "uriBaseId": "SRCROOT"}, hashes={"sha-256": text}
    ),
    "the model": lambda run, result, text: run["properties"].update({"onnxplain/subject": text}),
    "stages": lambda run, result, text: run["properties"]["onnxplain/stages"][0].update(name=text),
    "versions": lambda run, result, text: run["properties"]["onnxplain/environment"].update({text: text}),
    "options": lambda run, result, text: run["properties"]["onnxplain/options"].update({"ignore": [text], text: text}),
    "the profile": lambda run, result, text: run["properties"].update({"onnxplain/profile": text}),
    "the run's id": lambda run, result, text: run["automationDetails"].update(id=text),
    "the tool's name": lambda run, result, text: run["tool"]["driver"].update(name=text),
    "the tool's version": lambda run, result, text: run["tool"]["driver"].update(semanticVersion=text),
    "the tool's address": lambda run, result, text: run["tool"]["driver"].update(informationUri=text),
}

LINKS = re.compile(r"(?i)[a-z]://|www\.|@[\w-]|#\d|gh-\d|(?<![0-9a-z])[0-9a-f]{7,40}(?![0-9a-z])")
"""What GitHub links in text."""


def live(report: str) -> set[str]:
    """What GitHub would make more than text of, in a report."""
    tokens = [token for block in MarkdownIt("gfm-like", {"linkify": False}).parse(report) for token in (block, *(block.children or ()))]
    html = "".join(token.content for token in tokens if token.type in ("html_block", "html_inline"))
    linked = {found[0] for token in tokens if token.type == "text" for found in LINKS.finditer(token.content)}
    tags = set(re.findall(r"<[^>]*", html)) - {"<details", "<details open", "</details", "<summary", "</summary"}
    return linked | tags | ({token.type for token in tokens} & {"link_open", "image"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A checkout beside a secret."""
    made = tmp_path_factory.mktemp("victim")
    (made / "outside").mkdir()
    (made / "outside" / "secret.py").write_text("token = 'hunter2'\n", encoding="utf-8")
    (made / "checkout").mkdir()
    (made / "checkout" / "honest.sarif").write_text(json.dumps(full_log()), encoding="utf-8")
    return made


def files(folder: pathlib.Path) -> dict[str, str]:
    """Every file with its content."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def run(folder: pathlib.Path, document: Json, command: str) -> tuple[int, list[str]]:
    """The exit code of a command for a log, and what it does and must not do."""
    root = folder / "checkout"
    for name in SOURCES:
        shutil.copy(SAMPLES / name, root)
    (root / "baseline.sarif").unlink(missing_ok=True)
    log = root / "hostile.sarif"
    log.write_text(json.dumps(document), encoding="utf-8")
    before = files(folder)
    paths = {name: str(root / f"{name}.sarif") for name in ("honest", "baseline")}
    told = CliRunner().invoke(main, [argument.format(log=log, **paths) for argument in COMMANDS[command]])
    after = files(folder)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    own = {"fix": set(SOURCES), "fix --unsafe": set(SOURCES), "gate --baseline": {log.name}, "baseline accept": {"baseline.sarif"}}
    found = {
        f"exit code {told.exit_code}": told.exit_code not in (0, 1, 2),
        f"{told.exception!r}": not isinstance(told.exception, SystemExit | None),
        "a bug": "unexpected" in told.output,
        "it told a secret": "hunter2" in told.output,
        "it steers the terminal": not told.output.replace("\n", "").replace("\t", "").isprintable(),
        "it floods the terminal": len(told.output) > 200_000,
        f"it changed {changed}": bool(changed - own.get(command, set())),
        f"live: {live(told.stdout)}": command == "report" and bool(live(told.stdout)),
    }
    return told.exit_code, [f"{command}: {problem}" for problem, happened in found.items() if happened]


@pytest.mark.parametrize(("field", "kind"), list(itertools.product(FIELDS, TEXTS)))
def test_no_field_does_harm(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, field: str, kind: str) -> None:
    monkeypatch.chdir(folder / "checkout")
    document = full_log()
    FIELDS[field](document["runs"][0], document["runs"][0]["results"][0], TEXTS[kind])
    assert [problem for command in COMMANDS for problem in run(folder, document, command)[1]] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_the_log_itself_is_accepted(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """A log that every command refuses would show nothing."""
    monkeypatch.chdir(folder / "checkout")
    fails = command.startswith("gate") and command != "gate --baseline"
    assert run(folder, full_log(), command) == (int(fails), [])
