"""Other programs read our logs: the validator of the standard and of GitHub, a viewer in a browser, sarif-tools.

Tests that need Node.js, npm, Chromium or git are skipped without them.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from corpora import Corpus, commit
from logs import SOURCE, abroad, context, every_rule, exported, failed, hostile, many
from readers import multitool, node, sarif_tools, viewer
from readers.multitool import Complaint
from sarif_checks import check_log

from onnxplain.diagnostics import SARIF_PROFILES, Location, Log, Region, sarif
from onnxplain.rules import DataDependentBranch, book

SAMPLES = pathlib.Path(__file__).parents[2] / "vscode-samples" / ".sarif"
PICTURES = pathlib.Path(__file__).parents[2] / "out" / "readers"

EXCUSED: Mapping[str, Mapping[str, str]] = {
    "full": {
        r"SARIF2012 .* does not provide a 'rules' property": "a log without findings has no rules to describe",
        r"SARIF2013 ": "the files that an export writes are models, whose content would help nobody in a log",
    },
    "github": {
        r"SARIF2012 .* does not provide a 'rules' property": "a log without findings has no rules to describe",
    },
}
"""Complaints of the multitool about the logs of a profile, and the reason why the logs stay that way."""

WIDE = 'class 模型:\n\tdef 前进(self, x):\n\t\treturn x + "😀" \t+ "e\u0301"  # 👍🏽 \u00ad\n\n\n\n\n\n\t\tx = "😀"\n\t\tx = "😀"'
"""Source with tabs, emoji, combining and invisible characters, equal lines, and an unfinished last line.

