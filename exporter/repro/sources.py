"""The part of the user's source files that a model needs: top-level statements, and of modules' classes only the methods in use.

What a name stands for is looked up in the program that runs, not in the text: so it is the definition that counts in the end.
"""

from __future__ import annotations
import __future__

import argparse
import ast
import builtins
import contextlib
import copy
import dataclasses
import dis
import functools
import inspect
import keyword
import linecache
import pathlib
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from onnxplain.source import locations

_ANNOTATIONS = __future__.annotations.compiler_flag
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_IMPORTS = ast.Import | ast.ImportFrom
_LOADS = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})
_READING = ("load", "file", "memmap", "txt", "hub")
_NOTHING: Mapping[str, Any] = {}


def file_of(value: Any) -> str | None:
    """The file that a class or function is defined in."""
    codes = vars(value).values() if isinstance(value, type) else [value]
    for each in codes:
        code = getattr(inspect.unwrap(each), "__code__", None) if callable(each) else None
        if code is not None and not code.co_filename.startswith("<string"):
            return str(code.co_filename)
    return getattr(sys.modules.get(getattr(value, "__module__", None) or ""), "__file__", None)


def is_users(value: Any) -> bool:
    """Whether a class or function has its source in a file of the user's."""
    file = file_of(value)
    return file is not None and locations.is_users(file)


def is_plain(value: Any) -> bool:
    """Whether `value` is nothing but data: numbers, strings, tensors, and containers of them."""
    if type(value) in (list, tuple, set, frozenset):
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(map(is_plain, (*value, *value.values())))
    kinds = bool | int | float | complex | str | bytes | torch.Tensor | argparse.Namespace | pathlib.PurePath
    return value is None or isinstance(value, kinds)


@dataclasses.dataclass(frozen=True)
class Bound:
    """A name that the script has to bind, though no statement of the file does it in a way that can be copied.

    Attributes:
        line: Where the file binds it; 0 where that is not known.
        name: The name; dotted for a module of the user's that is reached through another.
        value: What it stands for, to be made by an expression, where neither of the others is given.
        text: Its source, where it is an expression of the file.
        alias: Another name for what `members` says.
        members: Which file has what `name` stands for; of a module of the user's, which file has what is reached through it.
    """

    line: int
    name: str
    value: Any = None
    text: str = ""
    alias: str = ""
    members: dict[str, File] = dataclasses.field(default_factory=dict)


class File:
    """One of the user's files.

    Attributes:
        path: Its name as Python knows it.
        lines: Its source.
        tree: Its syntax tree.
        namespace: Its global variables.
        imports: Statements that the script needs from it, one name each.
        statements: Statements that the script needs from it: top-level ones, and definitions inside functions.
        bound: Names that it binds in other ways.
        uses: The files that it needs, in order.
    """

    def __init__(self, path: str, namespace: Mapping[str, Any]) -> None:
        self.path = path
        self.namespace = namespace
        self.lines = linecache.getlines(path, dict(namespace))
        self.tree = ast.parse("".join(self.lines))
        self.imports: dict[str, str] = {}
        self.statements: list[ast.stmt] = []
        self.bound: list[Bound] = []
        self.classes: dict[int, _Class] = {}
        self.done: set[str] = set()
        self.uses: list[File] = []
        self.flags = _ANNOTATIONS if any(_is_future(node) for node in self.tree.body) else 0

    def __hash__(self) -> int:
        return id(self)

    @functools.cached_property
    def inside_strings(self) -> set[int]:
        """The lines that begin inside a string."""
        return inside_strings("".join(self.lines))

    @functools.cached_property
    def binders(self) -> dict[str, list[ast.stmt]]:
        """The top-level statements that bind a name."""
        found: dict[str, list[ast.stmt]] = {}
        for node in self.tree.body:
            if not _is_main(node):
                for name in _bound(node):
                    found.setdefault(name, []).append(node)
        return found

    def names(self) -> set[str]:
        """The names that the script gets from this file."""
        return {
            *self.imports,
            *(each.name.partition(".")[0] for each in self.bound),
            *(name for node in self.statements for name in _bound(node)),
        }

    def text_of(self, node: ast.stmt) -> str:
        """The lines of a statement, without indentation; of a class only what is in use."""
        first = _first(node)
        last = node.end_lineno or node.lineno
        dropped = self.classes[id(node)].dropped(self.lines) if id(node) in self.classes else set()
        kept = [(number, self.lines[number - 1]) for number in range(first, last + 1) if number not in dropped]
        others = [each for each in self.tree.body if each is not node] if node in self.tree.body else []
        if any(each.lineno <= last and (each.end_lineno or 0) >= first for each in others):
            # NOTE: statements may share a line, with a semicolon between them.
            return ast.get_source_segment("".join(self.lines), node) or ""
        margin = node.col_offset
        inside = self.inside_strings if margin else ()
        text = "".join(line if number in inside else line[margin:] if line[:margin].isspace() else line for number, line in kept)
        empty = "    pass\n" if id(node) in self.classes and self.classes[id(node)].is_empty() else ""
        return text.rstrip("\n") + "\n" + empty


