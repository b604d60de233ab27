"""What tells a finding again in a later log: GitHub's hash of its line, and a hash of our own over what it says."""

from __future__ import annotations

import collections
import hashlib
import json

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


def _number(digits: list[int]) -> int:
    value = 0
    for digit in digits:
        value = (value * _BASE + digit) % _WORD
    return value * pow(_BASE, _WINDOW - len(digits), _WORD) % _WORD
