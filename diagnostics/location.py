"""The place of a finding: a region of a file, and the part of the model that it belongs to."""

from __future__ import annotations

import dataclasses

from . import source_text


@dataclasses.dataclass(frozen=True, slots=True)
class Region:
    """A part of a text file. Lines and columns count from 1, columns in code points; `end_column` is exclusive.

    Attributes:
        line: First line.
        column: First column; `None` stands for the whole line.
        end_line: Last line; `None` stands for `line`.
        end_column: Column after the last one; `None` stands for the end of the line.
        lines: The text of its lines as a log recorded them. If it is empty, the file's present text counts.
    """

    line: int
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    lines: tuple[str, ...] = dataclasses.field(default=(), compare=False, repr=False)

    @property
    def last_line(self) -> int:
        """`end_line`, or `line` if that is `None`."""
        return self.line if self.end_line is None else self.end_line

    @property
    def offset(self) -> int:
        """How many characters of its first line come before it."""
        return (self.column or 1) - 1

    @property
    def end_offset(self) -> int:
        """How many characters of its last line come before its end; 0 if its columns are not known."""
        return (self.end_column or 1) - 1

    def texts(self, file: str) -> tuple[str, ...]:
        """Its whole lines in `file`; empty strings for lines that do not exist."""
        return self.lines or tuple(source_text.line_text(file, number) for number in range(self.line, max(self.line, self.last_line) + 1))

    @classmethod
    def from_utf8(cls, file: str, line: int, offset: int, end_line: int, end_offset: int) -> Region:
        """A region from the positions of `ast` and `co_positions()`: UTF-8 byte offsets from 0, the end exclusive."""
        return cls(
            line,
            source_text.column_from_utf8(source_text.line_text(file, line), offset),
            end_line,
            source_text.column_from_utf8(source_text.line_text(file, end_line), end_offset),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Location:
    """A place in the user's source or model. A frame of a Python stack is a place as well.

    Attributes:
        file: Path as Python knows it; empty if only the part of the model is known.
        region: `None` stands for the whole file.
        function: Name of the enclosing Python function.
        module: Path of the enclosing submodule, such as `encoder.layers.3`; empty for the root or if unknown.
        message: How this place relates to the finding, for related places and steps.
    """

    file: str
    region: Region | None = None
    function: str = ""
    module: str = ""
    message: str = ""

    @property
    def line(self) -> int | None:
        """The first line, if it is known."""
        return self.region.line if self.region else None

    @property
    def snippet(self) -> str:
        """The text of the first line, without indentation."""
        return self.region.texts(self.file)[0].strip() if self.region else ""

    def saying(self, message: str) -> Location:
        """The same place with `message`."""
        return dataclasses.replace(self, message=message)
