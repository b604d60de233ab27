"""Fingerprints recognize a finding in a later log: GitHub's hash of its line, and our hash of its rule, arguments and line."""

from __future__ import annotations

import collections
import hashlib
import json
import re
import uuid

from .display import without_folders
from .location import Location
from .rule import Rule
from .source_text import IGNORE

NAME = "onnxplain/v1"
"""Name of our fingerprint in a log. Another computation needs another version."""

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "onnxplain")
_GENERATED = re.compile(r"0x[0-9a-fA-F]+|_?\d+")
_WINDOW = 100
_BASE = 37
_WORD = 2**64
_END_OF_FILE = "\uffff"


def line_hashes(text: str) -> list[str]:
    """The `primaryLocationLineHash` of every line of `text`, as GitHub code scanning computes it.

    The hash reads 100 UTF-16 code units from the start of the line, without blanks and with LF for every line end, as the digits of a
    number in base 37, modulo 2**64. A counter tells equal hashes apart. Source: github/codeql-action, src/fingerprints.ts.
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
    """A hash that stays equal from export to export: of the rule, its arguments, the file and the text of the line.

    It ignores the number of the line, and whatever differs between two exports of one model: volatile arguments, and in arguments with
    blanks (an error, a symbolic expression) numbers, addresses, folders and the numbers of generated names such as `add_12` and `s77`.

    Args:
        rule: The finding's rule.
        file: Name of its file, the same on every machine.
        place: Its place. The module counts only for a place without a file, because one line may run in several modules.
    """
    arguments = stable_arguments(rule)
    if rule.everywhere:
        return digest(rule.id, arguments)
    # NOTE: a comment that suppresses one finding of a line must not turn another finding of that line into a new one.
    line = IGNORE.sub("", place.snippet).rstrip()
    return digest(rule.id, arguments, _stable(file), line, "" if file else place.module)


def stable_arguments(rule: Rule) -> list[object]:
    """The arguments of a finding that stay equal from export to export, as JSON values. `of_finding` tells what they lack."""
    return [_stable(value) for value in rule.identity()]


def guid(subject: str, fingerprint: str) -> str:
    """The guid of the finding with `fingerprint` in a log of the model `subject`."""
    return str(uuid.uuid5(_NAMESPACE, digest(subject, fingerprint)))


def _stable(value: object) -> object:
    if isinstance(value, tuple):
        return [_stable(each) for each in value]
    # NOTE: a name has no blanks and counts in full: `x_1` and `x_2` are different inputs.
    return _GENERATED.sub("", without_folders(value)) if isinstance(value, str) and " " in value else value


def _number(digits: list[int]) -> int:
    value = 0
    for digit in digits:
        value = (value * _BASE + digit) % _WORD
    return value * pow(_BASE, _WINDOW - len(digits), _WORD) % _WORD
