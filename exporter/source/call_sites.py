"""Finds where the user wrote the value of an argument, or the call that made an object.

Python does not tell where a value comes from. The syntax trees of the user's files tell it if only one place in them fits.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from onnxplain.diagnostics import Edit, Evidence, Location, line_text
from onnxplain.request import Request
from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.modules import named_modules

from . import given_arguments, locations, syntax

_SCRIPTED = re.compile(r"# (.+):\d+:\d+$", re.MULTILINE)
"""The source of an operator in a TorchScript graph, at the end of its line (torch 2.11 to 2.15)."""


@dataclasses.dataclass(frozen=True)
class SourceExpression:
    """An expression in one of the user's files.

    Attributes:
        file: The file.
        node: The expression.
    """

    file: str
    node: ast.expr

    @property
    def place(self) -> Location:
        """Its location."""
        region = syntax.region(self.file, self.node)
        function = syntax.innermost(self.file, region, ast.FunctionDef)
        return Location(self.file, region, function.name if function else "")

    @property
    def text(self) -> str:
        """Its source on one line."""
        return syntax.text(self.file, self.node)

    def followed_by(self, text: str) -> bool:
        """Whether `text` follows it directly."""
        region = syntax.region(self.file, self.node)
        return line_text(self.file, region.last_line)[region.end_offset :].startswith(text)

    def replaced(self, text: str) -> tuple[Edit, ...]:
        """The edit that replaces it by `text`; none if the file is not the user's."""
        return (Edit(self.file, syntax.region(self.file, self.node), text),)


def argument(request: Request, name: str, matches: Callable[[ast.expr], bool] = lambda _: True) -> SourceExpression | None:
    """The value of the export's argument `name`: in the call, or where a variable in the call got its value.

    Args:
        request: The export.
        name: The argument.
        matches: Whether an expression can be the value.
    """
    try:
        given = given_arguments.found(request.callers, name)
    except given_arguments.FromElsewhere:

        def written(found: SourceExpression) -> SourceExpression | None:
            value = given_arguments.definition(found.file, found.node)
            return next((SourceExpression(found.file, each) for each in (value, found.node) if matches(each)), None)

        # NOTE: in the rest of the program, the same value belongs to another export.
        return only(request, (name,), lambda node: _values(node, name), written, anywhere=False)
    return SourceExpression(*given) if given is not None and matches(given[1]) else None


def call_of(request: Request, *names: str, matches: Callable[[ast.Call], bool] = lambda _: True) -> SourceExpression | None:
    """The only call in the user's files of a function or class with one of `names`, without the modules before its name."""

    def calls(node: ast.AST) -> Iterator[ast.expr]:
        if isinstance(node, ast.Call) and syntax.last_name(node.func) in names and matches(node):
            yield node

    return only(request, names, calls)


def at(written: SourceExpression | None, request: Request, *related: Location) -> Evidence:
    """The place of `written`, or of the export's call if `written` is None."""
    if written is None:
        return Evidence(request.caller, related=related)
    calls = (request.caller.saying("exported here"),) if request.caller is not None else ()
    return Evidence(written.place, related=(*related, *calls))


