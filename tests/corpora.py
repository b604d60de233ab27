"""The corpora of failures. Each is exported once in a test session, from a separate git checkout, as a user has one."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import pathlib
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from scoreboard import case as cases
from scoreboard.case import Case
from scoreboard.run import USER, run

OWN = pathlib.Path(__file__).parent / "corpus"
SHARED = pathlib.Path(__file__).parent.parent.parent / "shared" / "corpus"

REPOSITORY = "https://github.com/example/models"


@dataclasses.dataclass(frozen=True)
class Corpus:
    """The outcomes of a corpus's cases by name, and the folder of their SARIF logs: one folder for each profile, one log for each case."""

    outcomes: Mapping[str, tuple[Case, dict[str, Any]]]
    logs: pathlib.Path


def found(folder: pathlib.Path) -> list[Case]:
    """The cases of a corpus."""
    return [cases.read(path) for path in sorted(folder.glob("case_*.py"))]


def export(corpus: pathlib.Path, checkout: pathlib.Path) -> Corpus:
    """Exports every case of `corpus` from a copy in `checkout`, a new folder."""
    folder, logs = checkout / "models", checkout / ".sarif"
    shutil.copytree(corpus, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(USER, folder)
    commit(checkout)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = {case.name: (case, pool.submit(run, "ours", case, logs)) for case in found(folder)}
        return Corpus({name: (case, future.result()) for name, (case, future) in runs.items()}, logs)


def commit(folder: pathlib.Path) -> None:
    """Makes `folder` a checkout of `REPOSITORY`; without git, it stays a folder."""
    if not shutil.which("git"):
        return
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for command in (
        ("init", "--quiet", "--initial-branch=main"),
        ("remote", "add", "origin", f"{REPOSITORY}.git"),
        ("add", "."),
        ("-c", "user.name=Tests", "-c", "user.email=tests@example.com", "commit", "--quiet", "--message=Models"),
    ):
        subprocess.run(["git", *command], cwd=folder, env=environment, check=True)
