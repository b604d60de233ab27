"""Code objects: of which function they are, which lines and columns they cover, which names they set."""

from __future__ import annotations

import dis
import inspect
import itertools
import types
from typing import Any

_STORE_ATTRIBUTE = dis.opmap["STORE_ATTR"]


def code_of(function: Any) -> types.CodeType | None:
    """The code of a function, however often it was decorated; None for what is not written in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def code_of_call(function: Any) -> types.CodeType | None:
    """As `code_of`, also of what a `functools.partial` calls, and of the `__call__` of an object."""
    function = getattr(function, "func", function)
    found = code_of(function)
    return found if found is not None else code_of(inspect.getattr_static(type(function), "__call__", None))


def lines_of(code: types.CodeType) -> list[int]:
    """The lines of `code`."""
    return [line for *_, line in code.co_lines() if line]


def position(code: types.CodeType, instruction: int) -> tuple[int | None, int | None, int | None, int | None]:
    """First and last line (from 1) and first and last column (UTF-8 bytes, from 0) of a byte of `code`; Python before 3.11 knows none."""
    if not hasattr(code, "co_positions"):
        return (None,) * 4
    start, end, column, end_column = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    return start, end, column, end_column


def stored_attributes(code: types.CodeType) -> set[str]:
    """The attributes that `code` assigns to, of whatever object."""
    # NOTE: the opcode is looked for before instructions are taken apart, which is slow.
    if _STORE_ATTRIBUTE not in code.co_code[::2]:
        return set()
    return {each.argval for each in dis.get_instructions(code) if each.opname == "STORE_ATTR"}
