"""The source files that a log may speak of: Python files below one folder. A log is data, and may come from anybody."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import stat
import urllib.parse
import urllib.request
from collections.abc import Iterator

from . import git_checkout
from .errors import OnnxExporterError
from .json_values import string
from .privacy import ELSEWHERE, PACKAGES, ROOT
from .sarif_file import PATH_LIMIT, SIZE_LIMIT, Json

PYTHON = (".py", ".pyi", ".pyw")
"""How the names of Python files end."""

_SHOWN = 60
"""Characters of a path that is too long."""


class Unreachable(OnnxExporterError, ValueError):
    """A log names a file that onnxplain neither reads nor writes for it. The text names the file and the reason."""


@dataclasses.dataclass(frozen=True)
class SourceTree:
    """The Python files below a folder.

    Attributes:
        root: The folder, without links in its path.
        chosen: Whether the user named it. Then it may be the place of files that were outside of the checkout at the export.
    """

    root: pathlib.Path
    chosen: bool = False
    _found: dict[object, pathlib.Path] = dataclasses.field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def around(cls, root: pathlib.Path | None = None) -> SourceTree:
        """The files below `root`, or else below the root of the git checkout around the current folder, or else below that folder."""
        here = pathlib.Path.cwd()
        return cls((root or git_checkout.root(here) or here).resolve(), chosen=root is not None)

    def find(self, location: Json, bases: Json, suffixes: tuple[str, ...] | None = PYTHON) -> pathlib.Path:
        """The real path of the file that a SARIF artifact location names. It may not exist.

        Relative URIs in a log from another machine mean files below this root.

        Args:
            location: The location.
            bases: The `originalUriBaseIds` of its run.
            suffixes: How the file's name has to end; None for any name.

        Raises:
            Unreachable: The location names something else than such a regular file below the root, leads out of it by a link, or names a
                source file that is too large to be one.
        """
        uri = string(location["uri"])
        # NOTE: a log names the same few files for each of its findings.
        base = str(location.get("uriBaseId", ""))
        key = uri, base, str(bases.get(base)), suffixes
        if key not in self._found:
            self._found[key] = self._find(uri, location, bases, suffixes)
        return self._found[key]

    def _find(self, uri: str, location: Json, bases: Json, suffixes: tuple[str, ...] | None) -> pathlib.Path:
        for path in self._candidates(uri, location, bases, suffixes):
            real = pathlib.Path(os.path.realpath(path))
            if not real.is_relative_to(self.root):
                why = "leads" if path.absolute().is_relative_to(self.root) else "is"
                raise Unreachable(f"{uri!r} {why} outside of {self.root}")
            if self._exists(real, uri, SIZE_LIMIT if suffixes is not None else None):
                break
        return real

    def _candidates(self, uri: str, location: Json, bases: Json, suffixes: tuple[str, ...] | None) -> Iterator[pathlib.Path]:
        if location.get("uriBaseId") == PACKAGES:
            raise Unreachable(f"{uri!r} is in an installed package")
        if len(uri) > PATH_LIMIT:
            raise Unreachable(f"{uri[:_SHOWN]!r}... is longer than any path")
        parts = urllib.parse.urlsplit(uri)
        name = urllib.request.url2pathname(parts.path)
        if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost") or "\0" in name or not name:
            raise Unreachable(f"{uri!r} is not a file")
        if ".." in pathlib.PurePath(name).parts or ".." in name.replace("\\", "/").split("/"):
            raise Unreachable(f"{uri!r} contains '..'")
        if suffixes is not None and not name.endswith(suffixes):
            raise Unreachable(f"{uri!r} is not a Python file")
        path = pathlib.Path(name)
        if path.is_absolute():
            yield path
            return
        base = self._base(location, bases)
        if base is not None and pathlib.Path(os.path.realpath(base)).is_relative_to(self.root):
            yield base / path
            if location.get("uriBaseId") != ROOT:
                return
        elif location.get("uriBaseId", ROOT) not in (ROOT, *([ELSEWHERE] if self.chosen else [])):
            # NOTE: a file of the same name elsewhere is another file.
            raise Unreachable(f"{uri!r} is relative to {location['uriBaseId']!r}, which the log does not place below {self.root}")
        yield self.root / path

    def _base(self, location: Json, bases: Json) -> pathlib.Path | None:
        """The folder that the log gives for relative URIs, if it gives one."""
        if "uriBaseId" not in location:
            return None
        uri = string(bases[location["uriBaseId"]].get("uri", ""))
        parts = urllib.parse.urlsplit(uri)
        path = pathlib.Path(urllib.request.url2pathname(parts.path))
        return path if parts.scheme == "file" and path.is_absolute() and "\0" not in str(path) else None

    def _exists(self, real: pathlib.Path, uri: str, most: int | None) -> bool:
        """Whether there is a regular file of at most `most` bytes."""
        try:
            found = real.lstat()
        except OSError:
            return False
        if not stat.S_ISREG(found.st_mode):
            raise Unreachable(f"{uri!r} is not a regular file")
        if most is not None and found.st_size > most:
            raise Unreachable(f"{uri!r} has more than {most // 10**6} MB")
        return True
