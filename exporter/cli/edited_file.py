"""A source file while edits are applied to it: everything that no edit touches stays byte for byte."""

from __future__ import annotations

import codecs
import io
import itertools
import os
import pathlib
import stat
import tokenize
from collections.abc import Sequence

from onnxplain.diagnostics import Prepared

from .log_edits import Replacement


class CannotEdit(Exception):
    """A file cannot be read, decoded or written as it is. The text says why, without the file's name."""


class EditedFile:
    """The text of a Python file, and how it is stored.

    Args:
        path: The file, without links in its path.

    Raises:
        CannotEdit: The file cannot be read, is read-only, or is not text in the encoding that it declares.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        try:
            self._data = path.read_bytes()
            writable = os.access(path, os.W_OK) and bool(path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
            self._declared = declared = _declared(self._data)
        except OSError as error:
            raise CannotEdit(f"cannot be read: {error.strerror}") from error
        except SyntaxError as error:
            raise CannotEdit(f"declares no encoding that Python knows ({error})") from error
        if not writable:
            raise CannotEdit("is read-only")
        # NOTE: Python counts columns without the mark, and so does the log.
        self._mark = codecs.BOM_UTF8 if self._data.startswith(codecs.BOM_UTF8) else b""
        self._encoding = "utf-8" if declared == "utf-8-sig" else declared
        try:
            self.text = self._data[len(self._mark) :].decode(self._encoding)
            same = self._encoded(self.text) == self._data
        except UnicodeDecodeError as error:
            raise CannotEdit(f"is not text in {declared} ({error.reason})") from error
        except (LookupError, ValueError) as error:
            # NOTE: `hex`, `zlib` and others are no encodings of text, and `undefined` refuses all text.
            raise CannotEdit(f"declares an encoding that it cannot have, {declared} ({error})") from error
        if not same:
            raise CannotEdit(f"would not stay the same in {declared}")
        # NOTE: `splitlines` would end a line at a form feed.
        self._lines = list(io.StringIO(self.text, newline=""))
        self._starts = [0, *itertools.accumulate(map(len, self._lines))]

    def has(self, place: Replacement) -> bool:
        """Whether the file still contains what the log recorded at `place`."""
        start, end = self.offset(place.start), self.offset(place.end)
        if start is None or end is None:
            return False
        if place.deleted is not None and _plain(self.text[start:end]) != place.deleted:
            return False
        lines = self._lines[place.start[0] - 1 : place.end[0]] or [""]
        return place.lines is None or _plain("".join(lines)).removesuffix("\n") == place.lines

    def with_replacements(self, replacements: Sequence[Replacement]) -> str:
        """The text after `replacements`, which lie apart and in the file."""
        parts, done = list[str](), 0
        for each in sorted(replacements, key=lambda each: each.start):
            start, end = self.offset(each.start), self.offset(each.end)
            assert start is not None, each
            assert end is not None, each
            parts += [self.text[done:start], _plain(each.text).replace("\n", self._newline(each.start[0]))]
            done = end
        return "".join([*parts, self.text[done:]])

    def prepared(self, text: str) -> Prepared:
        """`text` as the new content of the file, which it has only after `put`.

        Raises:
            CannotEdit: The file cannot be written, its encoding lacks a character of `text`, or `text` declares another one.
        """
        try:
            data = self._encoded(text)
            if codecs.lookup(_declared(data)).name != codecs.lookup(self._declared).name:
                raise CannotEdit("would declare another encoding")
            return Prepared(self.path, data)
        except UnicodeEncodeError as error:
            raise CannotEdit(f"is in {self._encoding}, which lacks {error.object[error.start : error.end]!r}") from error
        except SyntaxError as error:
            raise CannotEdit(f"would declare no encoding that Python knows ({error})") from error
        except UnicodeError as error:
            raise CannotEdit(f"cannot hold the new text in {self._encoding} ({error})") from error
        except OSError as error:
            raise CannotEdit(f"cannot be written: {error.strerror}") from error

    def check_same(self, new: Prepared) -> None:
        """Makes sure that nobody has edited the file since it was read.

        Raises:
            CannotEdit: Somebody has, or the file is gone.
        """
        try:
            same = new.current() == self._data
        except OSError as error:
            raise CannotEdit(f"cannot be read any more: {error.strerror}") from error
        if not same:
            raise CannotEdit("was edited in the meantime")

    def put(self, new: Prepared) -> None:
        """Replaces the file with `new`, whole or not at all.

        Raises:
            CannotEdit: The file cannot be written, or was edited since it was read.
        """
        self.check_same(new)
        try:
            new.replace()
        except OSError as error:
            raise CannotEdit(f"cannot be written: {error.strerror}") from error

    def offset(self, position: tuple[int, int]) -> int | None:
        """The index in the text of a line and a column (UTF-16 code units), both from 1; None past the end of the file or line."""
        line, column = position
        # NOTE: behind the end of the last line begins another one, which is empty.
        ended = not self._lines or self._lines[-1].endswith(("\n", "\r"))
        if line > len(self._lines) + ended:
            return None
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        units = text.rstrip("\r\n").encode("utf-16-le", "surrogatepass")
        if 2 * (column - 1) > len(units):
            return None
        try:
            before = units[: 2 * (column - 1)].decode("utf-16-le")
        except UnicodeDecodeError:
            # NOTE: the column is in the middle of a character.
            return None
        return self._starts[line - 1] + len(before)

    def _newline(self, line: int) -> str:
        """How the line at an edit ends, or else the first one."""
        here = [text for text in (*self._lines[line - 1 : line], *self._lines[:1]) if text.endswith(("\n", "\r"))]
        return here[0][len(here[0].rstrip("\r\n")) :] if here else "\n"

    def _encoded(self, text: str) -> bytes:
        return self._mark + text.encode(self._encoding)


def _declared(data: bytes) -> str:
    """The encoding that a source declares. Raises SyntaxError if Python knows none of that name, or the source is not text in it."""
    return tokenize.detect_encoding(io.BytesIO(data).readline)[0]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
