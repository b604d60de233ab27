"""How sinks show paths, places, source lines and text from a model."""

from __future__ import annotations

import pathlib
import re
import sys
import unicodedata
from collections.abc import Iterator

from .errors import Interruption, RaisedByModel
from .location import Location

Span = tuple[str, str]
"""A piece of text and its role: a level's name, `headline`, `place`, `gutter`, `label`, `code`, `removed`, `added`, `faint` or empty."""

_TAB = " " * 4
_HINT = re.compile(
    r"For (?:more information|extended logs|more debugging help|C\+\+ stack trace)\b|If you suspect the guard was triggered from C\+\+"
    r"|Set TORCH(?:DYNAMO_VERBOSE|_LOGS)\b|The error above occurred when calling torch\.export|consider using data-dependent friendly APIs"
)
"""How the lines begin in which torch tells, in the text of an exception, how to debug torch (2.13)."""
_LINE_LIMIT = 10_000
TEXT_LIMIT = 20_000
"""Characters of one line, and of a text with several lines, such as the message of an exception."""
_NAME = vars(type)["__name__"]
"""What reads the name of a class, whatever its metaclass defines."""
OMITTED = re.compile(r" \[([0-9]{1,3}(?:,[0-9]{3}){0,5}) characters omitted\] ")
"""What stands for the middle of a text that `shortened` has cut."""
_FOLDERS = re.compile(r"(?<![\w./\\:~-])(?:(?:file://)?(?:/[^\s/'\"<>|:]+)+/|[A-Za-z]:(?:[/\\][^\s/\\'\"<>|:]+)+[/\\])(?=[^\s/\\])")


def is_unicode(text: str) -> bool:
    """Whether `text` can be written to a file; a string of Python may hold halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def visible(text: str) -> str:
    """Makes `text` fit for a line of a terminal or of a report: it may come from a model or from the log of somebody else.

    Every character that is neither printable nor a tab is written as `repr` does, so that none steers a terminal: escape sequences, control
    characters, line ends, characters that turn the text around, halves of surrogate pairs. A long text loses its middle.
    """
    text = shortened(text, _LINE_LIMIT)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode() for char in text)


def visible_lines(text: str) -> str:
    """Each line of `text` as `visible` writes it. A text with many lines loses those in the middle."""
    return "\n".join(map(visible, shortened(text, TEXT_LIMIT).split("\n")))


def shortened(text: str, limit: int) -> str:
    """A `text` of more than `limit` characters without its middle; the number of omitted characters stands in its place."""
    if len(text) <= limit:
        return text
    start, end = limit - limit // 2, len(text) - limit // 2
    # NOTE: the text may have lost its middle before.
    earlier = sum(int(found[1].replace(",", "")) - len(found[0]) for found in OMITTED.finditer(text, start, end))
    return f"{text[:start]} [{end - start + earlier:,} characters omitted] {text[end:]}"


def cell_name(file: str) -> str:
    """What IPython calls the cell whose code it runs from `file`, such as `Cell In[3]`; empty for other files."""
    # NOTE: the program may be importing IPython now, and IPython before 8.0 has no such names.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    return " ".join(named) if named else ""


def shown_path(path: str) -> str:
    """`path` relative to the current folder if it lies below that folder, or the name of its cell in a notebook."""
    if cell := cell_name(path):
        return cell
    try:
        return str(pathlib.Path(path).relative_to(pathlib.Path.cwd()))
    except (ValueError, OSError):
        # NOTE: somebody may have removed the current folder.
        return path


def is_page(path: pathlib.Path) -> bool:
    """Whether the name of a report asks for a page for browsers."""
    return path.suffix.lower() in (".html", ".htm")


def cause_and_hints(text: str) -> tuple[str, str]:
    """The text of an exception without torch's own hints, and these: links to documents, and how to get traces of its C++ code."""
    kept: list[str] = []
    hints: list[str] = []
    for line in text.split("\n"):
        if _HINT.match(line):
            hints.append(line)
        elif line or (kept and kept[-1]):
            # NOTE: of the empty lines around a hint, one is left.
            kept.append(line)
    return "\n".join(kept).strip("\n"), "\n".join(hints)


def message_of(error: BaseException) -> str:
    """The message of an exception, also of one whose `__str__` raises or exits. A long message loses its middle."""
    try:
        return shortened(str(error), TEXT_LIMIT)
    except (KeyboardInterrupt, Interruption):
        raise
    except BaseException as failed:  # noqa: BLE001  the class may be the user's, and its `__str__` may call `sys.exit`
        return f"<no message: __str__ raised {type_name(failed)}>"


def type_name(error: BaseException) -> str:
    """The name of the class of an exception, as Python knows it: a metaclass may give another one, or raise an exception."""
    return error.name if type(error) is RaisedByModel else str(_NAME.__get__(type(error)))


def described_error(error: BaseException) -> str:
    """The type and the message of an exception."""
    return f"{type_name(error)}: {message_of(error)}"


def without_folders(text: str) -> str:
    """Reduces the absolute paths in `text` to file names, because folders differ between machines."""
    return _FOLDERS.sub("", text)


def describe(place: Location) -> str:
    """Describes `place` on one line.

    For example `model.py:7:12 in forward (module encoder.layers.3)`.
    """
    text = shown_path(place.file) if place.file else ""
    if place.region:
        text += f":{place.region.line}" + (f":{place.region.column}" if place.region.column else "")
    if place.function:
        text += f" in {place.function}"
    if place.module:
        text += f" (module {place.module})" if text else f"module {place.module}"
    return text


def marked(place: Location) -> tuple[str, str, str]:
    """The source line of `place` in three parts, the second of which is its region. All are empty if the source is not available."""
    region = place.region
    if region is None or not (text := region.texts(place.file)[0].rstrip()):
        return "", "", ""
    start = region.column or len(text) - len(text.lstrip()) + 1
    end = region.end_column if region.end_column and region.last_line == region.line else len(text) + 1
    before, inside, after = (visible(part).replace("\t", _TAB) for part in (text[: start - 1], text[start - 1 : end - 1], text[end - 1 :]))
    return before, inside, after


def underlined(place: Location) -> tuple[str, str]:
    """The source line of `place`, and a line that underlines its region. Both are empty if the source is not available."""
    before, inside, after = marked(place)
    text = before + inside + after
    return text, text and " " * _width(before) + "^" * max(1, _width(inside))


def excerpt(place: Location, role: str) -> Iterator[list[Span]]:
    """The lines that show `place` and its source line, underlined in `role`."""
    yield [("  --> ", "gutter"), (describe(place), "place")]
    text, underline = underlined(place)
    if text:
        number = str(place.line)
        margin = " " * len(number)
        yield [(f" {number} | ", "gutter"), (text, "code")]
        yield [(f" {margin} | ", "gutter"), (underline, role)]


def _width(text: str) -> int:
    """The columns of a terminal that `text` takes."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else not unicodedata.combining(char) for char in text)
