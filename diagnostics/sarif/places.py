"""Places in files as SARIF's physical locations: URIs, regions in UTF-16 columns, snippets."""

from __future__ import annotations

import functools
import linecache
import os
import pathlib
import urllib.parse

import sarif_om

from onnxplain.diagnostics import fingerprint
from onnxplain.diagnostics.location import Location, Region
from onnxplain.diagnostics.privacy import PACKAGE_FOLDERS, ROOT, Privacy
from onnxplain.diagnostics.source_text import column_to_utf16

SNIPPET_LIMIT = 10_000
"""Characters. The log omits a longer snippet, of generated code for example, because every finding there would repeat it."""
_CONTEXT_LINES = 2


class Sources:
    """The files of one log, each read once.

    Args:
        privacy: What the log tells of their folders.
    """

    def __init__(self, privacy: Privacy) -> None:
        self.privacy = privacy
        self._sources: dict[str, Source] = {}

    def __getitem__(self, file: str) -> Source:
        found = self._sources.get(file)
        if found is None:
            found = self._sources[file] = Source(file, self.privacy, _lines(file))
        return found

    def add(self, file: str, text: str) -> None:
        """Adds a file that will exist as soon as the log does."""
        self._sources[file] = Source(file, self.privacy, text.splitlines())

    def bases(self) -> set[str]:
        """The bases of the files that were asked for."""
        return {source.location.uri_base_id for source in self._sources.values()} - {None}

    def has(self, place: Location | None) -> bool:
        """Whether `place` is an existing line of a file in the repository: below the root and outside installed packages."""
        if place is None or not place.file or place.region is None:
            return False
        source = self[place.file]
        return source.in_repository and source.fit(place.region) is not None


class Source:
    """A source file: its name, its lines, and regions in them."""

    def __init__(self, file: str, privacy: Privacy, lines: list[str]) -> None:
        self.file = file
        self.lines = lines
        self.location = artifact_location(file, privacy)
        in_root = self.location.uri_base_id == ROOT
        self.name: str = self.location.uri if in_root else pathlib.PurePath(file).name
        """The same on every machine."""
        self._fitted: dict[Region, Region] = {}
        self._made: dict[tuple[Region | None, bool], sarif_om.PhysicalLocation] = {}
        self.in_repository = in_root and not PACKAGE_FOLDERS & set(pathlib.PurePath(file).parts)

    def hash_of(self, line: int) -> str | None:
        """GitHub's hash of a line; None if the file has no such line."""
        return self._hashes[line - 1] if 1 <= line <= len(self.lines) and line <= len(self._hashes) else None

    @functools.cached_property
    def _hashes(self) -> list[str]:
        try:
            # NOTE: GitHub reads UTF-8 whatever the file declares, and its hashes depend on the end of the last line.
            text = pathlib.Path(self.file).read_bytes().decode("utf-8", "replace")
        except (OSError, ValueError):
            text = "\n".join([*self.lines, ""])
        return fingerprint.line_hashes(text)

    def fit(self, region: Region) -> Region | None:
        """`region` with all its numbers, cut to the file. None if the file lacks the line, because another version of it ran."""
        if not 1 <= region.line <= len(self.lines):
            return None
        if region in self._fitted:
            return self._fitted[region]
        self._fitted[region] = fitted = self._fit(region)
        return fitted

    def _fit(self, region: Region) -> Region:
        first, last = region.line, min(max(region.line, region.last_line), len(self.lines))
        end = len(self.lines[last - 1]) + 1
        column = min(max(region.column or 1, 1), len(self.lines[first - 1]) + 1)
        end_column = min(max(region.end_column or end, 1), end) if last == region.last_line else end
        return Region(first, column, last, end if first == last and end_column < column else end_column)

    def text(self, fitted: Region) -> str:
        """The text of a region that `fit` returned."""
        lines = self.lines[fitted.line - 1 : fitted.last_line]
        lines[-1] = lines[-1][: (fitted.end_column or 1) - 1]
        lines[0] = lines[0][(fitted.column or 1) - 1 :]
        return "\n".join(lines)

    def region(self, fitted: Region) -> sarif_om.Region:
        """The numbers of a region that `fit` returned, columns in UTF-16 code units."""
        return sarif_om.Region(
            start_line=fitted.line,
            start_column=column_to_utf16(self.lines[fitted.line - 1], fitted.column or 1),
            end_line=fitted.last_line,
            end_column=column_to_utf16(self.lines[fitted.last_line - 1], fitted.end_column or 1),
        )

    def physical(self, region: Region | None, *, context: bool = False) -> sarif_om.PhysicalLocation:
        """The file, the region with its text, and with `context` the lines around it. Equal places share one object: never modify it."""
        key = (region, context)
        if key not in self._made:
            self._made[key] = self._physical(region, context)
        return self._made[key]

    def _physical(self, region: Region | None, context: bool) -> sarif_om.PhysicalLocation:
        physical = sarif_om.PhysicalLocation(artifact_location=self.location)
        if region is None:
            return physical
        if not self.lines:
            physical.region = _unseen(region)
            return physical
        fitted = self.fit(region if region.column else _without_indentation(region, self.lines))
        if fitted is None:
            return physical
        physical.region = self.region(fitted)
        physical.region.snippet = snippet_of(self.text(fitted))
        if not region.column:
            physical.region.properties = {"wholeLine": True}
        around = self.fit(Region(max(1, fitted.line - _CONTEXT_LINES), 1, fitted.last_line + _CONTEXT_LINES))
        if context and around and around != fitted and (snippet := snippet_of(self.text(around))):
            physical.context_region = sarif_om.Region(start_line=around.line, end_line=around.last_line, snippet=snippet)
        return physical


