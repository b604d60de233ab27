"""Cuts out of a script: which text they leave, and where what is left came from."""

from __future__ import annotations

import ast
import dataclasses
import itertools
from collections.abc import Iterable, Sequence


@dataclasses.dataclass(frozen=True, order=True)
class Cut:
    """Replaces the characters from `start` to `end`, exclusive, by `text`."""

    start: int
    end: int
    text: str = ""


class Cuts:
    """Cuts that do not overlap, in order. Of those that do, the outermost counts, and those that only touch or overlap in part are joined.

    Args:
        cuts: The cuts, in any order.
    """

    def __init__(self, cuts: Iterable[Cut]) -> None:
        self._cuts: list[Cut] = []
        for cut in sorted(cuts, key=lambda each: (each.start, -each.end)):
            last = self._cuts[-1] if self._cuts else None
            if last is None or cut.start >= last.end:
                self._cuts.append(cut)
            elif cut.end > last.end:
                self._cuts[-1] = dataclasses.replace(last, end=cut.end)

    def applied(self, text: str) -> str:
        """The text that they leave."""
        pieces, position = [], 0
        for cut in self._cuts:
            pieces += [text[position : cut.start], cut.text]
            position = cut.end
        return "".join([*pieces, text[position:]])

    def before(self, offset: int) -> int:
        """Where the character at `offset` of the text that is left was before the cuts; for a replacement, the start of its cut."""
        shift = 0
        for cut in self._cuts:
            if offset + shift < cut.start:
                break
            if offset + shift < cut.start + len(cut.text):
                return cut.start
            shift += cut.end - cut.start - len(cut.text)
        return offset + shift

    def after(self, offset: int) -> int:
        """Where the character at `offset`, which no cut removes, is after the cuts."""
        return offset + sum(len(cut.text) - (cut.end - cut.start) for cut in self._cuts if cut.end <= offset)


class Parsed:
    """A script with its syntax tree.

    Args:
        text: The script.

    Attributes:
        text: As above.
        tree: Its syntax tree.

    Raises:
        SyntaxError: The text is not Python.
        ValueError: As above.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)
        self._lines = text.split("\n")
        self._starts = [0, *itertools.accumulate(len(line) + 1 for line in self._lines)]

    def start_of_line(self, line: int) -> int:
        """The offset of the first character of a line; lines count from 1."""
        return self._starts[min(line, len(self._starts)) - 1]

    def first_of_line(self, line: int) -> int:
        """The offset of the first character of a line that is no blank."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return self.start_of_line(line) + len(text) - len(text.lstrip())

    def rest_of_line(self, offset: int) -> str:
        """The text from a character to the end of its line."""
        return self.text[offset:].partition("\n")[0]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """The offsets of the first character of a node and of the one behind its last, without the decorators of a definition."""
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]  # nodes with a place

    def code(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.span(node)
        return self.text[start:end]

    def _offset(self, line: int, column: int) -> int:
        text = self._lines[line - 1]
        # NOTE: syntax trees count the bytes of UTF-8.
        return self._starts[line - 1] + (column if text.isascii() else len(text.encode()[:column].decode()))


@dataclasses.dataclass(frozen=True)
class Block:
    """Statements below each other. If all go, `pass` takes their place.

    Attributes:
        lines: The offsets of the lines of each statement, with the comments above it; for one that shares a line, those of itself.
        margin: Their indentation.
    """

    lines: tuple[tuple[int, int, bool], ...]
    margin: str

    def without(self, gone: Sequence[int]) -> list[Cut]:
        """The cuts that remove the statements with these numbers."""
        cuts = [self._cut(self.lines[number], needed=False) for number in gone]
        if len(gone) == len(self.lines) and self.margin:
            cuts[0] = self._cut(self.lines[min(gone)], needed=True)
        return cuts

    def _cut(self, lines: tuple[int, int, bool], *, needed: bool) -> Cut:
        start, end, whole = lines
        if not whole:
            return Cut(start, end, "pass")
        return Cut(start, end, f"{self.margin}pass\n" if needed else "")


@dataclasses.dataclass(frozen=True)
class Brackets:
    """Items between brackets.

    Attributes:
        start: The offset behind the opening bracket.
        end: That of the closing one.
        items: The offsets of each item.
        is_tuple: Whether a single item needs a comma.
    """

    start: int
    end: int
    items: tuple[tuple[int, int], ...]
    is_tuple: bool = False

    def without(self, gone: Sequence[int]) -> list[Cut]:
        """The cuts that remove the items with these numbers, each with the comma between it and the next."""
        kept = [number for number in range(len(self.items)) if number not in gone]
        if not kept:
            return [Cut(self.start, self.end)]
        last = kept[-1]
        cuts = [Cut(self.items[number][0], self.items[number + 1][0]) for number in gone if number < last]
        if last + 1 < len(self.items):
            cuts.append(Cut(self.items[last][1], self.items[-1][1], "," if self.is_tuple and len(kept) == 1 else ""))
        elif self.is_tuple and len(kept) == 1 and len(self.items) > 1:
            cuts.append(Cut(self.items[last][1], self.end, ","))
        return cuts