class _Class:
    """A class of modules: its methods come as they are in use."""

    def __init__(self, node: ast.ClassDef, closure: Mapping[str, Any]) -> None:
        self.node = node
        self.closure = closure
        self.waiting = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]

    def take(self, wanted: set[str] | None) -> list[ast.stmt]:
        """The methods of these names that were not taken before; all where `wanted` is None."""
        new = [each for each in self.waiting if wanted is None or each.name in wanted or _is_special(each.name)]
        self.waiting = [each for each in self.waiting if each not in new]
        return list(new)

    def frame(self) -> ast.ClassDef:
        """The class without methods."""
        framed = copy.copy(self.node)
        framed.body = [each for each in self.node.body if each not in self.waiting] or [ast.Pass(lineno=1, col_offset=0)]
        return ast.fix_missing_locations(framed)

    def dropped(self, lines: list[str]) -> set[int]:
        """The lines of the file that are not needed, with the empty ones below them."""
        gone: set[int] = set()
        for each in self.waiting:
            last = each.end_lineno or each.lineno
            while last < (self.node.end_lineno or 0) and not lines[last].strip():
                last += 1
            gone.update(range(_first(each), last + 1))
        return gone

    def is_empty(self) -> bool:
        """Whether nothing is left of it."""
        return len(self.waiting) == len(self.node.body)


