"""Code objects: the function they belong to, the lines and columns they cover, the names they set; and functions made from them."""

from __future__ import annotations

import ast
import contextlib
import dis
import inspect
import itertools
import types
from collections.abc import Iterator, Mapping
from typing import Any

_STORE_ATTRIBUTE = dis.opmap["STORE_ATTR"]
_CHANGES_OF_GLOBALS = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_CHANGING_GLOBALS = frozenset(dis.opmap[each] for each in _CHANGES_OF_GLOBALS)
_LOADS = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})


def code_of(function: Any) -> types.CodeType | None:
    """The code of a function without its decorators; None for functions that are not written in Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def code_of_own(function: Any) -> types.CodeType | None:
    """The code of the function object itself, which may be a decorator's wrapper."""
    return getattr(function, "__code__", None)


def code_of_call(function: Any) -> types.CodeType | None:
    """As `code_of`, and also for the function in a `functools.partial` and for the `__call__` of an object."""
    function = getattr(function, "func", function)
    found = code_of(function)
    return found if found is not None else code_of(inspect.getattr_static(type(function), "__call__", None))


def lines_of(code: types.CodeType) -> list[int]:
    """The lines of `code`."""
    return [line for *_, line in code.co_lines() if line]


def position(code: types.CodeType, instruction: int) -> tuple[int | None, int | None, int | None, int | None]:
    """First and last line (from 1) and first and last column (UTF-8 bytes, from 0) of a byte of `code`; None before Python 3.11."""
    positions = code.co_positions() if hasattr(code, "co_positions") else ()
    # NOTE: a function that is interrupted before its first instruction is at -1.
    return next(itertools.islice(positions, max(instruction, 0) // 2, None), (None, None, None, None))


def jump_at(code: types.CodeType, instruction: int) -> tuple[int, int]:
    """Which of the conditional jumps with the place of `instruction` it is, or comes before, from 0; and how many there are."""
    place = position(code, instruction)
    jumps = [each for each in dis.get_instructions(code) if "JUMP" in each.opname and "_IF_" in each.opname]
    alike = [each.offset for each in jumps if position(code, each.offset) == place]
    return sum(offset < instruction for offset in alike), len(alike)


def stored_attributes(code: types.CodeType) -> set[str]:
    """The names of the attributes that `code` assigns, on any object."""
    # NOTE: a search for the opcode comes first, since decoding instructions is slow.
    if _STORE_ATTRIBUTE not in code.co_code[::2]:
        return set()
    return {each.argval for each in dis.get_instructions(code) if each.opname == "STORE_ATTR"}


def assigned_globals(code: types.CodeType) -> set[str]:
    """The global names that `code` and the functions inside it assign or delete."""
    found: set[str] = set()
    for each in (code, *_inside(code)):
        if not _CHANGING_GLOBALS.isdisjoint(each.co_code[::2]):
            found.update(step.argval for step in dis.get_instructions(each) if step.opname in _CHANGES_OF_GLOBALS)
    return found


def global_names(code: types.CodeType) -> set[str]:
    """The names of global variables and attributes in `code` and in the functions inside it."""
    return {name for each in (code, *_inside(code)) for name in each.co_names}


def loaded_names(code: types.CodeType) -> set[str]:
    """The global names that `code` and the functions inside it read."""
    found: set[str] = set()
    for each in (code, *_inside(code)):
        found.update(step.argval for step in dis.get_instructions(each) if step.opname in _LOADS)
    return found


def names_in(code: types.CodeType) -> set[str]:
    """The names of variables and attributes in `code` and in the functions inside it, and their texts."""
    found: set[str] = set()
    for each in (code, *_inside(code)):
        found.update(each.co_varnames, each.co_cellvars, each.co_freevars, each.co_names)
        found.update(text for text in each.co_consts if isinstance(text, str))
    return found


def code_inside(code: types.CodeType, name: str) -> types.CodeType | None:
    """The code of the function of this name inside `code`."""
    return next((each for each in _inside(code) if each.co_name == name), None)


def first_line(function: types.FunctionType) -> int:
    """The line of a function's `def`, or of its first decorator."""
    return function.__code__.co_firstlineno


def key_of(code: types.CodeType) -> tuple[str, str, int]:
    """File, name and first line (that of a decorator) of the function that `code` belongs to."""
    return code.co_filename, code.co_name, code.co_firstlineno


def compiled(source: str | ast.Module, file: str) -> Iterator[types.CodeType]:
    """The code of every function in `source`, compiled as if it were the text of `file`. Raises SyntaxError or ValueError."""
    yield from _inside(compile(source, file, "exec", dont_inherit=True))


def _inside(code: types.CodeType) -> Iterator[types.CodeType]:
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield each
            yield from _inside(each)


def cells_of(function: types.FunctionType) -> dict[str, types.CellType]:
    """The variables of the functions around `function` that it uses, by name."""
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def named_outside(function: types.FunctionType) -> Mapping[str, Any]:
    """The values in `function` of names from the functions around it, without those that have no value yet."""
    found = {}
    for name, cell in cells_of(function).items():
        with contextlib.suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def bare_copy(function: types.FunctionType, code: types.CodeType | None, namespace: dict[str, Any]) -> types.FunctionType:
    """A copy of `function` with other globals, and other code if any. Names from the functions around it have no value yet.

    Raises:
        ValueError: `code` uses other names from the functions around it.
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
    """Gives values to the names from the functions around `function`. No other function may share these names."""
    for name, cell in cells_of(function).items():
        if name in values:
            cell.cell_contents = values[name]
