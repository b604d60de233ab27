"""The user's source files, and what the script takes from each of them."""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import linecache
from collections.abc import Mapping
from typing import Any

from .statements import ANNOTATIONS, first_line, is_future, is_main, lines_inside_strings, names_bound


@dataclasses.dataclass(frozen=True)
class Bound:
    """A name that the script has to bind, because no statement that can be copied does.

    Attributes:
        line: Where the file binds the name; 0 if that is not known.
        name: The name; a dotted one for a module of the user that is reached through another.
        value: The object that the name stands for. The script makes its like unless `text` or `members` is given.
        text: The source of the object, if it is an expression of the file.
        alias: The name of the object in the file that `members` gives.
        members: For an alias, the file that has the object. For a module of the user, the file for each name that is reached through it.
    """

    line: int
    name: str
    value: Any = None
    text: str = ""
    alias: str = ""
    members: dict[str, File] = dataclasses.field(default_factory=dict)


class File:
    """One of the user's files.

    Args:
        path: The name of the file as Python knows it.
        namespace: The global variables of its module.

    Attributes:
        path: As above.
        namespace: As above.
        lines: The source.
        tree: The syntax tree.
        imports: The import statements that the script needs from the file, by the name that each binds.
        statements: The other statements that the script needs: top-level ones, and definitions inside functions.
        bound: The names that the script has to bind in other ways.
        classes: For the definition of each class of modules among `statements`, by id, which methods the script needs.
        done: The names that have been collected.
        uses: The files that this one needs, in order.
        flags: The compiler flags for the source.
    """

    def __init__(self, path: str, namespace: Mapping[str, Any]) -> None:
        self.path = path
        self.namespace = namespace
        self.lines = linecache.getlines(path, dict(namespace))
        self.tree = ast.parse("".join(self.lines))
        self.imports: dict[str, str] = {}
        self.statements: list[ast.stmt] = []
        self.bound: list[Bound] = []
        self.classes: dict[int, ModuleClass] = {}
        self.done: set[str] = set()
        self.uses: list[File] = []
        self.flags = ANNOTATIONS if any(is_future(node) for node in self.tree.body) else 0

    @functools.cached_property
    def binders(self) -> dict[str, list[ast.stmt]]:
        """The top-level statements that bind each name."""
        found: dict[str, list[ast.stmt]] = {}
        for node in self.tree.body:
            if not is_main(node):
                for name in names_bound(node):
                    found.setdefault(name, []).append(node)
        return found

    def names(self) -> set[str]:
        """The names that the script gets from this file."""
        return {
            *self.imports,
            *(each.name.partition(".")[0] for each in self.bound),
            *(name for node in self.statements for name in names_bound(node)),
        }

    def defines(self, name: str) -> bool:
        """Whether the script takes a statement from this file that binds `name`."""
        return any(node in self.statements for node in self.binders.get(name, ()))

    def text_of(self, node: ast.stmt) -> str:
        """The lines of a statement, without indentation. A class of modules has only the methods that the script needs."""
        first, last = first_line(node), node.end_lineno or node.lineno
        kind = self.classes.get(id(node))
        dropped = kind.unused_lines(self.lines) if kind is not None else set()
        kept = [(number, self.lines[number - 1]) for number in range(first, last + 1) if number not in dropped]
        others = [each for each in self.tree.body if each is not node] if node in self.tree.body else []
        if any(each.lineno <= last and (each.end_lineno or 0) >= first for each in others):
            # NOTE: statements may share a line, with a semicolon between them.
            return (ast.get_source_segment("".join(self.lines), node) or "") + "\n"
        margin = node.col_offset
        inside = self._lines_inside_strings if margin else ()
        text = "".join(line if number in inside else line[margin:] if line[:margin].isspace() else line for number, line in kept)
        empty = "    pass\n" if kind is not None and kind.is_empty() else ""
        return text.rstrip("\n") + "\n" + empty

    @functools.cached_property
    def _lines_inside_strings(self) -> set[int]:
        return lines_inside_strings("".join(self.lines))


class ModuleClass:
    """A class of modules, of which the script takes only the methods that are in use.

    Args:
        node: The definition.
        closure: The variables of enclosing functions that it uses.
    """

    def __init__(self, node: ast.ClassDef, closure: Mapping[str, Any]) -> None:
        self.node = node
        self.closure = closure
        self._unused = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]

    def take(self, wanted: set[str] | None) -> list[ast.stmt]:
        """Takes the methods with these names and the special ones, or all if `wanted` is None; returns those that are new."""
        new = [each for each in self._unused if wanted is None or each.name in wanted or _is_special(each.name)]
        self._unused = [each for each in self._unused if each not in new]
        return list(new)

    def without_unused(self) -> ast.ClassDef:
        """The definition without unused methods."""
        rest = copy.copy(self.node)
        rest.body = [each for each in self.node.body if each not in self._unused] or [ast.Pass(lineno=1, col_offset=0)]
        return ast.fix_missing_locations(rest)

    def unused_lines(self, lines: list[str]) -> set[int]:
        """The lines of the file that hold unused methods, and the empty lines below them."""
        found: set[int] = set()
        for each in self._unused:
            last = each.end_lineno or each.lineno
            while last < (self.node.end_lineno or 0) and not lines[last].strip():
                last += 1
            found.update(range(first_line(each), last + 1))
        return found

    def is_empty(self) -> bool:
        """Whether the class consists of unused methods only."""
        return len(self._unused) == len(self.node.body)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name != "__init__"
