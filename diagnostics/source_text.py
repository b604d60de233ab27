"""The text of source files, and the three ways to count columns in it.

onnxplain counts columns in Unicode code points from 1. Python's `ast` and `co_positions()` give UTF-8 byte offsets from 0. SARIF wants
UTF-16 code units from 1 (2.1.0, section 3.14.27, `columnKind`).
"""

from __future__ import annotations

import linecache
import re

IGNORE = re.compile(r"#\s*onnxplain:\s*ignore\[([^\]]*)\]\s*(.*)")
"""The comment that suppresses findings at its line: the ids of rules, and a reason."""


def line_text(file: str, line: int) -> str:
    """Line `line` (from 1) of `file` without its line end; empty if there is no such file or line."""
    try:
        return linecache.getline(file, line).rstrip("\r\n")
    except (LookupError, ValueError):
        # No file can have this name: it contains NUL or half a surrogate pair. Or it declares a codec that is none for text, such as `hex`.
        return ""


def column_from_utf8(text: str, offset: int) -> int:
    """The column of the code point that starts at UTF-8 byte `offset` (from 0) of the line `text`."""
    return len(text.encode("utf-8")[:offset].decode("utf-8", errors="ignore")) + 1


def column_to_utf16(text: str, column: int) -> int:
    """The UTF-16 column (from 1) of code point column `column` (from 1) of the line `text`."""
    return len(text[: column - 1].encode("utf-16-le", "surrogatepass")) // 2 + 1


def column_from_utf16(text: str, column: int) -> int:
    """The code point column (from 1) of UTF-16 column `column` (from 1) of the line `text`; the inverse of `column_to_utf16`."""
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * (column - 1)].decode("utf-16-le", "ignore")) + 1
