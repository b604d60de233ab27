"""The formats of a gate's report: CI systems can read them, and no text of a model can change their structure."""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator

import pytest
from gate_logs import BASELINE, IGNORED, LOG, MANY, accepted, run, text, verdict, write
from logs import HOSTILE, context

from onnxplain.diagnostics import GATE_FORMATS, Location, Region, sarif
from onnxplain.rules import DataDependentBranch, ExampleOfSizeOne, TrainingMode

pytestmark = pytest.mark.usefixtures("here")

EVIL = "x ##[error]y\n::error::z%0A,a:b\r\n::set-output name=a::b </failure>]]> \x00\x1b[31m \ud800 \U0010ffff"
"""Text that a message or a model's name may contain, and that no sink may interpret."""


def hostile() -> None:
    """A log whose every name and text is `EVIL` or `HOSTILE`, with an error, a warning and a note."""
    source = pathlib.Path("a,b:c%41\n::error::d ##[warning]é.py")
    source.write_text("\n\nlong\nlonger\n", encoding="utf-8")
    made = context()
    made.subject = EVIL.replace("\0", "")
    at = Location(str(source.absolute()), Region(3, 1, 4, 3), HOSTILE, EVIL)
    made.report(DataDependentBranch(condition=EVIL), at=at)
    made.report(TrainingMode(layers=(HOSTILE,)), at=Location("", module=EVIL))
    made.report(ExampleOfSizeOne(dims=("x",)))
    sarif.write(made.log(), pathlib.Path(LOG))
    content = json.loads(text())
    for result in content["runs"][0]["results"]:
        result["message"]["text"] = f"{EVIL}{HOSTILE}"
    pathlib.Path(LOG).write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize("name", GATE_FORMATS)
def test_the_command_offers_every_format(name: str) -> None:
    each = GATE_FORMATS[name]
    assert re.search(rf"^ +{name} +{re.escape(each.summary)}$", run("gate", "--help").stdout, re.MULTILINE)
    write(["a  # E"])
    told = run("gate", LOG, "--format", name)
    assert (told.exit_code, "OXP1002" in told.stdout) == (1, True)
    assert ("1 new error" in told.stdout) is each.says_verdict
    assert ("1 new error" in told.stderr) is not each.says_verdict


def test_the_page_names_no_other_format() -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")
    (named,) = re.findall(r"^- `--format .+?(?=^- )", page, re.MULTILINE | re.DOTALL)
    formats = set(re.findall(r"`(?:--format )?(\w+)`", named))
    assert formats
    assert formats <= GATE_FORMATS.keys()


def test_golden(golden: Callable[[str, str], None]) -> None:
    write(["a  # E", "b  # W", "c  # N"])
    golden("baseline_accept.txt", run("baseline", "accept", LOG).stdout)
    write(["a  # EE", "d  # W", "e  # N", IGNORED])
    golden("gate.txt", run("gate", LOG, "--baseline", BASELINE).stdout)


