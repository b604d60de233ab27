"""The samples that users see first do what their README says, and the files committed beside them are up to date."""

from __future__ import annotations

import difflib
import html
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import jsonschema
import pytest
import torch
from click.testing import CliRunner
from sarif_checks import OASIS_SCHEMA, check_log

import onnxplain
from onnxplain.cli import main
from onnxplain.diagnostics import Confidence, read_log

WORKSPACE = pathlib.Path(__file__).resolve().parents[2] / "vscode-samples"
README = (WORKSPACE / "README.md").read_text(encoding="utf-8")
TASKS = {task["label"]: task for task in json.loads((WORKSPACE / ".vscode/tasks.json").read_text(encoding="utf-8"))["tasks"]}
SAMPLES = re.findall(r"^## \d+\. (\w+)\.py$", README, re.MULTILINE)


class Problem(NamedTuple):
    """A row of VS Code's Problems panel."""

    severity: str
    code: str
    file: str
    line: int
    column: int | None
    message: str


def load(path: pathlib.Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exported(folder: pathlib.Path, name: str) -> dict[str, Any]:
    """The log of a sample in `folder`, the current one, which exports and equals eager PyTorch on the example."""
    options = ["--verify", "--output", "out/fixed.onnx", "--sarif", ".sarif/fixed.sarif"]
    done = CliRunner().invoke(main, ["export", f"{name}.py:build", *options])
    assert done.exit_code == 0, done.output
    return check_log(folder / ".sarif/fixed.sarif")


@pytest.fixture
def workspace(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A copy of the samples, and the current folder."""
    copy = tmp_path / "workspace"
    shutil.copytree(WORKSPACE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(copy)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for helper in ("poses", "tracking"):
        monkeypatch.delitem(sys.modules, helper, raising=False)
    return copy


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, str]:
    """A folder with newly written logs and pictures, and the output of the terminal meanwhile."""
    folder = tmp_path_factory.mktemp("regenerated")
    command = [sys.executable, str(WORKSPACE / "regenerate.py"), str(folder)]
    return folder, subprocess.run(command, cwd=WORKSPACE, check=True, capture_output=True, text=True).stdout


def files(folder: pathlib.Path) -> dict[str, str]:
    """The text of the files below `folder`, by their path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for part in (".sarif", "pictures")
        for path in sorted((folder / part).rglob("*"))
        if path.suffix in (".sarif", ".txt", ".svg")
    }


def shown(picture: str) -> list[str]:
    """The pieces of text in an SVG."""
    return [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", picture)]


def test_healthy_sample_exports_without_a_finding() -> None:
    model, args, kwargs, shapes = load(WORKSPACE / "healthy.py", "healthy").build()
    program = onnxplain.export(model, args, kwargs=kwargs, dynamic_shapes=shapes, verify=True)
    assert program.diagnostics.findings == ()


@pytest.mark.slow
def test_committed_logs_and_pictures_are_those_of_now(regenerated: tuple[pathlib.Path, str]) -> None:
    """`make samples` brings them up to date."""
    committed, now = files(WORKSPACE), files(regenerated[0])
    assert {f".sarif/{name}.sarif" for name in SAMPLES} <= set(committed)
    versions = json.loads(committed[f".sarif/{SAMPLES[0]}.sarif"])["runs"][0]["properties"]["onnxplain/environment"]
    here = {"python": f"{sys.version_info.major}.{sys.version_info.minor}", "torch": ".".join(torch.__version__.split(".")[:2])}
    if versions != here:
        pytest.skip(f"the committed logs were written with {versions}; what torch says, and columns, differ with {here}")
    assert committed.keys() == now.keys()
    for name in now:
        read = shown if name.endswith(".svg") else str.splitlines
        changes = difflib.unified_diff(read(committed[name]), read(now[name]), f"committed {name}", f"{name} of now", n=1, lineterm="")
        assert "\n".join(changes) == ""


@pytest.mark.parametrize("name", SAMPLES)
def test_committed_logs_are_valid_and_of_no_machine(name: str) -> None:
    text = (WORKSPACE / f".sarif/{name}.sarif").read_text(encoding="utf-8")
    for path in (pathlib.Path.home(), sys.prefix, tempfile.gettempdir(), WORKSPACE.parent, "file:", "site-packages"):
        assert f"{path}" not in text
    log = json.loads(text)
    if OASIS_SCHEMA.exists():
        jsonschema.Draft202012Validator(json.loads(OASIS_SCHEMA.read_text(encoding="utf-8"))).validate(log)
    (run,) = log["runs"]
    assert run["results"]
    check_log(log)


@pytest.mark.slow
def test_problem_matchers_see_every_finding(regenerated: tuple[pathlib.Path, str]) -> None:
    folder, printed = regenerated
    expected = [
        Problem(finding.level.value, finding.rule.id, finding.location.file, finding.location.line or 0, column, finding.message)
        for name in SAMPLES
        for finding in read_log(folder / f".sarif/{name}.sarif").findings
        if finding.location is not None and finding.location.region is not None
        for column in [finding.location.region.column]
    ]
    assert {problem.severity for problem in expected} == {"error", "warning", "note"}
    assert any(problem.column is None for problem in expected)
    # A finding without a place does not get the next one's.
    placeless = "error[OXP0001]: A finding without a place.\n   = note: Nothing is known.\n\n"
    for label in ("onnxplain: export this file", "onnxplain: export all samples"):
        matcher = TASKS[label]["problemMatcher"]
        assert matcher["fileLocation"] == ["autodetect", "${workspaceFolder}"]
        assert list(problems(matcher, placeless + printed + placeless)) == expected


def problems(matcher: dict[str, Any], printed: str) -> Iterator[Problem]:
    """The problems that VS Code reads from terminal output: the patterns, in order, must match consecutive lines."""
    patterns = matcher["pattern"]
    lines = printed.splitlines()
    for start in range(len(lines) - len(patterns) + 1):
        found: dict[str, str] = {}
        for pattern, line in zip(patterns, lines[start:], strict=False):
            match = re.search(pattern["regexp"], line)
            if match is None:
                break
            found.update({name: match[group] for name, group in pattern.items() if name != "regexp"})
        else:
            column = found["column"] and int(found["column"])
            yield Problem(found["severity"], found["code"], found["file"], int(found["line"]), column or None, found["message"])


@pytest.mark.slow
def test_tasks_export_and_fix_the_open_file(workspace: pathlib.Path) -> None:
    before = (workspace / "frozen_batch.py").read_text(encoding="utf-8")
    assert run("onnxplain: export this file", workspace / "frozen_batch.py") == 1
    assert check_log(workspace / ".sarif/frozen_batch.sarif")["runs"][0]["results"]
    assert run("onnxplain: fix this file's log", workspace / "frozen_batch.py") == 0
    assert (workspace / "frozen_batch.py").read_text(encoding="utf-8") != before
    assert run("onnxplain: export this file", workspace / "frozen_batch.py") == 0
    assert (workspace / "out/frozen_batch.onnx").exists()


def run(label: str, file: pathlib.Path) -> int:
    """Runs a task with `file` open. Returns its exit code."""
    task, values = TASKS[label], {"file": str(file), "fileBasenameNoExtension": file.stem, "command:python.interpreterPath": sys.executable}
    values["workspaceFolder"] = str(file.parent)
    command = [re.sub(r"\$\{(.+?)\}", lambda found: values[found[1]], part) for part in (task["command"], *task["args"])]
    assert task["type"] == "process"
    assert task["options"]["cwd"] == "${workspaceFolder}"
    return subprocess.run(command, cwd=file.parent, capture_output=True).returncode


@pytest.mark.parametrize(
    ("name", "confidence", "count"),
    [
        ("training_mode", Confidence.CHANGES_BEHAVIOUR, 1),
        ("data_dependent", Confidence.SAFE, 1),
        ("frozen_batch", Confidence.SAFE, 1),
        ("several_problems", Confidence.SAFE, 3),
    ],
)
def test_the_edits_of_a_committed_log_are_the_way_out(name: str, confidence: Confidence, count: int, workspace: pathlib.Path) -> None:
    findings = read_log(workspace / f".sarif/{name}.sarif").findings
    assert [finding.fixes[0].confidence for finding in findings if finding.fixes[0].edits] == [confidence] * count
    unsafe = [] if confidence is Confidence.SAFE else ["--unsafe"]
    assert CliRunner().invoke(main, ["fix", f".sarif/{name}.sarif", *unsafe]).exit_code == 0
    assert exported(workspace, name)["runs"][0]["results"] == []


@pytest.mark.parametrize("name", ["stream_state", "no_translation", "wrong_numbers"])
def test_the_way_out_in_the_readme_is_one(name: str, workspace: pathlib.Path) -> None:
    section = README.partition(f". {name}.py\n")[2].partition("\n## ")[0]
    (diff,) = re.findall(r"```diff\n(.*?)```", section, re.DOTALL)
    for hunk in diff.split("@@\n"):
        before, after = ("".join(line[1:] + "\n" for line in hunk.splitlines() if line[0] in signs) for signs in (" -", " +"))
        (path,) = (path for path in workspace.glob("*.py") if before in path.read_text(encoding="utf-8"))
        path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    assert exported(workspace, name)["runs"][0]["results"] == []


def test_the_fix_of_the_data_dependent_sample_keeps_both_branches(workspace: pathlib.Path) -> None:
    model, args = load(workspace / "data_dependent.py", "before").build()
    assert CliRunner().invoke(main, ["fix", ".sarif/data_dependent.sarif"]).exit_code == 0
    fixed, _ = load(workspace / "data_dependent.py", "after").build()
    program = onnxplain.export(fixed, args)
    for x in (torch.full((2, 8), 0.5), torch.full((2, 8), 3.0)):
        torch.testing.assert_close(program(x)[0], model(x))


def test_the_fix_of_the_frozen_sample_takes_any_batch(workspace: pathlib.Path) -> None:
    assert CliRunner().invoke(main, ["fix", ".sarif/frozen_batch.sarif"]).exit_code == 0
    model, args, _, shapes = load(workspace / "frozen_batch.py", "fixed").build()
    program = onnxplain.export(model, args, dynamic_shapes=shapes)
    for count in (2, 7):
        images = torch.rand(count, 3, 16, 16)
        torch.testing.assert_close(program(images)[0], model(images))


def test_readme_shows_every_sample_and_every_picture() -> None:
    samples = {path.stem for path in (WORKSPACE / ".sarif").glob("*.sarif")}
    assert samples == set(SAMPLES)
    assert re.findall(r"^\| \d+ \| \[(\w+)\.py\]", README, re.MULTILINE) == SAMPLES
    pictures = re.findall(r"!\[[^\]]+\]\((pictures/[\w.]+)\)", README)
    assert sorted(pictures) == sorted(path.relative_to(WORKSPACE).as_posix() for path in (WORKSPACE / "pictures").iterdir())
    assert all((WORKSPACE / picture).stat().st_size < 100_000 for picture in pictures)
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (WORKSPACE / target).exists(), target
