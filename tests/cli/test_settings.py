"""Settings in pyproject.toml and the environment: which of them hold, what is refused, and what `onnxplain config` shows."""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import click
import pytest
from cli_models import MODELS
from click.testing import CliRunner, Result
from gate_logs import LOG, write

from onnxplain import schemas
from onnxplain.cli import main
from onnxplain.diagnostics import DiagnosticOptions, Level
from onnxplain.repro.minimise import Minimised

SECTION = """\
[project]
name = "models"

[tool.onnxplain]
opset = 18
verify = true
sarif = "logs/"
report = true
external-data = false
strategies = ["strict"]
ignore = ["OXP4"]

[tool.onnxplain.levels]
OXP1007 = "note"
DataDependentBranch = "warning"

[tool.onnxplain.gate]
max-warnings = 0
baseline = "accepted.sarif"

[[tool.onnxplain.profiles]]
paths = ["models.py", "legacy/*"]
opset = 20
levels = { OXP1007 = "error" }

[[tool.onnxplain.profiles]]
paths = ["legacy/*"]
opset = 19
output = "out/"
"""
PROFILE = "[[tool.onnxplain.profiles]]\npaths = ['a']\n"


def run(*args: str, **environment: str) -> Result:
    """The result of `onnxplain ARGS`."""
    return CliRunner().invoke(main, args, env=environment)


def rows(*args: str, **environment: str) -> dict[str, list[str]]:
    """The rows of `onnxplain config`: each value and its origin, by the command and the name of the setting."""
    result = run("config", *args, **environment)
    assert result.exit_code == 0, result.output
    command, found = "", {}
    for line in result.stdout.splitlines():
        cells = re.split(r"  +", line.strip())
        command = cells[0] if not line.startswith(" ") else command
        found[f"{command}.{cells[0]}"] = cells[1:]
    return found


@pytest.fixture
def section(folder: pathlib.Path) -> pathlib.Path:
    """The file with the settings."""
    file = folder / "pyproject.toml"
    file.write_text(SECTION, encoding="utf-8")
    return file


@pytest.mark.usefixtures("section")
def test_settings_reach_export(calls: list[Any]) -> None:
    assert run("export", "models.py:double").exit_code == 0
    _, kwargs = calls[0]
    assert (kwargs["opset_version"], kwargs["verify"], kwargs["external_data"], kwargs["strategies"]) == (20, True, False, ("strict",))
    assert [str(kwargs[name]) for name in ("f", "sarif", "report")] == ["Double.onnx", str(pathlib.Path("logs/Double.sarif")), "Double.md"]
    assert kwargs["diagnostic_options"] == DiagnosticOptions(ignore=("OXP4",), levels={"OXP1007": Level.ERROR, "OXP1001": Level.WARNING})


@pytest.mark.usefixtures("section")
def test_the_command_line_counts_before_the_environment_and_that_before_the_file(calls: list[Any]) -> None:
    environment = {"ONNXPLAIN_EXPORT_OPSET": "17", "ONNXPLAIN_EXPORT_IGNORE": "OXP2", "ONNXPLAIN_EXPORT_VERIFY": "0"}
    given = ["--opset", "16", "--report=false", "--level", "OXP1007=warning", "--strategy", "draft"]
    assert run("export", "models.py:double", *given, **environment, ONNXPLAIN_EXPORT_REPRO="1").exit_code == 0
    assert run("export", "models.py:double", **environment, ONNXPLAIN_EXPORT_LEVELS="OXP1001=note oxp3=note").exit_code == 0
    first, second = (kwargs for _, kwargs in calls)
    assert (first["opset_version"], first["report"], first["strategies"], first["verify"]) == (16, False, ("draft",), False)
    assert first["repro"] == pathlib.Path("Double.repro.py")
    assert first["diagnostic_options"].levels == {"OXP1007": Level.WARNING, "OXP1001": Level.WARNING}
    assert (second["opset_version"], second["diagnostic_options"].ignore, second["strategies"]) == (17, ("OXP2",), ("strict",))
    assert second["diagnostic_options"].levels == {"OXP1007": Level.ERROR, "OXP1001": Level.NOTE, "OXP3": Level.NOTE}


