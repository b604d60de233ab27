"""What a model, a log, a report and a script tell of a machine: files in the checkout and in packages.

They tell no folders, users or environment values.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
import getpass
import json
import os
import pathlib
import platform
import re
import sys
import sysconfig
import tempfile
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping

from . import git_checkout
from .diagnostic import Diagnostic
from .display import OMITTED
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
_OPTION = r"(?<=^-[A-Z])|(?<=[^\w-]-[A-Z])|(?<=-isystem)|(?<=-iquote)"
"""The place after an option of a compiler, which a path follows without a blank."""
_QUOTE = re.compile(r"(?i:%(?:[0-2][0-9a-f]|3[a-f]|40|5[b-f]|60|7[b-e]|[c-f][0-9a-f](?:%[89ab][0-9a-f])+))+")
"""What addresses write for characters other than letters and digits of ASCII, which `%add` in a graph is not."""
_BASE64 = re.compile(r"[\w+/-]{11,}={0,2}", re.ASCII)
"""What may be base64 of a hidden text, or of one of four characters after the name of a user."""


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
                # NOTE: to look for folders of packages takes long where a text is full of slashes.
                paths = self._paths if any(folder in text for folder in PACKAGE_FOLDERS) else self._paths_elsewhere
                plain = _replaced(paths, self._renamed, text)
            if "/" in plain or "\\" in plain or "~" in plain or "@" in plain:
                plain = _replaced(self._users, lambda found: f"{found['before']}<user>", plain)
            if self._values:
                plain = _replaced(self._quoted, lambda found: self._values[found[0]], plain)
                plain = _replaced(_BASE64, self._encoded, plain)
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
        known, parts, last = {**self._names, **self._values}, list[str](), 0
        hidden = {form: name for value, name in known.items() for form in (value, *_in_addresses(value))}
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
        # NOTE: Windows takes slashes as well.
        written = {form: name for folder, name in names.items() for form in (folder, pathlib.Path(folder).as_posix())}
        return {form: name for folder, name in written.items() for form in _forms(folder)}

    @functools.cached_property
    def _values(self) -> dict[str, str]:
        return {form: name for value, name in _hidden_values(self._environment) for form in _forms(value)}

    @functools.cached_property
    def _paths(self) -> re.Pattern[str]:
        packages = rf"(?:[A-Za-z]:)?[/\\][^\s'\"()]{{0,300}}[/\\](?:{'|'.join(sorted(PACKAGE_FOLDERS))})"
        return self._pattern(rf"{packages}(?=[/\\])|")

    @functools.cached_property
    def _paths_elsewhere(self) -> re.Pattern[str]:
        return self._pattern("")

    def _pattern(self, packages: str) -> re.Pattern[str]:
        longest_first = sorted(self._names, key=len, reverse=True)
        # NOTE: a folder such as `/data` may be a part of a longer path that is no secret.
        deep = [folder for folder in longest_first if len(re.findall(r"[/\\]+", folder)) > 1]
        folders, anywhere = ("|".join(map(re.escape, each)) or "(?!)" for each in (longest_first, deep))
        # NOTE: what begins with another character is passed over fast.
        possible = r"(?=[/\\%fF]|[A-Za-z]:[/\\])"
        begin, end = rf"(?:(?<![\w.~%/-])|{_ESCAPED}|{_OPTION})", r"(?:[/\\](?=[\w.<-])|(?![\w-]|\.\w))"
        address = r"(?:(?i:file):(?://[\w.-]*)?/*|(?<!:)/+)?"
        return re.compile(rf"{possible}(?:{begin}{address}({packages}{folders})|({anywhere})){end}")

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
        folder = found[1] or found[2]
        slash = found[0][-1:] in ("/", "\\") and not found[0].endswith(folder)
        name = self._names.get(folder, "")
        if found[2]:
            # NOTE: a word stands before it.
            return name + "/" * slash
        if slash:
            return name.removeprefix("%SRCROOT%").removeprefix("/") + ("/" if name not in ("", "%SRCROOT%") else "")
        return name

    def _encoded(self, found: re.Match[str]) -> str:
        """What stands for text in base64 that contains a secret."""
        text = found[0].rstrip("=").replace("-", "+").replace("_", "/")
        try:
            plain = urllib.parse.unquote(base64.b64decode(text + "=" * (-len(text) % 4)).decode())
        except ValueError:
            # NOTE: most words are no base64.
            return found[0]
        secret = self._quoted.search(plain)
        return found[0] if secret is None else self._values[secret[0]]


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
        # NOTE: drivers of databases quote the password as it was before it became a part of an address.
        yield from ((form, f"${name}") for each in hidden for form in dict.fromkeys((each, urllib.parse.unquote(each))))
    if len(host := platform.node()) >= _LEAST_VALUE:
        yield host, "<host>"


def _is_secret(name: str, value: str) -> bool:
    if len(value) < _LEAST_VALUE:
        return len(value) >= _LEAST_SECRET and value.lower() not in _SETTINGS and bool(_SHORT_SECRET_NAME.search(name))
    random = not re.search(r"\s", value) and re.search(r"\d", value) and re.search(r"[A-Za-z]", value)
    # NOTE: in some names, PWD is a folder, as in that of the shell's own variable.
    return bool(random or (_SECRET_NAME.search(name) and not (name.upper().endswith("PWD") and _is_folder(value))))


def _forms(value: str) -> Iterator[str]:
    """`value` as it is, and as `repr`, also that of bytes, `ascii` and JSON write it, also within each other."""
    forms = dict.fromkeys((value, repr(_bytes_of(value))[2:-1]))
    for _ in range(2):
        for form in tuple(forms):
            quotes = {form.replace("\\", "\\\\").replace(quote, f"\\{quote}"): None for quote in "'\""}
            forms |= {repr(form)[1:-1]: None, ascii(form)[1:-1]: None, json.dumps(form)[1:-1]: None, **quotes}
            forms |= {json.dumps(form, ensure_ascii=False)[1:-1]: None}
    yield from forms


def _in_addresses(value: str) -> Iterator[str]:
    """`value` as addresses quote it; some programs quote slashes as well."""
    for safe in ("/", ""):
        yield urllib.parse.quote(_bytes_of(value), safe)


def _replaced(pattern: re.Pattern[str], name: Callable[[re.Match[str]], str], text: str) -> str:
    """`text` with names for what `pattern` finds, also where an address quotes it."""
    # NOTE: some programs write `+` for a blank.
    for blank in ("+", " ") if "+" in text or _QUOTE.search(text) else ():
        plain, starts = _unquoted(text)
        for found in reversed(list(pattern.finditer(plain.replace("+", blank)))):
            if (known := name(found)) != found[0]:
                text = text[: starts[found.start()]] + known + text[starts[found.end()] :]
    return pattern.sub(name, text)


def _unquoted(text: str) -> tuple[str, list[int]]:
    """`text` with the characters that an address quotes, and where each of them stands in `text`; the end of `text` is the last place."""
    plain, starts, last = list[str](), list[int](), 0
    for found in _QUOTE.finditer(text):
        plain.append(text[last : found.start()])
        starts += range(last, found.start())
        last = found.start()
        for char in urllib.parse.unquote(found[0], errors="surrogateescape"):
            plain.append(char)
            starts.append(last)
            last += 3 * len(char.encode(errors="surrogateescape"))
    plain.append(text[last:])
    starts += range(last, len(text) + 1)
    made = "".join(plain)
    if "%25" not in text:
        return made, starts
    # NOTE: there is an address within the address.
    made, inner = _unquoted(made)
    return made, [starts[start] for start in inner]


def _bytes_of(value: str) -> bytes:
    """The bytes of a value of the environment or of a path, which may have lone surrogates."""
    return value.encode(errors="surrogatepass" if sys.platform == "win32" else "surrogateescape")


def _without_end(text: str, hidden: Mapping[str, str]) -> str:
    """`text` with a name for a beginning of a hidden text at its end."""
    longest = max(((length, value) for value in hidden for length in (_overlap(text, value),) if length), default=None)
    return text if longest is None else text[: -longest[0]] + hidden[longest[1]]


def _overlap(text: str, value: str) -> int:
    """How many characters at the end of `text` begin `value`; 0 if they are too few to tell something."""
    lengths = range(len(value) - 1, _LEAST_PIECE - 1, -1)
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