It lacks U+200B, with which the viewer marks a place.
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def handmade(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of difficult logs."""
    folder = tmp_path_factory.mktemp("handmade")
    flip, wide = folder / "flip.py", folder / "模型 1" / "é😀.py"
    wide.parent.mkdir()
    flip.write_text(SOURCE, encoding="utf-8")
    wide.write_text(WIDE, encoding="utf-8")
    commit(folder)
    made = {
        "failed": failed(str(flip)),
        "hostile": hostile(str(flip)),
        "abroad": abroad(str(wide)),
        "many": many(str(flip)),
        "every_rule": every_rule(str(flip), book.rules()),
        "exported": exported(folder),
    }
    for name, log in made.items():
        for profile in SARIF_PROFILES:
            path = folder / ".sarif" / profile / f"{name}.sarif"
            path.parent.mkdir(parents=True, exist_ok=True)
            sarif.write(log, path, profile=profile, base=folder)
    return folder / ".sarif"


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of the samples' logs as an export in a checkout writes them. The committed logs name no machine."""
    folder = tmp_path_factory.mktemp("samples")
    shutil.copy(SAMPLES.parent / "README.md", folder)
    commit(folder)
    provenance = json.loads(sarif.to_json(context().log(), folder))["runs"][0].get("versionControlProvenance")
    for path in SAMPLES.glob("*.sarif"):
        content = json.loads(path.read_text(encoding="utf-8"))
        (run,) = content["runs"]
        run.update({"versionControlProvenance": provenance} if provenance else {})
        (folder / path.name).write_text(json.dumps(content), encoding="utf-8")
    return folder


@pytest.fixture(scope="session", params=("own", "samples", "handmade"))
def source(request: pytest.FixtureRequest) -> str:
    """The source of logs."""
    return str(request.param)


@pytest.fixture(params=SARIF_PROFILES)
def profile(request: pytest.FixtureRequest) -> str:
    """The profile of logs."""
    return str(request.param)


@pytest.fixture
def logs(source: str, profile: str, request: pytest.FixtureRequest) -> list[pathlib.Path]:
    """The logs from one source."""
    match source:
        case "handmade":
            folder: pathlib.Path = request.getfixturevalue("handmade") / profile
        case "samples":
            if profile != "full":
                pytest.skip("the samples have full logs only")
            folder = request.getfixturevalue("samples")
        case _:
            corpus: Corpus = request.getfixturevalue("own_corpus")
            folder = corpus.logs / profile
            assert len(list(folder.glob("*.sarif"))) == len(corpus.outcomes)
    found = sorted(folder.glob("*.sarif"))
    assert found
    return found


@pytest.fixture(scope="session")
def packages() -> None:
    """The readers that run on Node.js."""
    try:
        node.install()
    except node.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def script(packages: None, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The viewer, as a script for a browser that is there."""
    try:
        viewer.find_browser()
    except node.Missing as missing:
        pytest.skip(str(missing))
    return viewer.bundle(tmp_path_factory.mktemp("viewer"))


def test_schema(logs: list[pathlib.Path]) -> None:
    for log in logs:
        check_log(log)


def test_multitool(logs: list[pathlib.Path], profile: str, packages: None, tmp_path: pathlib.Path) -> None:
    if not shutil.which("git"):
        pytest.skip("git is missing: logs tell no commit")
    # NOTE: it takes half a second for a log. Of a corpus it reads every twelfth one of a profile, and others in each.
    own = logs[SARIF_PROFILES.index(profile) :: 12] if len(logs) > 50 else logs
    complaints = [f"{each.log.name}: {each.text}" for each in multitool.validate(own, tmp_path) if not excused(each, profile)]
    assert not complaints, "\n".join(complaints)


def excused(complaint: Complaint, profile: str) -> bool:
    return any(re.match(pattern, f"{complaint.rule} {complaint.text}") for pattern in EXCUSED[profile])


def test_viewer(logs: list[pathlib.Path], source: str, profile: str, script: pathlib.Path) -> None:
    shown = {"own": ("o15_batch_norm_training", "o16_three_linalg", "o10_dict_as_last_argument")}
    pictures = {log: PICTURES / source / f"{log.stem}.png" for log in logs if log.stem in shown.get(source, (log.stem,))}
    # NOTE: of a corpus it opens every eighth log of a profile, and others in each. A picture of a log takes as long as all else.
    opened = logs[SARIF_PROFILES.index(profile) :: 8] if len(logs) > 50 else logs
    if profile != "full":
        pictures = {}
    wrong = {log.name: told for log, told in viewer.view(list(dict.fromkeys([*pictures, *opened])), script, pictures) if told}
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)


def test_counts_of_sarif_tools(logs: list[pathlib.Path], tmp_path: pathlib.Path) -> None:
    assert list(sarif_tools.check_counts(logs, tmp_path)) == []


def test_tables_of_sarif_tools(handmade: pathlib.Path, profile: str, tmp_path: pathlib.Path) -> None:
    assert list(sarif_tools.check_tables(sorted((handmade / profile).iterdir()), tmp_path)) == []


# The checks can fail

Damage = Callable[[dict[str, Any]], object]


def result(run: dict[str, Any]) -> dict[str, Any]:
    """A result with a place, whose level is not that of its rule."""
    return next(each for each in run["results"] if each["ruleId"] == "OXP3001")


def physical(run: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = result(run)["locations"][0]["physicalLocation"]
    return found


def damaged(log: Log, folder: pathlib.Path, damages: Mapping[str, Damage]) -> dict[str, pathlib.Path]:
    """Files of `log`, one for each of `damages`, done to its run."""
    paths = {}
    for name, damage in damages.items():
        content = json.loads(sarif.to_json(log, folder))
        damage(content["runs"][0])
        paths[name] = folder / f"{len(paths)}.sarif"
        paths[name].write_text(json.dumps(content), encoding="utf-8")
    return paths


@pytest.fixture
def log(tmp_path: pathlib.Path) -> Log:
    """A log with a finding whose level is not that of its rule."""
    source = tmp_path / "flip.py"
    source.write_text(SOURCE, encoding="utf-8")
    return failed(str(source))


def test_the_multitool_refuses(log: Log, packages: None, tmp_path: pathlib.Path) -> None:
    damages: dict[str, Damage] = {
        "SARIF1007": lambda run: physical(run)["region"].update(endLine=1),
        "SARIF1012": lambda run: result(run)["message"].update(arguments=[]),
        "SARIF2001": lambda run: run["tool"]["driver"]["rules"][0]["messageStrings"]["default"].update(text="No period"),
        "SARIF2012": lambda run: run["tool"]["driver"]["rules"][0].pop("helpUri"),
        "GH1003": lambda run: physical(run).pop("region"),
        "GH1005": lambda run: physical(run)["artifactLocation"].update(uri="https://example.com/flip.py"),
        "GH1007": lambda run: result(run)["message"].pop("text"),
    }
    logs = damaged(log, tmp_path, damages | {"": lambda run: None})
    found = {(each.rule, each.log) for each in multitool.validate(list(logs.values()), tmp_path)}
    for rule, path in logs.items():
        if rule:
            assert (rule, path) in found
            assert (rule, logs[""]) not in found


def test_the_viewer_refuses(log: Log, script: pathlib.Path, tmp_path: pathlib.Path) -> None:
    damages: dict[str, Damage] = {
        "text": lambda run: result(run)["message"].update(text="Another text."),
        "rule": lambda run: run["tool"]["driver"]["rules"][result(run)["ruleIndex"]].pop("name"),
        "mark": lambda run: physical(run)["region"].update(endColumn=20),
        "link": lambda run: result(run)["message"].update(text="[x](http://evil.example)", id="", arguments=[]),
        "none": lambda run: None,
    }
    logs = damaged(log, tmp_path, damages)
    old = json.loads(logs["none"].read_text(encoding="utf-8")) | {"version": "2.0.0"}
    (tmp_path / "old.sarif").write_text(json.dumps(old), encoding="utf-8")
    told = dict(viewer.view([*logs.values(), tmp_path / "old.sarif"], script))
    assert [path for path, wrong in told.items() if not wrong] == [logs["none"]]


def test_sarif_tools_differ(log: Log, tmp_path: pathlib.Path) -> None:
    damages: dict[str, Damage] = {
        "level": lambda run: result(run).pop("level"),
        "message": lambda run: result(run)["message"].update(text="OXP3001: starts with its rule."),
    }
    logs = damaged(log, tmp_path, damages)
    assert list(sarif_tools.check_counts([logs["level"]], tmp_path))
    assert list(sarif_tools.check_tables([logs["message"]], tmp_path))


# GitHub's hash of a line


def test_line_hashes_are_those_of_the_multitool(packages: None, tmp_path: pathlib.Path) -> None:
    made = context()
    texts = {
        "plain.py": SOURCE,
        "wide.py": WIDE,
        "windows.py": SOURCE.replace("\n", "\r\n"),
        "equal.py": "x = 1\n" * 120,
        "long.py": "y = 0 " * 99,
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text.encode())
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                made.report(DataDependentBranch(condition=line.strip()), at=Location(str(tmp_path / name), Region(number)))
    content = json.loads(sarif.to_json(made.log(), tmp_path))
    ours = [each["partialFingerprints"].pop("primaryLocationLineHash") for each in content["runs"][0]["results"]]
    path = tmp_path / "log.sarif"
    content["runs"][0]["originalUriBaseIds"]["SRCROOT"]["uri"] = f"{tmp_path.as_uri()}/"
    path.write_text(json.dumps(content), encoding="utf-8")
    theirs = multitool.with_line_hashes(path, tmp_path)["runs"][0]["results"]
    assert [each["partialFingerprints"]["primaryLocationLineHash"] for each in theirs] == ours
    assert len(ours) > 130
