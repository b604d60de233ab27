"""Strings of a model: which of them tell something about the user, and what stands for them in a script."""

from __future__ import annotations

import ast
import functools
import io
import itertools
import linecache
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import torch

from onnxplain.diagnostics import whole_words

from .expression import Quoted
from .live_objects import is_users

_SHORT = 3
"""The longest string that tells nothing, in characters."""
_EQUATION = re.compile(r"[A-Za-z., ]+->[A-Za-z., ]*")
"""An equation of `torch.einsum`."""
_DEVICE = re.compile(r"(cpu|cuda|mps|xpu|meta)(:\d+)?")
_LONGEST_PLACE = 60
"""How much of the place of a string its placeholder shows, in characters."""


def is_public(value: str | bytes, owner: type) -> bool:
    """Whether a string tells nothing about the user.

    This holds for strings of at most three characters, equations of `torch.einsum`, devices, and names in `torch`, `torch.nn` and
    `torch.nn.functional`. It also holds for literals in the source of a library: in that of `torch.nn.functional`, and in the modules that
    define `owner` and its bases.

    Args:
        value: The string.
        owner: The class of the object that has the string as an attribute; `object` if that is not known.
    """
    if len(value) <= _SHORT:
        return True
    if isinstance(value, bytes):
        return False
    if _EQUATION.fullmatch(value) or _DEVICE.fullmatch(value):
        return True
    if any(value.removeprefix("torch.") in vars(module) for module in (torch, torch.nn, torch.nn.functional)):
        return True
    libraries = (base.__module__ for base in owner.__mro__ if base is not object and not is_users(base))
    sources = map(_source_of, dict.fromkeys(("torch.nn.functional", *libraries)))
    return any(f"'{value}'" in source or f'"{value}"' in source for source in sources)


def shown_by(script: str) -> set[str | bytes]:
    """The names and the literals in a script."""
    try:
        nodes = list(ast.walk(ast.parse(script)))
    except (SyntaxError, ValueError):
        return set()
    found = {value for node in nodes for _, value in ast.iter_fields(node) if isinstance(value, str | bytes)}
    return found | {alias for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for alias in node.names}


def placeholders(strings: Iterable[Quoted]) -> dict[str | bytes, str | bytes]:
    """A placeholder for each string, made of its place. Equal strings get equal placeholders, different strings get different ones."""
    found: dict[str | bytes, str | bytes] = {}
    used: Counter[str] = Counter()
    for each in strings:
        if each.value not in found:
            stem = re.sub(r"[^\w.]+", "_", each.place).strip("_")[:_LONGEST_PLACE] or "text"
            used[stem] += 1
            name = f"<{stem}>" if used[stem] == 1 else f"<{stem} {used[stem]}>"
            found[each.value] = name if isinstance(each.value, str) else name.encode()
    return found


def without(strings: Mapping[str | bytes, str | bytes], text: str) -> str:
    """`text` with placeholders for those strings that are whole words in it."""
    known = {value: each for value, each in strings.items() if isinstance(value, str) and isinstance(each, str)}
    return whole_words(known).sub(lambda found: known[found[0]], text)


def with_comments(script: str, rewritten: Callable[[str], str]) -> str:
    """`script` with its comments and docstrings as `rewritten` makes them."""
    lines = io.StringIO(script).readlines()
    try:
        tokens = list(tokenize.generate_tokens(iter(lines).__next__))
    except (SyntaxError, ValueError, tokenize.TokenError):
        return script
    code = [token for token in tokens if token.type not in (tokenize.COMMENT, tokenize.NL)]
    docstrings = [
        token
        for before, token in itertools.pairwise(code)
        if token.type == tokenize.STRING and before.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    ]
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    for token in sorted([*comments, *docstrings], key=lambda each: each.start, reverse=True):
        (first, begin), (last, end) = token.start, token.end
        before, after = lines[first - 1][:begin], lines[last - 1][end:]
        lines[first - 1 : last] = [before + rewritten(token.string) + after]
    return "".join(lines)


@functools.cache
def _source_of(module: str) -> str:
    file = getattr(sys.modules.get(module), "__file__", None)
    return "".join(linecache.getlines(file)) if isinstance(file, str) and file.endswith(".py") else ""
