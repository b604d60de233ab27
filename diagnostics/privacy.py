"""What a model, a log, a report and a script tell of a machine: files in the checkout and in packages.

They tell no folders, users or environment values.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import getpass
import json
import os
import pathlib
import platform
import re
import sysconfig
import tempfile
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping

from . import git_checkout
from .diagnostic import Diagnostic
from .display import OMITTED, is_unicode
from .location import Location
from .rule import Recorded, Rule

ROOT, PACKAGES, ELSEWHERE = "SRCROOT", "PACKAGES", "ELSEWHERE"

BASES = {
    ROOT: "The root of the checkout. Open this folder in the viewer.",
    PACKAGES: "The folder of installed packages.",
    ELSEWHERE: "A folder outside of the checkout.",
}
"""The bases of all URIs in a log, and what each stands for. A log does not tell where they are (SARIF 2.1.0, section 3.14.14)."""

PACKAGE_FOLDERS = frozenset({"site-packages", "dist-packages"})
_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH|COOKIE|SESSION|DSN|PRIVATE|SIGNATURE|_PWD$|(?:^|_)PIN$", re.IGNORECASE)
_LEAST_VALUE = 8
"""The length from which environment values are hidden that look random, or whose variable's name contains a word for secrets."""
_SHORT_SECRET_NAME = re.compile(
    r"(TOKEN|SECRET|PASS|PASSWORD|PASSWD|PASSPHRASE|_PWD|KEY|CREDENTIALS?|COOKIE|(?:^|_)PIN|DSN|SIGNATURE)$", re.IGNORECASE
)
_LEAST_SECRET = 4
"""The length from which values are hidden whose variable's name ends with such a word.

NOTE: the end, because `MAX_TOKENS=4096` and `TOKENIZERS_PARALLELISM=false` are settings: their values are part of any text.
"""
_LEAST_PIECE = 4
"""The length from which the beginning or the end of a hidden text is hidden as well, where a long text was cut within it."""
_SETTINGS = frozenset({"true", "false", "none", "null"})
_URL_PASSWORD = re.compile(r"://[^/\s:@]*:([^/\s@]+)@")
_ESCAPED = r"(?<=\\[abfnrtv])|(?<=\\x[0-9a-f]{2})|(?<=%[0-9A-Fa-f]{2})"
"""The place after an escape sequence of a `repr` or of a URL. Its letters and digits belong to no word."""