@pytest.mark.parametrize("flag", ["verify", "optimize", "try-fixes", "profile", "warnings-as-errors", "external-data"])
def test_the_command_line_takes_back_what_the_file_sets(flag: str, folder: pathlib.Path, calls: list[Any]) -> None:
    for value, option in (("true", f"--no-{flag}"), ("false", f"--{flag}")):
        (folder / "pyproject.toml").write_text(f"[tool.onnxplain]\n{flag} = {value}\n", encoding="utf-8")
        assert run("export", "models.py:double").exit_code == 0
        assert run("export", "models.py:double", option).exit_code == 0
    told = [
        kwargs["diagnostic_options"].warnings_as_errors if flag == "warnings-as-errors" else kwargs[flag.replace("-", "_")]
        for _, kwargs in calls
    ]
    assert told == [True, False, False, True]


def test_profiles_are_for_paths_and_later_ones_count(section: pathlib.Path, calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("legacy/deep/net.py", "other.py"):
        path = section.parent / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MODELS, encoding="utf-8")
    assert run("export", "legacy/deep/net.py:double").exit_code == 0
    assert run("export", "other.py:double").exit_code == 0
    assert run("export", "models:double").exit_code == 0
    monkeypatch.chdir(section.parent / "legacy")
    assert run("export", "deep/net.py:double").exit_code == 0
    assert [kwargs["opset_version"] for _, kwargs in calls] == [19, 18, 20, 19]
    assert [kwargs["f"] for _, kwargs in calls] == [
        pathlib.Path("out/Double.onnx"),
        pathlib.Path("Double.onnx"),
        pathlib.Path("Double.onnx"),
        pathlib.Path("../out/Double.onnx"),
    ]
    assert calls[3][1]["sarif"] == pathlib.Path("../logs/Double.sarif")


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("legacy/*.py", "legacy/net.py", True),
        ("legacy/*.py", "legacy/deep/net.py", True),
        ("./legacy", "legacy/net.py", True),
        ("legacy/", "legacy/net.py", True),
        ("legacy/**/*.py", "legacy/net.py", True),
        ("**/net.py", "net.py", True),
        ("net.py", "legacy/net.py", False),
        ("legacy", "legacy2/net.py", False),
    ],
)
def test_patterns_of_profiles(pattern: str, path: str, matches: bool, folder: pathlib.Path) -> None:
    text = f"[[tool.onnxplain.profiles]]\npaths = ['{pattern}']\nopset = 17\n"
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    assert (rows(path)["export.opset"][0] == "17") is matches


def test_the_nearest_file_with_a_section_counts(section: pathlib.Path, calls: list[Any]) -> None:
    inner = section.parent / "inner" / "deep"
    inner.mkdir(parents=True)
    (inner / "net.py").write_text(MODELS, encoding="utf-8")
    (inner / "pyproject.toml").write_text("[tool.other]\n", encoding="utf-8")
    assert run("export", "inner/deep/net.py:double").exit_code == 0
    (inner.parent / "pyproject.toml").write_text("[tool.onnxplain]\nopset = 21\n", encoding="utf-8")
    assert run("export", "inner/deep/net.py:double").exit_code == 0
    (inner / ".git").mkdir()
    assert run("export", "inner/deep/net.py:double").exit_code == 0
    assert [kwargs["opset_version"] for _, kwargs in calls] == [18, 21, None]


def test_the_gate_reads_the_file_of_the_current_folder(section: pathlib.Path) -> None:
    write(["a  # W", "b  # W"])
    assert run("gate", LOG).exit_code == 2  # there is no accepted.sarif
    assert run("baseline", "accept", LOG).exit_code == 0
    assert (section.parent / "accepted.sarif").is_file()
    assert run("gate", LOG).exit_code == 0
    section.write_text("[tool.onnxplain.gate]\nmax-warnings = 0\n", encoding="utf-8")
    assert run("gate", LOG).exit_code == 1
    assert run("gate", LOG, ONNXPLAIN_GATE_MAX_WARNINGS="2").exit_code == 0
    assert run("gate", LOG, "--max-warnings", "1", ONNXPLAIN_GATE_MAX_WARNINGS="2").exit_code == 1


