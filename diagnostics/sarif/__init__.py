"""The log as SARIF 2.1.0, with the fields that its readers need: VS Code, GitHub code scanning, the multitool, sarif-tools, CI gates.

There are two profiles. `full` holds everything that is known. `github` holds what GitHub code scanning accepts: one result without a place
in the repository makes GitHub refuse the whole file, and GitHub shows suppressed results as if they counted.
"""

from __future__ import annotations

import contextlib
import gzip
import pathlib

from onnxplain.diagnostics import git_checkout
from onnxplain.diagnostics.atomic_files import replace_file
from onnxplain.diagnostics.code_flow import GRAPHS, graphs_folder
from onnxplain.diagnostics.json_text import to_json as json_text
from onnxplain.diagnostics.log import Log
from onnxplain.diagnostics.options import SarifProfile
from onnxplain.diagnostics.privacy import Privacy

from .run import build

_UPLOAD_LIMIT = 10 * 10**6
"""The largest gzipped log that GitHub code scanning accepts, in bytes."""


def write(log: Log, path: pathlib.Path, *, profile: SarifProfile = "full", base: pathlib.Path | None = None) -> tuple[str, ...]:
    """Writes `log` to `path`, whole or not at all. Makes the folders above it.

    Also writes the graphs that findings lead through, as text files in `graphs_folder(path)`, and removes those of an earlier log.

    Args:
        log: The log.
        path: The file.
        profile: What the file holds, see the module's docstring.
        base: As for `to_json`.

    Returns:
        What the file omits, one sentence each. The file itself lists it as notifications.

    Raises:
        OSError: A file cannot be written; an earlier log is unharmed.
    """
    text, graphs, left_out = _built(log, base, profile, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    folder = graphs_folder(path)
    if graphs:
        folder.mkdir(exist_ok=True)
    for name in GRAPHS:
        file = folder / f"{name}.txt"
        if name in graphs:
            replace_file(file, graphs[name].encode("utf-8", "replace"))
        else:
            file.unlink(missing_ok=True)
    if not graphs:
        with contextlib.suppress(OSError):
            folder.rmdir()
    replace_file(path, text.encode())
    return left_out


def to_json(log: Log, base: pathlib.Path | None = None, *, profile: SarifProfile = "full", path: pathlib.Path | None = None) -> str:
    """`log` as the text of a SARIF file.

    Args:
        log: The log.
        base: Source files below this folder get URIs relative to it. By default the root of the git checkout around the folder that was the
            current one when the export began, or that folder itself.
        profile: What the file holds, see the module's docstring.
        path: The future place of the file. Without it no step of a code flow points to a graph.
    """
    return _built(log, base, profile, path)[0]


def _built(
    log: Log, base: pathlib.Path | None, profile: SarifProfile, path: pathlib.Path | None
) -> tuple[str, dict[str, str], tuple[str, ...]]:
    """The text of the log, the text of its graphs by name, and what the log omits."""
    here = log.folder or pathlib.Path(path or ".").absolute().parent
    base = (base or git_checkout.root(here) or here).absolute()
    folder = None if path is None else graphs_folder(path.absolute())
    privacy = Privacy(base)
    built = build(log, privacy, folder, github=profile == "github")
    text = json_text(built.log)
    kept = built.results
    while profile == "github" and kept and len(gzip.compress(text.encode(), 1)) > _UPLOAD_LIMIT:
        kept //= 2
        built = build(log, privacy, folder, github=True, limit=kept)
        text = json_text(built.log)
    return text, {name: privacy.text(graph) for name, graph in built.graphs.items()}, built.left_out