class Sources:
    """Collects what classes and functions need, each once.

    Attributes:
        files: The user's files that the script takes something from.
        problems: What could not be traced, a clause each.
    """

    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.problems: list[str] = []
        self._mentioned = {"forward"}
        self._called: set[str] = set()
        self._operators: set[str] = set()
        self._everything = False
        self._local: dict[int, tuple[File, str]] = {}

    def wants(self, name: str) -> bool:
        """Whether the code that was collected mentions an attribute."""
        return self._everything or name in self._mentioned

    def need(self, value: Any) -> tuple[File, str] | None:
        """Collects a class or function of the user's; returns the file that has it and its name there."""
        if id(value) in self._local:
            return self._local[id(value)]
        path = file_of(value)
        namespace = self._namespace(value)
        if path is None or namespace is None:
            return None
        file = self._file(path, namespace)
        if file is None:
            return None
        names = [value.__qualname__, *(name for name, each in namespace.items() if each is value)]
        for name in names:
            first, *rest = name.split(".")
            found = namespace.get(first)
            for part in rest:
                found = inspect.getattr_static(found, part, None)
                found = found.__func__ if isinstance(found, staticmethod | classmethod) else found
            if _is_same(found, value) and first.isidentifier():
                self._name(file, first)
                self._mention(rest)
                return file, name
        return self._take_local(file, value)

    def settle(self) -> None:
        """Collects what registers something for the code that was collected: custom operators, containers."""
        before = -1
        while before != (before := sum(len(file.statements) for file in self.files.values()) + len(self._operators)):
            for module in list(sys.modules.values()) if self._operators else ():
                path = getattr(module, "__file__", None)
                if isinstance(path, str) and path.endswith(".py") and locations.is_users(path):
                    self._register(self._file(path, vars(module)))
            for file in list(self.files.values()):
                self._register(file)

    def in_order(self) -> list[File]:
        """The files that the script takes something from, each after those that it uses."""
        ordered: list[File] = []
        seen: set[int] = set()

        def visit(file: File) -> None:
            if id(file) not in seen:
                seen.add(id(file))
                for used in file.uses:
                    visit(used)
                ordered.append(file)

        for file in self.files.values():
            visit(file)
        return [file for file in ordered if file.statements or file.bound]

    def _namespace(self, value: Any) -> Mapping[str, Any] | None:
        for each in vars(value).values() if isinstance(value, type) else [value]:
            found = getattr(inspect.unwrap(each), "__globals__", None) if callable(each) else None
            if found is not None and found.get("__name__") == getattr(value, "__module__", None):
                return dict(found)
        module = sys.modules.get(getattr(value, "__module__", None) or "")
        return None if module is None else vars(module)

    def _file(self, path: str, namespace: Mapping[str, Any]) -> File | None:
        if path not in self.files:
            try:
                self.files[path] = File(path, namespace)
            except (SyntaxError, ValueError):
                self.problems.append(f"the source {path!r} cannot be read")
                return None
        return self.files[path]

    def _name(self, file: File, name: str, closure: Mapping[str, Any] = _NOTHING) -> None:
        """Collects what `name` stands for in `file`."""
        if name in file.done:
            return
        if name in closure:
            file.done.add(name)
            self._bind(file, name, closure[name], 0)
            return
        if name not in file.namespace or name.startswith("__"):
            return
        file.done.add(name)
        value, binders = file.namespace[name], file.binders.get(name, [])
        if not binders or any(self._is_hopeless(file, node) for node in binders):
            self._bind(file, name, value, binders[-1].lineno if binders else 0)
            return
        for node in binders:
            if isinstance(node, _IMPORTS):
                self._import(file, name, node)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and is_plain(value) and not self._is_pure(file, node):
                self._bind(file, name, value, node.lineno)
                return
            else:
                self._take(file, node)

    def _is_hopeless(self, file: File, node: ast.stmt) -> bool:
        """Whether a compound statement imports what the script will not find."""
        if isinstance(node, _IMPORTS | _DEFINITIONS):
            return False
        inner = (each for each in ast.walk(node) if isinstance(each, _IMPORTS))
        return any(self._users_module(name) is not None for each in inner for name in _modules(each, file.namespace))

    def _is_pure(self, file: File, node: ast.stmt) -> bool:
        """Whether all that a statement calls is arithmetic: it gives the same anywhere."""
        called = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
        roots = [file.namespace.get(_root(each), getattr(builtins, _root(each), None)) for each in called]
        reads = any(word in _last(each) for each in called for word in _READING)
        return not reads and all(root in (int, float, tuple, list, dict, set, range) or _is_arithmetic(root) for root in roots)

    def _take(self, file: File, node: ast.stmt, value: Any = None, closure: Mapping[str, Any] = _NOTHING) -> None:
        """Collects a statement and what it needs. `value` is the class that it defines, if it is one inside a function."""
        if node in file.statements:
            return
        file.statements.append(node)
        if isinstance(node, ast.ClassDef) and value is None:
            value = file.namespace.get(node.name)
        if isinstance(node, ast.ClassDef) and isinstance(value, type) and issubclass(value, torch.nn.Module):
            kind = file.classes[id(node)] = _Class(node, closure)
            methods = kind.take(None if self._everything else self._mentioned - {"__init__"})
            self._scan(file, [kind.frame(), *methods], closure)
            self._construct(file, kind)
        else:
            self._scan(file, [node], closure)

    def _scan(self, file: File, nodes: list[ast.stmt], closure: Mapping[str, Any]) -> None:
        """Collects what `nodes` mention."""
        for name in sorted(_loaded(nodes, file.flags)):
            self._name(file, name, closure)
        mentioned: list[str] = []
        for each in (inner for node in nodes for inner in ast.walk(node)):
            if isinstance(each, ast.Attribute):
                mentioned.append(each.attr)
                self._through_module(file, each, closure)
            elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                if each.value.isidentifier():
                    mentioned.append(each.value)
                elif (operator := each.value.partition("::"))[1] and operator[0].isidentifier():
                    self._operators.add(operator[0])
            elif isinstance(each, ast.Call):
                self._call(each)
        self._mention(mentioned)

    def _call(self, node: ast.Call) -> None:
        name = _last(node.func)
        if name == "vars" or (name == "getattr" and not isinstance(node.args[1], ast.Constant)):
            # NOTE: which attributes are in use, only the program that runs knows then.
            self._everything = True
            self._mention([])
        if name not in self._called:
            self._called.add(name)
            for file in list(self.files.values()):
                for kind in list(file.classes.values()):
                    self._construct(file, kind)

    def _mention(self, names: Iterable[str]) -> None:
        new = {*names} - self._mentioned
        self._mentioned |= new
        if not new and not self._everything:
            return
        for file in list(self.files.values()):
            for kind in list(file.classes.values()):
                methods = kind.take(None if self._everything else self._mentioned - {"__init__"})
                if methods:
                    self._scan(file, methods, kind.closure)

    def _construct(self, file: File, kind: _Class) -> None:
        """Takes the `__init__` of a class that the code makes objects of, and of those that it inherits from."""
        if kind.node.name not in self._called:
            return
        methods = kind.take({"__init__"})
        if not methods:
            return
        self._called.update(_last(base) for base in kind.node.bases)
        self._scan(file, methods, kind.closure)
        for each in list(self.files.values()):
            for other in list(each.classes.values()):
                self._construct(each, other)

    def _through_module(self, file: File, node: ast.Attribute, closure: Mapping[str, Any]) -> None:
        """Notes an attribute of a module of the user's, and namespaces of operators."""
        dotted = _dotted(node)
        if dotted[:2] == ["torch", "ops"] and len(dotted) > 3:
            self._operators.add(dotted[2])
        if len(dotted) < 2:
            return
        found, path = closure.get(dotted[0], file.namespace.get(dotted[0])), dotted[0]
        for part in dotted[1:]:
            if not isinstance(found, types.ModuleType) or self._users_module(found.__name__) is None:
                return
            target = self._file(found.__file__ or "", vars(found))
            found = getattr(found, part, None)
            if target is None or isinstance(found, types.ModuleType):
                path = f"{path}.{part}"
                continue
            self._name(target, part)
            self._use(file, target)
            bound = next((each for each in file.bound if each.name == path), None)
            if bound is None:
                bound = Bound(0, path)
                file.bound.append(bound)
            bound.members[part] = target
            return

    def _import(self, file: File, name: str, node: ast.Import | ast.ImportFrom) -> None:
        """Collects what an import statement binds to `name`."""
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            if bound != name:
                continue
            if isinstance(node, ast.Import):
                if self._users_module(alias.name) is None:
                    statement = f"import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
                    file.imports[name] = "\n".join(filter(None, dict.fromkeys([*file.imports.get(name, "").split("\n"), statement])))
                continue
            origin = _absolute(node, file.namespace)
            module = self._users_module(origin)
            if module is None:
                file.imports[name] = f"from {origin} import {alias.name}" + (f" as {alias.asname}" if alias.asname else "")
                continue
            value = file.namespace[name]
            if isinstance(value, types.ModuleType):
                if self._users_module(value.__name__) is None:
                    self._bind(file, name, value, node.lineno)
                continue
            target = self._file(module.__file__ or "", vars(module))
            if target is None:
                continue
            self._name(target, alias.name)
            self._use(file, target)
            file.bound.append(Bound(node.lineno, name, alias=alias.name, members={"": target}))

    def _bind(self, file: File, name: str, value: Any, line: int) -> None:
        """Binds `name` to `value`, however the program came to it."""
        if isinstance(value, types.ModuleType):
            if self._users_module(value.__name__) is None:
                file.imports[name] = f"import {value.__name__}" + (f" as {name}" if value.__name__ != name else "")
            return
        if isinstance(value, type | types.FunctionType) and is_users(value):
            found = self.need(value)
            if found is not None:
                if found[0] is not file:
                    self._use(file, found[0])
                if (file, name) != found:
                    file.bound.append(Bound(line, name, alias=found[1], members={"": found[0]}))
                return
        if value is not getattr(builtins, name, None):
            file.bound.append(Bound(line, name, value))

    def _use(self, file: File, other: File) -> None:
        if other is not file and other not in file.uses:
            file.uses.append(other)

    def _users_module(self, name: str) -> types.ModuleType | None:
        """The module of this name if it is the user's."""
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None)
        if path is None:
            # NOTE: a folder without __init__.py is a module without a file.
            path = next((f"{each}/__init__.py" for each in getattr(module, "__path__", ())), None)
        return module if path is not None and locations.is_users(path) else None

    def _take_local(self, file: File, value: Any) -> tuple[File, str] | None:
        """Collects a class or function that is defined inside a function."""
        if isinstance(value, types.FunctionType) and value.__name__ == "<lambda>":
            return self._take_lambda(file, value)
        lines = {each.__code__.co_firstlineno for each in _functions(value)}
        kind = ast.ClassDef if isinstance(value, type) else ast.FunctionDef
        found = [
            node
            for node in ast.walk(file.tree)
            if isinstance(node, kind)
            and node.name == value.__name__
            and (not lines or all(_first(node) <= line <= (node.end_lineno or 0) for line in lines))
        ]
        if len(found) != 1 or not value.__name__.isidentifier() or keyword.iskeyword(value.__name__):
            self.problems.append(f"the definition of {value.__qualname__} cannot be found")
            return None
        node, name = found[0], value.__name__
        closure = _closure(value)
        if isinstance(value, type):
            closure |= {base.__name__: base for base in value.__bases__ if "<locals>" in base.__qualname__}
        file.done.add(name)
        self._local[id(value)] = file, name
        self._take(file, node, value, closure)
        return file, name

    def _take_lambda(self, file: File, value: types.FunctionType) -> tuple[File, str] | None:
        """Collects a function without a name, if it is the only one on its line."""
        found = [node for node in ast.walk(file.tree) if isinstance(node, ast.Lambda) and node.lineno == value.__code__.co_firstlineno]
        if len(found) != 1:
            self.problems.append(f"the lambda on line {value.__code__.co_firstlineno} cannot be told from others")
            return None
        name = f"lambda_{len(self._local) + 1}"
        self._local[id(value)] = file, name
        text = ast.get_source_segment("".join(file.lines), found[0]) or ""
        file.bound.append(Bound(file.tree.body[-1].end_lineno or 0, name, text=f"({text})" if "\n" in text else text))
        self._scan(file, [ast.Expr(found[0], lineno=1, col_offset=0)], _closure(value))
        return file, name

    def _register(self, file: File | None) -> None:
        """Collects the statements of `file` that register something that was collected."""
        for node in file.tree.body if file is not None else ():
            if file is not None and node not in file.statements and self._registers(file, node):
                self._take(file, node)

    def _registers(self, file: File, node: ast.stmt) -> bool:
        if isinstance(node, ast.FunctionDef):
            return any(self._is_registration(file, each) for each in node.decorator_list)
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Call) and self._is_registration(file, node.value)
        if not isinstance(node, ast.Assign):
            return False
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets):
            return all(self._is_defined(file, _root(target)) for target in node.targets)
        return isinstance(node.value, ast.Call) and self._is_registration(file, node.value) and not _is_def(file, node.value.func)

    def _is_registration(self, file: File, node: ast.expr) -> bool:
        function = node.func if isinstance(node, ast.Call) else node
        if isinstance(function, ast.Call):
            # NOTE: torch.library.register_fake("a::b")(function)
            return self._is_registration(file, function)
        target = _resolved(file.namespace, function)
        given = [*node.args, *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else []
        spaces = {each.value.partition("::")[0] for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str)}
        if (getattr(target, "__module__", None) or "").startswith(("torch.library", "torch._library")) and spaces:
            return bool(spaces & self._operators)
        if isinstance(function, ast.Attribute) and self._is_defined(file, root := _root(function)):
            return not isinstance(file.namespace.get(root), type | types.ModuleType | torch.nn.Module)
        names = {inner.id for each in given for inner in ast.walk(each) if isinstance(inner, ast.Name)}
        return "register" in _last(function) and any(self._is_defined(file, name) for name in names)

    def _is_defined(self, file: File, name: str) -> bool:
        return any(node in file.statements for node in file.binders.get(name, ()))


