"""Whether the files that an export wrote are still those that its log describes."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterator

from onnxplain.diagnostics import fingerprint
from onnxplain.diagnostics.file_hash import sha256
from onnxplain.diagnostics.json_values import array, integer, string
from onnxplain.diagnostics.privacy import ROOT
from onnxplain.diagnostics.rule import Rule
from onnxplain.diagnostics.sarif_file import Json
from onnxplain.diagnostics.source_tree import SourceTree, Unreachable

from .results import Result, Run, location_of


def replaced(run: Run, content: Json, tree: SourceTree, rule: Callable[[str], Rule]) -> Iterator[Result]:
    """A result for each output of a run whose file exists and has other content.

    A file that is missing tells nothing: a log often travels without its model.

    Args:
        run: The run.
        content: The run as SARIF.
        tree: Where the outputs may lie.
        rule: Makes the finding for the path of an output.

    Raises:
        ValueError: An output exists and cannot be read.
    """
    for artifact in array(content.get("artifacts", [])):
        location, digest = artifact["location"], artifact.get("hashes", {}).get("sha-256")
        # NOTE: of a file elsewhere the log has only the name.
        if "resultFile" not in artifact.get("roles", ()) or digest is None or location.get("uriBaseId") != ROOT:
            continue
        try:
            path = tree.find(location, content.get("originalUriBaseIds", {}), suffixes=None)
        except Unreachable:
            continue
        if os.path.lexists(path) and not _is(path, integer(artifact["length"]), string(digest)):
            found = rule(string(location["uri"]))
            yield Result(
                run.model,
                fingerprint.digest(found.id, *found.identity()),
                found.id,
                found.level,
                str(found),
                location_of({"physicalLocation": {"artifactLocation": location}}),
                suppressed=False,
            )


def _is(path: pathlib.Path, size: int, digest: str) -> bool:
    try:
        # NOTE: the size differs for most other models, and hashing takes a second for each GB or so.
        return path.stat().st_size == size and sha256(path) == digest
    except OSError as error:
        raise ValueError(f"its output {path} cannot be read ({error.strerror})") from error