def test_a_log_brings_no_settings(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "download").mkdir()
    monkeypatch.chdir(folder / "download")
    write(["a  # E"])
    pathlib.Path("pyproject.toml").write_text("[tool.onnxplain.gate]\nmax-errors = 9\n", encoding="utf-8")
    assert run("gate", LOG).exit_code == 0
    monkeypatch.chdir(folder)
    assert run("gate", str(folder / "download" / LOG)).exit_code == 1


@pytest.mark.parametrize(
    ("text", "place", "told"),
    [
        ("[tool.onnxplain]\n\nopsett = 18\n", 3, ["opsett", "'opset'"]),
        ('[tool.onnxplain]\nopset = "18"\n', 2, ["tool.onnxplain.opset", "a whole number", "'18'"]),
        ("[tool.onnxplain]\nopset = true\n", 2, ["tool.onnxplain.opset", "a whole number", "true"]),
        ("[tool]\nonnxplain = 3\n", 2, ["tool.onnxplain", "a table", "3"]),
        ("tool.onnxplain.verify = 3\n", 1, ["tool.onnxplain.verify", "true or false", "3"]),
        ('[tool.onnxplain]\ncontrol-flow = "libary"\n', 2, ["control-flow", "'libraries'"]),
        ("[tool.onnxplain]\nlevels = { OXP1007 = 'warn' }\n", 2, ["levels.OXP1007", "'warning'"]),
        ("[tool.onnxplain]\nlevels = { OXP10077 = 'note' }\n", 2, ["levels", "OXP1007 "]),
        ('[tool.onnxplain]\nselect = ["OXP9"]\n', 2, ["select", "OXP9"]),
        ('[tool.onnxplain]\ninputs = ["x=f31[2]"]\n', 2, ["inputs", "'f32'"]),
        ("[tool.onnxplain]\nstrategies = []\n", 2, ["strategies", "not empty"]),
        ("[tool.onnxplain.gate]\nmax-erors = 1\n", 2, ["gate.max-erors", "'max-errors'"]),
        ("[[tool.onnxplain.profiles]]\nopset = 18\n", 1, ["profiles[0]", "paths"]),
        (
            '[[tool.onnxplain.profiles]]\npaths = ["a"]\n[[tool.onnxplain.profiles]]\npaths = ["b"]\nverfy = true\n',
            5,
            ["[1].verfy", "'verify'"],
        ),
        ("[tool.onnxplain\n", None, ["pyproject.toml"]),
    ],
)
def test_a_section_that_is_not_valid(text: str, place: int | None, told: list[str], folder: pathlib.Path, calls: list[Any]) -> None:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    for command in (["export", "models.py:double"], ["config", "models.py"]):
        result = run(*command)
        assert result.exit_code == 2
        assert ("pyproject.toml" if place is None else f"pyproject.toml:{place}: ") in result.stderr
        assert all(part in result.stderr for part in told), result.stderr
        assert ("not empty" in result.stderr) is ("not empty" in told)
    assert not calls


def test_a_gate_without_a_valid_section_gives_no_verdict(folder: pathlib.Path) -> None:
    write(["a  # W"])
    (folder / "pyproject.toml").write_text("[tool.onnxplain.gate]\nmax-warnings = -1\n", encoding="utf-8")
    assert run("gate", LOG).exit_code == 2
    (folder / "pyproject.toml").write_text('[tool.onnxplain.gate]\nformat = "jsno"\n', encoding="utf-8")
    result = run("gate", LOG)
    assert (result.exit_code, "'json'" in result.stderr) == (2, True)


@pytest.mark.usefixtures("folder")
def test_a_variable_with_a_wrong_value_is_named(calls: list[Any]) -> None:
    result = run("export", "models.py:double", ONNXPLAIN_EXPORT_OPSET="many")
    assert (result.exit_code, "ONNXPLAIN_EXPORT_OPSET" in result.stderr) == (2, True)
    assert run("export", "models.py:double", ONNXPLAIN_VERSION="0.2.0").exit_code == 0
    assert len(calls) == 1


