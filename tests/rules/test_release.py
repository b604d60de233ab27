"""The release of a version: `python -m onnxplain.rules --release` freezes the table of rules, and refuses a version that is not ready."""

from __future__ import annotations

import importlib.metadata
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from onnxplain.diagnostics import Rule
from onnxplain.rules import book

VERSION = importlib.metadata.version("onnxplain")
ROOT = pathlib.Path(__file__).parents[2]


def git(folder: pathlib.Path, *command: str) -> None:
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=folder, capture_output=True, check=True)


@pytest.fixture
def rules(tmp_path: pathlib.Path) -> pathlib.Path:
    """The rules folder of a clean checkout in which no rule is released yet."""
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "RELEASES.md").write_text("# Releases\n\nA text.\n\n", encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {VERSION} (2026-01-31)\n\nNumbers:\n\n- A change.\n", encoding="utf-8")
    assert run(folder).returncode == 0
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return folder


def commit(folder: pathlib.Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "A commit")


def run(folder: pathlib.Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "onnxplain.rules", *options, str(folder)], capture_output=True, text=True, check=False)


def tables(folder: pathlib.Path) -> dict[str, list[str]]:
    """The headings of `RELEASES.md` with the ids of their tables."""
    _, *parts = re.split(r"^## (.+)\n", (folder / "RELEASES.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {title: re.findall(r"^\| (OXP\d+)", body, re.MULTILINE) for title, body in zip(parts[::2], parts[1::2], strict=True)}


def test_a_release_freezes_the_unshipped_table(rules: pathlib.Path) -> None:
    ids = [rule.id for rule in Rule.all()]
    assert tables(rules) == {"Unshipped": ids}
    assert run(rules, "--release", VERSION).returncode == 0
    assert tables(rules) == {"Unshipped": [], VERSION: ids}
    shipped = (rules / "RELEASES.md").read_text(encoding="utf-8")
    assert "A text." in shipped
    assert run(rules).returncode == 0
    assert (rules / "RELEASES.md").read_text(encoding="utf-8") == shipped


def unnamed(rules: pathlib.Path) -> None:
    (rules.parent / "CHANGELOG.md").write_text("# Changelog\n\n## 0.0.1 (2026-01-31)\n\n- A change.\n", encoding="utf-8")
    commit(rules.parent)


def undated(rules: pathlib.Path) -> None:
    (rules.parent / "CHANGELOG.md").write_text(f"# Changelog\n\n## {VERSION} (unreleased)\n\n- A change.\n", encoding="utf-8")
    commit(rules.parent)


def without_entries(rules: pathlib.Path) -> None:
    text = f"# Changelog\n\n## {VERSION} (2026-01-31)\n\nNumbers:\n\n## 0.0.1 (2025-01-31)\n\n- A change.\n"
    (rules.parent / "CHANGELOG.md").write_text(text, encoding="utf-8")
    commit(rules.parent)


def shipped(rules: pathlib.Path) -> None:
    assert run(rules, "--release", VERSION).returncode == 0
    commit(rules.parent)


def changed(rules: pathlib.Path) -> None:
    (rules.parent / "new.py").touch()


def stale_catalog(rules: pathlib.Path) -> None:
    (rules / "CATALOG.md").write_text("# The rules\n", encoding="utf-8")
    commit(rules.parent)


def stale_table(rules: pathlib.Path) -> None:
    page = rules / "RELEASES.md"
    page.write_text(re.sub(r"^\| OXP1001 .*\n", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE), encoding="utf-8")
    commit(rules.parent)


def forgotten_event(rules: pathlib.Path) -> None:
    """As if an earlier release had shipped OXP1001 as a warning."""
    page = rules / "RELEASES.md"
    (row,) = re.findall(r"^\| OXP1001 .*\n", page.read_text(encoding="utf-8"), re.MULTILINE)
    head = "| Id | Name | Level | Arguments | Revision |\n| --- | --- | --- | --- | --- |\n"
    with page.open("a", encoding="utf-8") as file:
        file.write(f"\n## 0.1.0\n\n{head}{row.replace('error', 'warning')}")
    assert run(rules).returncode == 0
    commit(rules.parent)


def no_checkout(rules: pathlib.Path) -> None:
    (rules.parent / ".git").rename(rules.parent / "git")


@pytest.mark.parametrize(
    "unready", [unnamed, undated, without_entries, shipped, changed, stale_catalog, stale_table, forgotten_event, no_checkout]
)
def test_what_is_not_ready_is_not_released(rules: pathlib.Path, unready: Callable[[pathlib.Path], None]) -> None:
    unready(rules)
    before = (rules / "RELEASES.md").read_bytes()
    done = run(rules, "--release", VERSION)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr
    assert "Traceback" not in done.stderr
    assert (rules / "RELEASES.md").read_bytes() == before


def test_another_version_than_the_projects_is_not_released(rules: pathlib.Path) -> None:
    assert run(rules, "--release", "99.0.0").returncode == 1
    assert tables(rules).keys() == {"Unshipped"}


def test_the_version_of_the_project_has_one_source() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
    assert tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"] == VERSION
    assert f"\n## {VERSION} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    shipped = book.shipped(book.RELEASES.read_text(encoding="utf-8"))
    events = {event.version for rule in Rule.all() for event in rule.history}
    assert events <= {*shipped, VERSION}, "an event is of a release or of the version in work"