def _loaded(nodes: list[ast.stmt], flags: int) -> set[str]:
    """The global names that statements read, as the interpreter would."""
    code = compile(ast.Module(body=nodes, type_ignores=[]), "<names>", "exec", flags=flags, dont_inherit=True)
    found: set[str] = set()
    codes = [code]
    while codes:
        each = codes.pop()
        found.update(step.argval for step in dis.get_instructions(each) if step.opname in _LOADS)
        codes += [constant for constant in each.co_consts if isinstance(constant, types.CodeType)]
    return found


def _bound(node: ast.stmt) -> Iterator[str]:
    """The global names that a top-level statement binds."""
    if isinstance(node, _DEFINITIONS):
        yield node.name
    elif isinstance(node, _IMPORTS):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    else:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr):
            inner: Iterable[ast.AST] = ast.walk(node)
        else:
            inner = [each for child in ast.iter_child_nodes(node) for each in ast.walk(child)]
        for each in inner:
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                yield each.id
            elif isinstance(each, ast.stmt) and isinstance(each, _DEFINITIONS | _IMPORTS):
                yield from _bound(each)


def _is_main(node: ast.stmt) -> bool:
    """Whether a statement runs only where the file is the program."""
    return isinstance(node, ast.If) and any(isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(node.test))


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and any(each.name == "annotations" for each in node.names)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name != "__init__"