def test_config_shows_where_values_come_from(section: pathlib.Path) -> None:
    lines = SECTION.splitlines()

    def line(text: str) -> str:
        return f"pyproject.toml:{lines.index(text) + 1}"

    shown = rows("models.py:double", ONNXPLAIN_EXPORT_SELECT="OXP1", ONNXPLAIN_EXPORT_LEVELS="OXP3=note")
    profile = " (profile models.py, legacy/*)"
    assert shown["export.opset"] == ["20", line("opset = 20") + profile]
    assert shown["export.verify"] == ["true", line("verify = true")]
    assert shown["export.report"] == ["true", line("report = true")]
    assert shown["export.sarif"] == ["logs/", line('sarif = "logs/"')]
    assert shown["export.select"] == ["OXP1", "ONNXPLAIN_EXPORT_SELECT"]
    values, origins = shown["export.levels"]
    assert {*values.split(", ")} == {"OXP1007=error", "OXP1001=warning", "OXP3=note"}
    assert "ONNXPLAIN_EXPORT_LEVELS" in origins
    assert line('levels = { OXP1007 = "error" }') in origins
    assert shown["export.optimize"] == ["true", "default"]
    assert shown["gate.max-warnings"] == ["0", line("max-warnings = 0")]
    assert shown["gate.max-errors"] == ["0", "default"]
    assert rows()["export.opset"][0] == "18"
    assert rows(str(section.parent))["export.opset"][0] == "18"
    assert rows("legacy/net.py")["export.opset"][0] == "19"


def test_the_example_of_the_page_is_valid(folder: pathlib.Path) -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (folder / "pyproject.toml").write_text(example, encoding="utf-8")
    shown = rows("models/legacy/net.py")
    assert (shown["export.opset"][0], shown["export.verify"][0], shown["gate.max-warnings"][0]) == ("17", "true", "0")


def test_the_schema_names_the_options_that_there_are() -> None:
    schema = schemas.load("config")
    for properties, name in ((schema["properties"], "export"), (schema["properties"]["gate"]["properties"], "gate")):
        command = main.get_command(click.Context(main), name)
        assert command is not None
        options = {(each.name or "").replace("_", "-"): each for each in command.params if isinstance(each, click.Option)}
        assert {*options} - {"output", "watch"} == {*properties} - {"output", "gate", "profiles"}
        for key, option in options.items():
            definition = schema["$defs"].get(key, {})
            choices = definition.get("enum") or definition.get("items", {}).get("enum")
            if choices:
                assert isinstance(option.type, click.Choice)
                assert [*option.type.choices] == choices
    profile = schema["properties"]["profiles"]["items"]["properties"]
    assert {*profile} - {"paths"} == {*schema["$defs"]} == {*schema["properties"]} - {"gate", "profiles"}


@pytest.mark.usefixtures("folder")
def test_log_and_script_tell_the_settings_of_files_and_variables(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxplain.repro.trial.difference", lambda *_: "")
    monkeypatch.setattr("onnxplain.repro.minimise.minimised", lambda script, *_: Minimised(script))
    section = '[tool.onnxplain]\nrepro = true\ntry-fixes = false\noptimize = false\nignore = ["OXP4"]\nverify = true\n'
    (folder / "pyproject.toml").write_text(section, encoding="utf-8")
    assert run("export", "models.py:flip", "--no-verify", ONNXPLAIN_EXPORT_OPSET="17").exit_code == 1
    script = (folder / "Flip.repro.py").read_text(encoding="utf-8")
    for keyword in ("try_fixes=False", "optimize=False", "opset_version=17", "ignore=('OXP4',)"):
        assert keyword in script
    log = json.loads((folder / ".sarif" / "Flip.sarif").read_text(encoding="utf-8"))
    told = [each["message"]["text"] for each in log["runs"][0]["invocations"][0]["toolExecutionNotifications"]]
    for place in ("pyproject.toml:2", "pyproject.toml:3", "pyproject.toml:4", "pyproject.toml:5", "ONNXPLAIN_EXPORT_OPSET"):
        assert sum(place in text for text in told) == 1
    assert not any("pyproject.toml:6" in text for text in told)