class Privacy:
    """Rewrites what a log holds of one machine. Two machines with the same checkout get the same texts.

    Args:
        root: The source root, absolute. Paths below it and below the folders around it become relative to it.
        environment: The environment variables, whose values texts do not quote.
    """

    def __init__(self, root: pathlib.Path, environment: Mapping[str, str] = os.environ) -> None:
        self.root = root
        self._roots = tuple(dict.fromkeys((root, _resolved(root))))
        self._environment = environment
        self._known: dict[str, str] = {}

    def place(self, file: str) -> tuple[str, str]:
        """The base of `file`, and its path below that base. Of a file elsewhere only the name is told."""
        path = pathlib.Path(file).absolute()
        if ".." in path.parts:
            path = path.resolve()
        for form, root in zip((path, _resolved(path)), (self._roots[0], self._roots[-1]), strict=True):
            if form.is_relative_to(root):
                return ROOT, form.relative_to(root).as_posix()
        inside = next((index for index, part in reversed(list(enumerate(path.parts))) if part in PACKAGE_FOLDERS), None)
        return (ELSEWHERE, path.name) if inside is None else (PACKAGES, "/".join(path.parts[inside + 1 :]))

    def path(self, file: str, folder: pathlib.Path) -> str:
        """`file` for people, relative to `folder` if both lie below the root."""
        if not pathlib.Path(file).is_absolute():
            return file
        base, path = self.place(file)
        return os.path.relpath(self.root / path, folder) if base == ROOT else path

    def text(self, text: str) -> str:
        """`text` with stable names for folders, users and values of environment variables."""
        if text not in self._known:
            plain = text
            if "/" in text or "\\" in text or "%" in text:
                plain = self._paths.sub(self._renamed, text)
            if "/" in plain or "\\" in plain or "~" in plain or "@" in plain:
                plain = self._users.sub(r"\g<before><user>", plain)
            plain = self._quoted.sub(lambda found: self._values[found[0]], plain)
            self._known[text] = self._without_pieces(plain) if OMITTED.search(plain) else plain
        return self._known[text]

    def finding(self, finding: Diagnostic) -> Diagnostic:
        """`finding` with such texts. Lines of source, places and edits stay as they are."""
        return dataclasses.replace(
            finding,
            rule=self._rule(finding.rule),
            location=finding.location and self._place(finding.location),
            occurrences=tuple(map(self._place, finding.occurrences)),
            related=tuple(map(self._place, finding.related)),
            code_flow=tuple(dataclasses.replace(step, message=self.text(step.message)) for step in finding.code_flow),
            notes=tuple(map(self.text, finding.notes)),
            fixes=tuple(
                dataclasses.replace(fix, description=self.text(fix.description), snippet=self.text(fix.snippet)) for fix in finding.fixes
            ),
            cause=self.text(finding.cause),
        )

    def _without_pieces(self, text: str) -> str:
        """`text`, which has lost its middle, without the beginning and the end of a hidden text that lay where it was cut."""
        hidden, parts, last = {**self._names, **self._values}, list[str](), 0
        cuts = [found.span() for found in OMITTED.finditer(text)]
        for (_, began), (ended, _) in zip([(0, 0), *cuts], [*cuts, (len(text), 0)], strict=True):
            piece = text[began:ended]
            if began:
                piece = _without_end(piece[::-1], {value[::-1]: name[::-1] for value, name in hidden.items()})[::-1]
            if ended < len(text):
                piece = _without_end(piece, hidden)
            parts += [text[last:began], piece]
            last = ended
        return "".join(parts)

    # NOTE: the patterns take milliseconds, and most exports ask only for places of files.
    @functools.cached_property
    def _names(self) -> dict[str, str]:
        names = dict(_folder_names(self._roots))
        # NOTE: addresses of files quote blanks, and some quote slashes as well.
        quoted = {urllib.parse.quote(folder, safe): name for safe in ("/", "") for folder, name in names.items() if is_unicode(folder)}
        return {**quoted, **names}

    @functools.cached_property
    def _values(self) -> dict[str, str]:
        return dict(_hidden_values(self._environment))

    @functools.cached_property
    def _paths(self) -> re.Pattern[str]:
        folders = "|".join(map(re.escape, sorted(self._names, key=len, reverse=True)))
        packages = rf"(?:[A-Za-z]:)?[/\\][^\s'\"()]{{0,300}}[/\\](?:{'|'.join(sorted(PACKAGE_FOLDERS))})"
        begin, end = rf"(?:(?<![\w.~%/-])|{_ESCAPED})", r"(?:[/\\](?=[\w.<-])|(?![\w-]|\.\w))"
        return re.compile(rf"{begin}(?:file://)?({packages}(?=[/\\])|{folders}){end}")

    @functools.cached_property
    def _users(self) -> re.Pattern[str]:
        return _components(_user_names())

    @functools.cached_property
    def _quoted(self) -> re.Pattern[str]:
        return whole_words(self._values)

    def _place(self, place: Location) -> Location:
        return place.saying(self.text(place.message)) if place.message else place

    def _rule(self, rule: Rule | Recorded) -> Rule | Recorded:
        if isinstance(rule, Recorded):
            return dataclasses.replace(rule, template=self.text(rule.template), values=tuple(map(self.text, rule.values)))
        values = {name: getattr(rule, name) for name in rule.fields()}
        hidden = {name: self._value(value) for name, value in values.items()}
        return rule if hidden == values else type(rule)(**hidden)

    def _value(self, value: object) -> object:
        if isinstance(value, tuple):
            return tuple(map(self._value, value))
        return self.text(value) if isinstance(value, str) else value

    def _renamed(self, found: re.Match[str]) -> str:
        folder, slash = found[1], found[0][-1:] in ("/", "\\") and found[0] != found[1]
        name = self._names.get(folder, "")
        if slash:
            return name.removeprefix("%SRCROOT%").removeprefix("/") + ("/" if name not in ("", "%SRCROOT%") else "")
        return name


def privacy_of(folder: pathlib.Path) -> Privacy:
    """The privacy of an export that ran in `folder`."""
    return Privacy(git_checkout.root(folder) or folder)


