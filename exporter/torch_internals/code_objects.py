"""Code objects: of which function they are, which lines and columns they cover, which names they set; functions made from them."""

from __future__ import annotations

import contextlib
import dis
import inspect
import itertools
import types
from collections.abc import Iterator, Mapping
from typing import Any

_STORE_ATTRIBUTE = dis.opmap["STORE_ATTR"]
_LOADS = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})


def code_of(function: Any) -> types.CodeType | None:
    """The code of a function, however often it was decorated; None for what is not written in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def code_of_own(function: Any) -> types.CodeType | None:
    """The code of a function as it is, which may be that of a decorator."""
    return getattr(function, "__code__", None)


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


def loaded_names(code: types.CodeType) -> set[str]:
    """The global names that `code` and the functions inside it read."""
    found: set[str] = set()
    for each in (code, *_inside(code)):
        found.update(step.argval for step in dis.get_instructions(each) if step.opname in _LOADS)
    return found


def first_line(function: types.FunctionType) -> int:
    """The line of a function's `def`, or of its first decorator."""
    return function.__code__.co_firstlineno


def key_of(code: types.CodeType) -> tuple[str, str, int]:
    """File, name and first line (that of a decorator) of the function that `code` is of."""
    return code.co_filename, code.co_name, code.co_firstlineno


def compiled(source: str, file: str) -> Iterator[types.CodeType]:
    """The code of every function in `source`, as if it were what `file` holds. Raises SyntaxError or ValueError."""
    yield from _inside(compile(source, file, "exec", dont_inherit=True))


def _inside(code: types.CodeType) -> Iterator[types.CodeType]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _inside(each)


def named_outside(function: types.FunctionType) -> Mapping[str, Any]:
    """What the names of the functions around it stand for in `function`; those that have no value yet are left out."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def bare_copy(function: types.FunctionType, code: types.CodeType | None, namespace: dict[str, Any]) -> types.FunctionType:
    """A function like `function` with other globals, and other code if any, whose names of functions around it have no value yet.

    Raises:
        ValueError: `code` takes other names from the functions around it.
    """
    code = code or function.__code__
    if code.co_freevars != function.__code__.co_freevars:
        raise ValueError(f"{code.co_name} uses {code.co_freevars}, not {function.__code__.co_freevars}")
    cells = tuple(types.CellType() for _ in code.co_freevars)
    made = types.FunctionType(code, namespace, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    made.__dict__.update(vars(function))
    return made


def name_outside(function: types.FunctionType, values: Mapping[str, Any]) -> None:
    """Gives values to names of the functions around `function`, which nobody else may have."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if name in values:
            cell.cell_contents = values[name]
