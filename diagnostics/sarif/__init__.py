"""The log as SARIF 2.1.0, with the fields that its readers need: VS Code, GitHub code scanning, the multitool, sarif-tools, CI gates.

There are two profiles. `full` has all that is known. `github` has what GitHub code scanning accepts: it refuses a whole file for one result
without a place in the repository, and shows what is suppressed as if it were not.
"""

from __future__ import annotations

import contextlib
import gzip
import pathlib

from onnxplain.diagnostics import atomic, checkout, encode
from onnxplain.diagnostics.flow import GRAPHS
from onnxplain.diagnostics.log import Log
from onnxplain.diagnostics.options import SarifProfile

from .run import build

_UPLOAD_LIMIT = 10 * 10**6
"""Bytes of a gzipped log that GitHub code scanning accepts."""


def write(log: Log, path: pathlib.Path, *, profile: SarifProfile = "full", base: pathlib.Path | None = None) -> tuple[str, ...]:
    """Writes `log` to `path`, whole or not at all; makes the folders above it.

    The graphs that its findings lead through are written, too, as text files to `graphs_folder(path)`;
    those of an earlier log there go.

    Args:
        log: What was reported.
        path: The file.
        profile: What is in it, see above.
        base: As for `to_json`.

    Returns:
        What was left out, a sentence each. The written log says it, too.

    Raises:
        OSError: It cannot be written; what was there before is still there.
    """
    text, graphs, left_out = _built(log, base, profile, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = graphs_folder(path)
    if graphs:
        folder.mkdir(exist_ok=True)
    for name in GRAPHS:
        file = folder / f"{name}.txt"
        if name in graphs:
            atomic.replace(file, graphs[name].encode("utf-8", "replace"))
        else:
            file.unlink(missing_ok=True)
    if not graphs:
        with contextlib.suppress(OSError):
            folder.rmdir()
    atomic.replace(path, text.encode())
    return left_out


def to_json(log: Log, base: pathlib.Path | None = None, *, profile: SarifProfile = "full", path: pathlib.Path | None = None) -> str:
    """`log` as the text of a SARIF file.

    Args:
        log: What was reported.
        base: Source files below it are named relative to it. By default the root of the git checkout around the current folder, or that
            folder itself.
        profile: What is in it, see above.
        path: Where the file will be; without it the text tells no places in the graphs beside it.
    """
    return _built(log, base, profile, path)[0]


def graphs_folder(path: pathlib.Path) -> pathlib.Path:
    """The folder beside the log at `path` for the graphs that it refers to."""
    return path.with_suffix(".graphs")


def _built(
    log: Log, base: pathlib.Path | None, profile: SarifProfile, path: pathlib.Path | None
) -> tuple[str, dict[str, str], tuple[str, ...]]:
    """The text of the log, the files with its graphs, and what was left out."""
    here = pathlib.Path.cwd()
    base = (base or checkout.root(here) or here).absolute()
    folder = None if path is None else graphs_folder(path.absolute())
    built = build(log, base, folder, github=profile == "github")
    text = encode.to_json(built.log)
    kept = built.results
    while profile == "github" and kept and len(gzip.compress(text.encode(), 1)) > _UPLOAD_LIMIT:
        kept //= 2
        built = build(log, base, folder, github=True, limit=kept)
        text = encode.to_json(built.log)
    return text, dict(built.graphs), built.left_out
