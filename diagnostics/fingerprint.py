"""What tells a finding again in a later log: GitHub's hash of its line, and a hash of our own over what it says."""

from __future__ import annotations

import collections
import hashlib
import json
import re
import uuid

from .location import Location
from .rule import Rule
from .source import IGNORE
from .text import without_folders

NAME = "onnxplain/v1"
"""What our fingerprint is called in a log; a change to how it is computed asks for another version."""

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "onnxplain")
_GENERATED = re.compile(r"0x[0-9a-fA-F]+|_?\d+")
_WINDOW = 100
_BASE = 37
_WORD = 2**64
_END_OF_FILE = "\uffff"


def line_hashes(text: str) -> list[str]:
    """The `primaryLocationLineHash` of every line of `text`, as GitHub code scanning computes it.

    It reads the first 100 UTF-16 code units from the line's start on, without blanks and with `\\n` for every line end, as the digits of a
    number in base 37, modulo 2**64 (github/codeql-action, src/fingerprints.ts, which rolls it over the file). Equal hashes are counted.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate({ord(" "): None, ord("\t"): None}) + _END_OF_FILE
    data = text.encode("utf-16-le", "surrogatepass")
    units = [low | high << 8 for low, high in zip(data[::2], data[1::2], strict=True)]
    starts = [0, *(index + 1 for index, unit in enumerate(units) if unit == ord("\n"))]
    counts: collections.Counter[int] = collections.Counter()
    hashes = []
    for start in starts:
        value = _number(units[start : start + _WINDOW])
        counts[value] += 1
        hashes.append(f"{value:x}:{counts[value]}")
    return hashes


def digest(*parts: object) -> str:
    """A hash over JSON values, 32 hex digits."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def of_finding(rule: Rule, file: str, place: Location) -> str:
    """What stays of a finding from export to export: the rule, its arguments, the file and the text of the line.

    It does not change when lines move, nor by what differs between two exports of one model: volatile arguments, and within a text with
    blanks (an error, a symbolic expression) numbers, addresses, folders and the numbers of generated names such as `add_12` and `s77`.

    Args:
        rule: The finding's.
        file: Name of its file, the same on every machine.
        place: Where it stands. Only where that is in no file its module counts: a line may run in several modules.
    """
    arguments = [_stable(value) for value in rule.identity()]
    if rule.everywhere:
        return digest(rule.id, arguments)
    # NOTE: a comment that accepts one finding of a line must not make another of the same line a new one.
    line = IGNORE.sub("", place.snippet).rstrip()
    return digest(rule.id, arguments, _stable(file), line, "" if file else place.module)


def guid(subject: str, fingerprint: str) -> str:
    """The guid of the finding with `fingerprint` in the log of the model `subject`."""
    return str(uuid.uuid5(_NAMESPACE, digest(subject, fingerprint)))


def _stable(value: object) -> object:
    if isinstance(value, tuple):
        return [_stable(each) for each in value]
    # NOTE: a name, which has no blanks, counts in full: the inputs `x_1` and `x_2` are two.
    return _GENERATED.sub("", without_folders(value)) if isinstance(value, str) and " " in value else value


def _number(digits: list[int]) -> int:
    value = 0
    for digit in digits:
        value = (value * _BASE + digit) % _WORD
    return value * pow(_BASE, _WINDOW - len(digits), _WORD) % _WORD