def _folder_names(roots: Iterable[pathlib.Path]) -> Iterator[tuple[str, str]]:
    """Folders and their names. A folder may come twice; the last name counts."""
    homes = set[pathlib.Path]()
    # NOTE: a user without an entry in the system's list has no home.
    with contextlib.suppress(RuntimeError):
        homes = {pathlib.Path.home(), _resolved(pathlib.Path.home())}
    for root in roots:
        for height, parent in enumerate((root, *root.parents)):
            if parent != parent.parent and not any(each.is_relative_to(parent) for each in homes):
                yield str(parent), "%SRCROOT%" + "/.." * height
    yield tempfile.gettempdir(), "<tmp>"
    yield sysconfig.get_path("stdlib"), "<python>"
    yield from ((str(each), "<home>") for each in homes if each != each.parent)
    yield from ((str(root), "%SRCROOT%") for root in roots if root != root.parent)


def _hidden_values(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Secrets in environment variables with what stands for them, and the name of the host."""
    for name, value in environment.items():
        hidden = [value] if _is_secret(name, value) else []
        if (password := _URL_PASSWORD.search(value)) and len(password[1]) >= _LEAST_SECRET:
            hidden = [value, password[1]]
        yield from ((form, f"${name}") for each in hidden for form in _forms(each))
    if len(host := platform.node()) >= _LEAST_VALUE:
        yield host, "<host>"


def _is_secret(name: str, value: str) -> bool:
    if len(value) < _LEAST_VALUE:
        return len(value) >= _LEAST_SECRET and value.lower() not in _SETTINGS and bool(_SHORT_SECRET_NAME.search(name))
    random = not re.search(r"\s", value) and re.search(r"\d", value) and re.search(r"[A-Za-z]", value)
    # NOTE: in some names, PWD is a folder, as in that of the shell's own variable.
    return bool(random or (_SECRET_NAME.search(name) and not (name.upper().endswith("PWD") and _is_folder(value))))


def _forms(value: str) -> Iterator[str]:
    """`value` as it is, and as `repr`, `ascii` and JSON write it, also within each other."""
    forms = {value: None}
    for _ in range(2):
        for form in tuple(forms):
            quotes = {form.replace("\\", "\\\\").replace(quote, f"\\{quote}"): None for quote in "'\""}
            forms |= {repr(form)[1:-1]: None, ascii(form)[1:-1]: None, json.dumps(form)[1:-1]: None, **quotes}
            forms |= {json.dumps(form, ensure_ascii=False)[1:-1]: None}
    yield from forms


def _without_end(text: str, hidden: Mapping[str, str]) -> str:
    """`text` with a name for a beginning of a hidden text at its end."""
    longest = max(((length, value) for value in hidden for length in (_overlap(text, value),) if length), default=None)
    return text if longest is None else text[: -longest[0]] + hidden[longest[1]]


def _overlap(text: str, value: str) -> int:
    """How many characters at the end of `text` begin `value`; 0 if they are too few to tell something."""
    lengths = range(min(len(text), len(value) - 1), _LEAST_PIECE - 1, -1)
    return next((length for length in lengths if text.endswith(value[:length])), 0)


def _is_folder(path: str) -> bool:
    try:
        return pathlib.Path(path).is_dir()
    except OSError:
        # NOTE: a value that is no path may be too long for one.
        return False


def _user_names() -> Iterator[str]:
    # NOTE: root is a user everywhere, and names nobody.
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):
        return
    if name and name != "root":
        yield name


def _components(names: Iterable[str]) -> re.Pattern[str]:
    """Finds names that are folders, the end of a folder's name or of an absolute path, and those in `~name` and `name@host`.

    The group `before` is what stands before the name and stays.
    """
    name, end = rf"(?:{'|'.join(map(re.escape, names)) or '(?!)'})", r"(?![\w-]|\.\w)"
    folder = rf"(?<=[/\\-])(?={name}[/\\])"
    last = rf"(?<![\w.)\]>])(?:/[^\s/'\"<>|:]+)*/(?={name}{end})"
    home, address = rf"(?<![\w~])~(?={name}{end})", rf"(?<![\w.-])(?={name}@[A-Za-z])"
    return re.compile(rf"(?P<before>{folder}|{last}|{home}|{address}){name}")


def whole_words(texts: Iterable[str]) -> re.Pattern[str]:
    """Finds those of `texts` that are not part of a longer word."""
    longest_first = sorted(texts, key=len, reverse=True)
    return re.compile(rf"(?:(?<!\w)|{_ESCAPED})(?:{'|'.join(map(re.escape, longest_first)) or '(?!)'})(?!\w)")


def _resolved(path: pathlib.Path) -> pathlib.Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path