def _is_arithmetic(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and value.__name__ in ("torch", "math", "numpy")


def _modules(node: ast.Import | ast.ImportFrom, namespace: Mapping[str, Any]) -> list[str]:
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else [_absolute(node, namespace)]


def _absolute(node: ast.ImportFrom, namespace: Mapping[str, Any]) -> str:
    """The name of the module that is imported from."""
    if not node.level:
        return node.module or ""
    package = str(namespace.get("__package__") or "").split(".")
    return ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])


def _dotted(node: ast.expr) -> list[str]:
    """`a.b.c` in parts; nothing for other expressions."""
    if isinstance(node, ast.Name):
        return [node.id]
    inner = _dotted(node.value) if isinstance(node, ast.Attribute) else []
    return [*inner, node.attr] if inner and isinstance(node, ast.Attribute) else []


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _resolved(namespace: Mapping[str, Any], node: ast.expr) -> Any:
    """What a dotted name stands for."""
    first, *rest = _dotted(node) or [""]
    found = namespace.get(first)
    for part in rest:
        found = getattr(found, part, None) if isinstance(found, types.ModuleType | type) else None
    return found


def _is_def(file: File, node: ast.expr) -> bool:
    """Whether a function is the user's own."""
    found = _resolved(file.namespace, node)
    return isinstance(found, types.FunctionType) and is_users(found)


