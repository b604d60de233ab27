"""Microsoft's viewer in a browser: the web component in which Azure DevOps shows logs."""

from __future__ import annotations

import collections
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .node import HERE, MODULES, Missing

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_LINK = re.compile(r"\[([^\]]*)\]\((\d+)\)")


@dataclasses.dataclass(frozen=True)
class Shown:
    """A result as a user sees it.

    Attributes:
        rule: The id and the name of its rule.
        level: The level of its icon.
        place: Lines about the place: the part of the model, the file.
        message: Its message; blanks count once.
        snippet: The source lines.
        marked: The part of them that is marked.
    """

    rule: str
    level: str
    place: tuple[str, ...]
    message: str
    snippet: str
    marked: str


def find_browser() -> str:
    """The path of Chromium or a similar browser. Raises `Missing`."""
    for name in _BROWSERS:
        if path := shutil.which(name):
            return path
    raise Missing("Chromium is missing: apt-get install chromium, or a Google Chrome on the PATH")


def bundle(folder: pathlib.Path) -> pathlib.Path:
    """The script of the page, put into `folder`."""
    script = folder / "viewer.js"
    options = ("--bundle", "--minify", "--format=iife", '--define:process.env.NODE_ENV="production"', "--define:global=window")
    command = [MODULES / ".bin" / "esbuild", HERE / "entry.js", *options, f"--outfile={script}", "--log-level=warning"]
    subprocess.run(command, check=True)
    return script


def view(
    logs: Sequence[pathlib.Path], script: pathlib.Path, pictures: Mapping[pathlib.Path, pathlib.Path] | None = None
) -> Iterator[tuple[pathlib.Path, list[str]]]:
    """Opens `logs` one after the other, and lists for each the missing and the unexpected parts of the page, and errors.

    `pictures` tells of which logs to take a picture, and where to.
    """
    wanted = [{"path": str(log), "picture": str(pictures[log]) if pictures and log in pictures else None} for log in logs]
    order = json.dumps({"browser": find_browser(), "script": str(script), "logs": wanted})
    done = subprocess.run(["node", HERE / "view.mjs"], input=order, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    for log, seen in zip(logs, json.loads(done.stdout), strict=True):
        yield log, list(_compare(json.loads(log.read_text(encoding="utf-8")), seen))


def _compare(content: Mapping[str, Any], seen: Mapping[str, Any]) -> Iterator[str]:
    """The differences between a log and the page that shows it."""
    yield from seen["problems"]
    (run,) = content["runs"]
    repositories = [each["repositoryUri"] for each in run.get("versionControlProvenance", ())]
    yield from (f"a link to {link}" for link in seen["links"] if not link.startswith((*repositories, "file:")))
    if run["results"] and seen["tool"] != run["tool"]["driver"]["name"]:
        yield f"the tool is {seen['tool']!r}"
    if not run["results"] and seen["said"] != ["No results found"]:
        yield f"it says {seen['said']}"
    expected = collections.Counter(_expected(run, result) for result in run["results"])
    shown = collections.Counter(_shown(row) for row in seen["results"])
    yield from (f"missing: {row}" for row in (expected - shown).elements())
    yield from (f"shown: {row}" for row in (shown - expected).elements())


def _expected(run: Mapping[str, Any], result: Mapping[str, Any]) -> Shown:
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    (location,) = result.get("locations", ({},))
    physical = location.get("physicalLocation", {})
    lines = [
        *(each["fullyQualifiedName"] for each in location.get("logicalLocations", ())[:1]),
        *([physical["artifactLocation"]["uri"]] if physical else []),
    ]
    snippet, marked = _source(physical)
    return Shown(
        rule=f"{rule['id']}: {rule.get('name')}",
        level=result["level"],
        place=tuple(map(_plain, lines)) or ("—",),
        message=_plain(_LINK.sub(r"\1", result["message"]["text"])),
        snippet=snippet,
        marked=marked,
    )


def _shown(row: Mapping[str, Any]) -> Shown:
    return Shown(
        rule=row["rule"],
        level=row["level"],
        place=tuple(map(_plain, row["place"])),
        message=_plain(row["message"]),
        snippet=row["snippet"].rstrip("\n"),
        marked=row["marked"],
    )


def _source(physical: Mapping[str, Any]) -> tuple[str, str]:
    """The source lines around a place, without their common indentation, and the part of them that is the place."""
    region, around = physical.get("region", {}), physical.get("contextRegion")
    text = region.get("snippet", {}).get("text", "")
    if around is None:
        return text.rstrip("\n"), ""
    lines = around["snippet"]["text"].split("\n")
    indentation = min(len(line) - len(line.lstrip(" ")) for line in lines if line.strip())
    first, *rest = text.split("\n")
    return "\n".join(line[indentation:] for line in lines).rstrip("\n"), "\n".join([first, *(line[indentation:] for line in rest)])


def _plain(text: str) -> str:
    return " ".join(text.split())
