"""The release of a version: freezes the table of rules that it ships."""

from __future__ import annotations

import importlib.metadata
import pathlib
import re
import subprocess

from onnxplain.diagnostics import write_file

from . import book


class NotReleased(Exception):
    """A check failed, and nothing was changed. The text names the reason."""


def release(version: str, folder: pathlib.Path) -> None:
    """Freezes the unshipped table of `RELEASES.md` under `version`.

    Args:
        version: The version, as in pyproject.toml.
        folder: The rules folder of a clean git checkout, whose `CHANGELOG.md` has a dated section for the version.

    Raises:
        NotReleased: The version is not the project's or is already frozen, the changelog lacks it, the checkout has uncommitted changes,
            a page of the book is stale, or the history of a rule does not lead to the table.
    """
    page = folder / book.RELEASES.name
    text, rules = page.read_text(encoding="utf-8"), book.rules()
    project = importlib.metadata.version("onnxplain")
    if version != project:
        raise NotReleased(f"the version of the project is {project}, not {version}")
    if version in book.shipped(text):
        raise NotReleased(f"{page.name} already has a frozen table for {version}")
    _check_changelog(version, folder.absolute().parent / "CHANGELOG.md")
    _check_committed(folder)
    if text != book.releases(rules, text) or (folder / book.CATALOG.name).read_text(encoding="utf-8") != book.catalog(rules):
        raise NotReleased("the pages do not show the present rules; run `make rules` and commit the result")
    frozen = book.frozen(rules, text, version)
    if wrong := book.disagreements(rules, frozen):
        raise NotReleased(f"the history does not lead to the table: {', '.join(f'{id} in {at}' for at, id in wrong)}")
    write_file(page, frozen)


def _check_changelog(version: str, changelog: pathlib.Path) -> None:
    # NOTE: entries stand under headings of their subjects, such as `Numbers:`.
    section = rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$(?:\n(?!## ).*)*?\n- "
    if not re.search(section, changelog.read_text(encoding="utf-8"), re.MULTILINE):
        raise NotReleased(f"{changelog.name} has no section `## {version} (YYYY-MM-DD)` with entries")


def _check_committed(folder: pathlib.Path) -> None:
    status = subprocess.run(["git", "status", "--porcelain"], cwd=folder, capture_output=True, text=True, check=False)
    if status.returncode:
        raise NotReleased(f"{folder} is not in a git checkout ({status.stderr.strip()})")
    if status.stdout:
        raise NotReleased("the checkout has uncommitted changes")
