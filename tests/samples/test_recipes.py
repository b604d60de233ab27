"""The recipes work as pasted: the tests run their steps, with the real commands, in a repository with a user's models."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
import warm
import yaml
from marks import needs_columns
from sarif_checks import check_log

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "vscode-samples"
RECIPES = SAMPLES / "recipes"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to run the recipes with")]


class Repository:
    """A clone of a user's models, with `main` of its origin at the cloned commit."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder / "clone"
        commands = folder / "bin"
        (commands / "pip").write_text('#!/bin/sh\necho "pip $*"\n', encoding="utf-8")
        (commands / "pip").chmod(0o755)
        self._environment = {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "CI_DEFAULT_BRANCH": "main"}
        origin = folder / "origin"
        (origin / "models").mkdir(parents=True)
        shutil.copy(SAMPLES / "healthy.py", origin / "models")
        self.run("git init --quiet --initial-branch=main && git add . && " + COMMIT, origin)
        self.run(f"git clone --quiet --depth=1 file://{origin} clone", folder)
        self.origin = origin

    def run(self, script: str, folder: pathlib.Path | None = None, options: str = "-e") -> subprocess.CompletedProcess[str]:
        """Runs `script` with bash, as CI does. `stdout` has its output."""
        command = ["bash", *options.split(), "-c", script]
        where = folder or self.folder
        return subprocess.run(command, cwd=where, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def add_flawed_model(self) -> None:
        shutil.copy(SAMPLES / "frozen_batch.py", self.folder / "models")

    def accept_on_main(self) -> None:
        """Accepts the findings of the logs, and commits the baseline to main of the origin."""
        done = self.run("onnxplain baseline accept .sarif/*.sarif")
        assert done.returncode == 0, done.stdout
        shutil.move(self.folder / "onnxplain-baseline.sarif", self.origin)
        assert self.run("git add . && " + COMMIT, self.origin).returncode == 0


COMMIT = "git -c user.name=somebody -c user.email=somebody@example.com commit --quiet --message models"


@pytest.fixture
def repository(tmp_path: pathlib.Path) -> Iterator[Repository]:
    (tmp_path / "bin").mkdir()
    with warm.installed(tmp_path / "bin" / "onnxplain"):
        yield Repository(tmp_path)


def recipe(name: str) -> Any:
    return yaml.safe_load((RECIPES / name).read_text(encoding="utf-8"))


@needs_columns
def test_shell(repository: Repository) -> None:
    check = f'bash "{RECIPES / "check.sh"}"'
    repository.add_flawed_model()
    done = repository.run(check)
    assert done.returncode == 1, done.stdout
    assert "frozen_batch.py:20:16" in done.stdout
    assert (repository.folder / "out/healthy.onnx").exists()
    assert repository.run("onnxplain baseline accept .sarif/*.sarif").returncode == 0
    done = repository.run(f"{check} models/frozen_batch.py")
    assert done.returncode == 0, done.stdout
    # A target that is not a model is a mistake, whatever the baseline accepts.
    (repository.folder / "models/empty.py").touch()
    assert repository.run(f"{check} models/empty.py").returncode != 0


def test_github_actions(repository: Repository) -> None:
    workflow = recipe("github-actions.yml")
    assert workflow["permissions"]["security-events"] == "write"
    (job,) = workflow["jobs"].values()
    steps = {step.get("name", step.get("uses")): step for step in job["steps"]}
    repository.add_flawed_model()
    for name in ("Install", "Export"):
        done = repository.run(steps[name]["run"])
        assert done.returncode == 0, done.stdout
    assert len(re.findall(r"^(?:Exported|The export of) ", done.stdout, re.MULTILINE)) == 2, "each model is exported once"
    upload = steps["Upload"]
    assert upload["uses"].startswith("github/codeql-action/upload-sarif@")
    assert upload["if"].startswith("always()")
    uploaded = sorted((repository.folder / upload["with"]["sarif_file"]).glob("*.sarif"))
    assert [path.stem for path in uploaded] == ["frozen_batch", "healthy"]
    runs = [run for path in uploaded for run in check_log(path)["runs"]]
    assert len({run["automationDetails"]["id"] for run in runs}) == len(runs), "GitHub takes one log of a category"
    for run in runs:
        for result in run["results"]:
            assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "models/frozen_batch.py"
    gate = repository.run(steps["Gate"]["run"])
    assert gate.returncode == 1, gate.stdout
    assert "::error " in gate.stdout
    assert "file=models/frozen_batch.py" in gate.stdout
    repository.accept_on_main()
    done = repository.run(steps["Gate"]["run"])
    assert done.returncode == 0, done.stdout
    assert "::error " not in done.stdout


def test_gitlab(repository: Repository) -> None:
    job = recipe("gitlab-ci.yml")["onnx"]
    assert job["artifacts"]["when"] == "always"
    reports = {name: repository.folder / path for name, path in job["artifacts"]["reports"].items()}
    # GitLab runs the lines of a script in one shell, which stops at the first that fails.
    script = "\n".join(job["script"])
    repository.add_flawed_model()
    done = repository.run(script, None, "-eo pipefail")
    assert done.returncode == 1, done.stdout
    (issue,) = json.loads(reports["codequality"].read_text(encoding="utf-8"))
    assert issue["check_name"] == "OXP1003"
    assert issue["location"]["path"] == "models/frozen_batch.py"
    assert ElementTree.parse(reports["junit"]).findall(".//failure")
    repository.accept_on_main()
    done = repository.run(script, None, "-eo pipefail")
    assert done.returncode == 0, done.stdout
    assert not ElementTree.parse(reports["junit"]).findall(".//failure")


@pytest.mark.parametrize("checkout", [False, True])
def test_what_is_installed(checkout: bool, repository: Repository) -> None:
    if checkout:
        (repository.folder / "onnxplain").mkdir()
        (repository.folder / "onnxplain/pyproject.toml").touch()
    (job,) = recipe("github-actions.yml")["jobs"].values()
    (github,) = (step["run"] for step in job["steps"] if step.get("name") == "Install")
    for script in (github, recipe("gitlab-ci.yml")["onnx"]["script"][0]):
        assert repository.run(script).stdout == f"pip install {'./' if checkout else ''}onnxplain\n"


@needs_columns
def test_pre_commit(repository: Repository) -> None:
    (source,) = recipe("pre-commit-config.yaml")["repos"]
    (hook,) = source["hooks"]
    assert hook["require_serial"], "two hooks at once would judge each other's logs"
    entry = shlex.join(shlex.split(hook["entry"]))
    repository.add_flawed_model()
    done = repository.run(f"{entry} models/frozen_batch.py models/healthy.py")
    assert done.returncode == 1, done.stdout
    assert "frozen_batch.py:20:16" in done.stdout
    assert (repository.folder / "out/healthy.onnx").exists()
    assert repository.run("onnxplain baseline accept .sarif/*.sarif").returncode == 0
    done = repository.run(f"{entry} models/frozen_batch.py")
    assert done.returncode == 0, done.stdout
    assert repository.run(f"{entry} models/nothing.py").returncode != 0