def _functions(value: Any) -> list[types.FunctionType]:
    """The functions that a class or a function is made of."""
    if not isinstance(value, type):
        value = inspect.unwrap(value)
        return [value] if isinstance(value, types.FunctionType) else []
    found = []
    for each in vars(value).values():
        each = each.__func__ if isinstance(each, staticmethod | classmethod) else each.fget if isinstance(each, property) else each
        each = inspect.unwrap(each) if callable(each) else each
        if isinstance(each, types.FunctionType) and each.__qualname__.startswith(f"{value.__qualname__}."):
            found.append(each)
    return found


def _closure(value: Any) -> dict[str, Any]:
    """The variables of functions around it that a class or a function uses."""
    found: dict[str, Any] = {}
    for each in _functions(value):
        for variable, cell in zip(each.__code__.co_freevars, each.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):
                found[variable] = cell.cell_contents
    found.pop("__class__", None)
    return found


def _is_same(found: Any, value: Any) -> bool:
    """Whether a name stands for `value`, or for what a decorator has made of it."""
    return found is value or value in (getattr(found, name, None) for name in ("__wrapped__", "function", "_init_fn"))


def _first(node: ast.stmt) -> int:
    """The line of a definition's first decorator, or of the statement itself."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def inside_strings(text: str) -> set[int]:
    """The lines of `text` that begin inside a string, whose indentation belongs to it."""
    found: set[int] = set()
    for each in ast.walk(ast.parse(text)):
        is_text = isinstance(each, ast.Constant) and isinstance(each.value, str | bytes)
        if (is_text or isinstance(each, ast.JoinedStr)) and isinstance(each, ast.expr):
            found.update(range(each.lineno + 1, (each.end_lineno or each.lineno) + 1))
    return found
