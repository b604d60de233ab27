"""The code of functions with edits, at the positions of the text as it was."""

from __future__ import annotations

import ast
import bisect
import contextlib
import types
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from onnxplain.capture.rewrite import blocks
from onnxplain.diagnostics import Edit
from onnxplain.source import syntax
from onnxplain.torch_internals import tracing
from onnxplain.torch_internals.code_objects import compiled, key_of

Key = tuple[str, str, int]
"""File, name and first line of a function."""


def joined(before: Sequence[Edit], edits: Sequence[Edit]) -> list[Edit]:
    """`before` and `edits`, without those of `before` whose place an edit replaces: a loop's new code has that of branches within it."""
    kept = [one for one in before if not any(one.file == each.file and syntax.covers(each.region, one.region) for each in edits)]
    return [*kept, *edits]


def asks_for_export(edits: Sequence[Edit]) -> bool:
    """Whether the code with `edits` does something else in an export than in a run."""
    return any("is_exporting()" in edit.replacement for edit in edits)


def as_exported(edits: Sequence[Edit]) -> AbstractContextManager[None]:
    """Answers to the code with `edits` that it is exported: what it does then must compute the same."""
    return tracing.answering_that_it_exports() if asks_for_export(edits) else contextlib.nullcontext()


def of(edits: Sequence[Edit]) -> Mapping[Key, types.CodeType]:
    """The code of the functions that `edits` change, by their keys; empty if an edited source is not valid Python."""
    found: dict[Key, types.CodeType] = {}
    for file in dict.fromkeys(edit.file for edit in edits):
        changed = [edit for edit in edits if edit.file == file]
        names = {
            (file, node.name, min([node.lineno, *(each.lineno for each in node.decorator_list)]))
            for edit in changed
            for node in syntax.around(file, edit.region)
            if isinstance(node, ast.FunctionDef)
        }
        try:
            found |= {key_of(code): code for code in compiled(_edited(file, changed), file) if key_of(code) in names}
        except (SyntaxError, ValueError):
            return {}
    return found


def _edited(file: str, edits: Sequence[Edit]) -> ast.Module:
    """The source of `file` with `edits`. What an edit replaces keeps its place, and new code is where the old code was."""
    source = syntax.source(file)
    starts = blocks.line_starts(source)
    changes = sorted(((*blocks.offsets(starts, edit.region), edit.replacement) for edit in edits), key=lambda each: each[:2])
    text, end = "", 0
    # NOTE: each piece of the new text with its start there and in the old text, and whether it is new.
    pieces: list[tuple[int, int, int, bool]] = []
    for first, last, code in changes:
        if first < end:
            raise ValueError(f"two edits change the same part of {file}")
        pieces += [(len(text), end, first, False), (len(text) + first - end, first, last, True)]
        text, end = text + source[end:first] + code, last
    pieces.append((len(text), end, len(source), False))
    text += source[end:]
    places = _Places(text, source, pieces)
    module = ast.parse(text)
    for node in ast.walk(module):
        if isinstance(node, ast.stmt | ast.expr | ast.excepthandler | ast.arg | ast.keyword | ast.alias | ast.match_case | ast.pattern):
            places.put(node)
    return module


class _Places:
    """Moves positions in an edited text to those in the text as it was."""

    def __init__(self, text: str, source: str, pieces: Sequence[tuple[int, int, int, bool]]) -> None:
        self._lines, self._new = text.split("\n"), blocks.line_starts(text)
        self._source, self._old = source, blocks.line_starts(source)
        self._pieces = pieces
        self._firsts = [first for first, *_ in pieces]

    def put(self, node: ast.AST) -> None:
        """Gives `node` its position in the text as it was."""
        if getattr(node, "lineno", None) is None:
            return
        for line, column, is_end in (("lineno", "col_offset", False), ("end_lineno", "end_col_offset", True)):
            row, first = self._moved(getattr(node, line), getattr(node, column), is_end=is_end)
            setattr(node, line, row)
            setattr(node, column, first)

    def _moved(self, line: int, column: int, *, is_end: bool) -> tuple[int, int]:
        offset = self._new[line - 1] + len(self._lines[line - 1].encode()[:column].decode())
        # NOTE: an end belongs to the piece before it.
        number = bisect.bisect_right(self._firsts, offset - is_end) - 1
        start, first, last, is_new = self._pieces[number]
        place = (last if is_end else first) if is_new else first + offset - start
        row = bisect.bisect_right(self._old, place) - 1
        return row + 1, len(self._source[self._old[row] : place].encode())