def artifact_location(file: str, privacy: Privacy) -> sarif_om.ArtifactLocation:
    """`file` relative to one of the bases of the log."""
    if not _is_path(file):
        return sarif_om.ArtifactLocation(uri=urllib.parse.quote(file, errors="replace"))
    base, path = privacy.place(file)
    return sarif_om.ArtifactLocation(uri=urllib.parse.quote(os.fsencode(path)), uri_base_id=base)


def folder_location(folder: pathlib.Path, privacy: Privacy) -> sarif_om.ArtifactLocation | None:
    """A folder below the root, with the slash at the end of its URI that folders need; None for other folders."""
    base, path = privacy.place(str(folder))
    if base != ROOT:
        return None
    return sarif_om.ArtifactLocation(uri=None if path == "." else urllib.parse.quote(os.fsencode(path)) + "/", uri_base_id=base)


def snippet_of(text: str) -> sarif_om.ArtifactContent | None:
    """`text` as SARIF content; None if it is empty or too long."""
    return sarif_om.ArtifactContent(text=text) if 0 < len(text) <= SNIPPET_LIMIT else None


def _lines(file: str) -> list[str]:
    try:
        return [line.rstrip("\r\n") for line in linecache.getlines(file)]
    except ValueError:
        # NOTE: linecache raises this for a name that no file can have, with NUL or half a surrogate pair.
        return []


def _is_path(file: str) -> bool:
    """False for Python's names of source outside all files, such as `<stdin>`, and for names that no file can have."""
    try:
        os.fsencode(file)
    except UnicodeEncodeError:
        return False
    return not file.startswith("<") and "\0" not in file


def _unseen(region: Region) -> sarif_om.Region | None:
    """The lines of `region` in a file that cannot be read. Columns in UTF-16 need the text."""
    return sarif_om.Region(start_line=region.line, end_line=max(region.line, region.last_line)) if region.line >= 1 else None


def _without_indentation(region: Region, lines: list[str]) -> Region:
    text = lines[region.line - 1] if 1 <= region.line <= len(lines) else ""
    return Region(region.line, len(text) - len(text.lstrip()) + 1, region.end_line, region.end_column)