def literal(node: ast.expr) -> Any:
    """The value of `node` if it is a literal; None otherwise."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None


def _values(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """The expressions that `node` assigns to `name`: a key of a dict, or a variable. Arguments of other calls do not count."""
    match node:
        case ast.Dict(keys=keys, values=values):
            yield from (value for key, value in zip(keys, values, strict=True) if isinstance(key, ast.Constant) and key.value == name)
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            yield from (each.value for each in keywords if each.arg == name)
        case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
            yield value
        case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=key))], value=value) if key == name:
            yield value


def only(
    request: Request,
    words: Sequence[str],
    find: Callable[[ast.AST], Iterator[ast.expr]],
    written: Callable[[SourceExpression], SourceExpression | None] = lambda found: found,
    *,
    anywhere: bool = True,
) -> SourceExpression | None:
    """The expression that `find` finds in the files of the export, or else in those that they import; None if it finds several.

    Of the export's own files, the first one with such an expression counts. If neither these files nor their imports have one, the search
    goes on in the user's other files, unless `anywhere` is False.

    Args:
        request: The export.
        words: One of them is in each file with such an expression. Other files are not parsed.
        find: The expressions at a node.
        written: The expression that one of them stands for; None if it does not count.
        anywhere: Whether to search files that the export's files do not import, for example because a program loads them by path.
    """
    near = dict.fromkeys(_files(request))
    for file in near:
        if found := _found(file, words, find, written):
            return found[0] if len(found) == 1 else None
    imported = _imported(near)
    others = [each for file in imported for each in _found(file, words, find, written)]
    if not others and anywhere:
        files = dict.fromkeys(getattr(module, "__file__", None) or "" for module in list(sys.modules.values()))
        left = [file for file in files if file not in near and file not in imported and locations.is_users(file)]
        others = [each for file in left for each in _found(file, words, find, written)]
    return others[0] if len(others) == 1 else None


def _imported(files: Iterable[str]) -> list[str]:
    """The user's other files that `files` import, directly or indirectly."""
    modules = {name: file for name, module in list(sys.modules.items()) if (file := getattr(module, "__file__", None))}
    known = dict.fromkeys(files)
    left = list(known)
    while left:
        names = _imports(left.pop())
        # NOTE: a relative import names the end of a module's name.
        found = {file for name, file in modules.items() if name in names or not names.isdisjoint(_ends(name))}
        new = [file for file in sorted(found - known.keys()) if locations.is_users(file)]
        known |= dict.fromkeys(new)
        left += new
    return [file for file in known if file not in files]


def _ends(name: str) -> Iterator[str]:
    parts = name.split(".")
    return ("." + ".".join(parts[start:]) for start in range(len(parts)))


def _imports(file: str) -> frozenset[str]:
    """The modules that `file` may import; relative ones begin with a dot."""
    return _imports_in(syntax.source(file))


@functools.lru_cache(maxsize=1024)
def _imports_in(text: str) -> frozenset[str]:
    module = syntax.parsed(text)
    return frozenset(_imported_names(module) if module is not None else ())


def _imported_names(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        if isinstance(node, ast.ImportFrom):
            base = ("." if node.level else "") + (node.module or "")
            yield from (base, *(f"{base}{'' if base == '.' else '.'}{each.name}" for each in node.names))


def _found(
    file: str,
    words: Sequence[str],
    find: Callable[[ast.AST], Iterator[ast.expr]],
    written: Callable[[SourceExpression], SourceExpression | None],
) -> list[SourceExpression]:
    text = syntax.source(file)
    tree = syntax.tree(file) if any(word in text for word in words) else None
    nodes = ast.walk(tree) if tree is not None else ()
    found = (written(SourceExpression(file, each)) for node in nodes for each in find(node))
    # NOTE: the call may name a variable that the search finds as well.
    return list({(each.node.lineno, each.node.col_offset): each for each in found if each is not None}.values())


def _files(request: Request) -> Iterator[str]:
    """The user's files that belong to the export: those of the call, the model, its submodules and the inputs' classes."""
    model = request.model
    modules = [module for _, module in named_modules(model)] if isinstance(model, torch.nn.Module) else []
    values = pytree.tree_leaves((request.args, dict(request.kwargs)))
    places = [request.caller, None if isinstance(model, torch.export.ExportedProgram) else locations.module_definition(model)]
    places += [locations.class_definition(cls) for cls in dict.fromkeys(map(type, (*modules, *values)))]
    scripted = [file for module in modules if isinstance(module, torch.jit.ScriptModule) for file in _sources(module)]
    files = [*(place.file for place in places if place), *scripted]
    yield from (file for file in files if file and locations.is_users(file))


def _sources(module: torch.jit.ScriptModule) -> list[str]:
    try:
        return _SCRIPTED.findall(str(module.graph))
    except (RuntimeError, AttributeError):
        # NOTE: a scripted module without a forward has no graph.
        return []