def commands(output: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """The workflow commands in `output` as a runner of GitHub Actions finds them: name, properties, message."""

    def unescaped(text: str, *more: tuple[str, str]) -> str:
        for code, char in (*more, ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
            text = text.replace(code, char)
        return text

    stopped = None
    for line in re.split(r"\r\n|\r|\n", output):
        if stopped is not None:
            stopped = None if line.strip() == f"::{stopped}::" else stopped
            continue
        found = re.match(r"\s*::([^ :]+)(?: (.*?))?::(.*)", line, re.DOTALL)
        assert found or "##[" not in line
        if found is None:
            continue
        if found[1] == "stop-commands":
            stopped = found[3]
            continue
        pairs = (pair.partition("=") for pair in (found[2] or "").split(",") if pair)
        yield found[1], {name: unescaped(value, ("%3A", ":"), ("%2C", ",")) for name, _, value in pairs}, unescaped(found[3])


def test_github() -> None:
    write(["a  # E", "", "b  # W"])
    run("baseline", "accept", LOG)
    write(["a  # E", "c  # EW", "d  # N"])
    told = run("gate", LOG, "--baseline", BASELINE, "--format", "github")
    assert told.exit_code == 1
    found = list(commands(told.stdout))
    assert [(name, properties["file"], properties["line"], properties["col"]) for name, properties, _ in found] == [
        ("error", "net.py", "2", "1"),
        ("warning", "net.py", "2", "2"),
        ("notice", "net.py", "3", "1"),
    ]
    assert found[0][1] == {"file": "net.py", "line": "2", "endLine": "2", "col": "1", "endColumn": "2", "title": "OXP1002 in Net"}
    assert "'c.1'" in found[0][2]
    assert "error[OXP1002]" in told.stdout


def test_github_takes_hostile_text_for_text() -> None:
    hostile()
    told = run("gate", LOG, "--format", "github")
    found = list(commands(told.stdout))
    assert [name for name, _, _ in found] == ["error", "warning", "notice"]
    properties = found[0][1]
    assert set(properties) == {"file", "line", "endLine", "title"}
    assert properties["file"] == "a,b:c%41\\n::error::d ##[warning]é.py"
    assert all("%0A,a:b\\r\\n::set-output" in message for _, _, message in found)
    assert "file" not in found[1][1]


def test_junit() -> None:
    write(["a  # E", "a  # E", "b  # W", "c  # N"])
    write([], "other.sarif", model="Other")
    told = run("gate", LOG, "other.sarif", "--format", "junit", "-o", "reports/gate.xml")
    assert told.exit_code == 1
    assert len(told.stdout.splitlines()) == 1
    suites = ET.parse("reports/gate.xml").getroot()
    assert dict(suites.items()) == {"name": "onnxplain gate", "tests": "5", "failures": "2", "errors": "0", "skipped": "2"}
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in suites] == [("Net", "4", "2"), ("Other", "1", "0")]
    cases = suites.findall("testsuite/testcase")
    assert [[child.tag for child in case] for case in cases] == [["failure"], ["failure"], ["skipped"], ["skipped"], []]
    assert [(case.get("file"), case.get("line")) for case in cases[:2]] == [("net.py", "1"), ("net.py", "2")]
    assert len({case.get("name") for case in cases}) == len(cases)
    assert cases[1].get("name") == f"{cases[0].get('name')} (2)"
    run("gate", LOG, "--max-errors", "2", "--max-warnings", "0", "--format", "junit", "-o", "reports/gate.xml")
    (failure,) = ET.parse("reports/gate.xml").getroot().iter("failure")
    assert failure.get("type") == "OXP1007", "what fails is what fails the gate"


def test_junit_takes_hostile_text_for_text() -> None:
    hostile()
    suites = ET.fromstring(run("gate", LOG, "--format", "junit").stdout.encode())
    (suite,) = suites
    (failure,) = suite.iter("failure")
    assert "</failure>]]> \\x00\\x1b[31m" in (failure.get("message") or "")
    assert len(suite) == 3


def test_gitlab() -> None:
    write(["a  # E"])
    run("baseline", "accept", LOG)
    write(["a  # E", "a  # E", "b  # W", "c  # N", IGNORED])
    write(["a  # E"], "again.sarif")
    told = run("gate", LOG, "again.sarif", "--baseline", BASELINE, "--format", "gitlab")
    found = json.loads(told.stdout)
    # As GitLab's documentation has it: "Implement a custom tool", Code Quality report format.
    assert all(set(each) == {"description", "check_name", "fingerprint", "severity", "location"} for each in found)
    assert [(each["severity"], each["check_name"], each["location"]) for each in found] == [
        ("major", "OXP1002", {"path": "net.py", "lines": {"begin": 1}}),
        ("major", "OXP1002", {"path": "net.py", "lines": {"begin": 2}}),
        ("major", "OXP1002", {"path": "net.py", "lines": {"begin": 1}}),
        ("minor", "OXP1007", {"path": "net.py", "lines": {"begin": 3}}),
        ("info", "OXP1025", {"path": "net.py", "lines": {"begin": 4}}),
    ]
    fingerprints = [each["fingerprint"] for each in found]
    assert len(set(fingerprints)) == 5
    write(["", "c  # N", "b  # W", "a  # E"])
    moved = json.loads(run("gate", LOG, "--format", "gitlab").stdout)
    assert [each["fingerprint"] for each in moved] == [fingerprints[0], *fingerprints[3:]], "GitLab compares by fingerprint"


def test_the_fingerprints_for_gitlab_stay_the_same() -> None:
    """GitLab compares reports of different versions of onnxplain. The findings of one fingerprint have numbers from 1."""
    write(["a  # E", "a  # E", "b  # W"])
    results = json.loads(text())["runs"][0]["results"]
    plain = [each["partialFingerprints"]["onnxplain/v1"].partition(":")[0] for each in results]
    assert plain[0] == plain[1]
    parts = zip(["Net"] * 3, plain, [1, 2, 1], strict=True)
    expected = [hashlib.sha256(json.dumps(each).encode()).hexdigest()[:32] for each in parts]
    found = json.loads(run("gate", LOG, "--format", "gitlab").stdout)
    assert [each["fingerprint"] for each in found] == expected


def test_gitlab_and_json_take_hostile_text_for_text() -> None:
    hostile()
    for each in json.loads(run("gate", LOG, "--format", "gitlab").stdout):
        assert each["location"]["path"]
        assert "\n" not in each["description"] + each["location"]["path"]
    code, told = verdict(LOG)
    assert (code, told["findings"][0]["file"]) == (1, "a,b:c%41\n::error::d ##[warning]é.py")
    assert run("gate", LOG, "--format", "json", "-o", "gate.json").exit_code == 1
    assert json.loads(pathlib.Path("gate.json").read_text(encoding="utf-8")) == told


def test_text_takes_hostile_text_for_text() -> None:
    hostile()
    output = run("gate", LOG).stdout
    assert len(output.splitlines()) == 5
    assert "\x1b" not in output
    run("baseline", "accept", LOG)
    accepted()
    assert run("gate", LOG, "--baseline", BASELINE).exit_code == 0


def test_text_is_short_for_many_findings() -> None:
    write(MANY[:130])
    output = run("gate", LOG).stdout
    assert output.count("error[OXP1002]") == 100
    assert "30 more" in output
    assert "130 new errors" in output


def test_output_to_a_file() -> None:
    write(["a  # E"])
    told = run("gate", LOG, "-o", "gate.txt")
    assert told.exit_code == 1
    assert "error[OXP1002]" in pathlib.Path("gate.txt").read_text(encoding="utf-8")
    assert ("error[OXP1002]" in told.stdout, len(told.stdout.splitlines())) == (False, 1)
