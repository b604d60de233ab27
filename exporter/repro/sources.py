"""Collects the parts of the user's source files that a script needs: top-level statements, and the methods of modules that are in use.

The running program decides what a name stands for, not the text: a file may define a name several times.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import keyword
import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from onnxplain.source import locations, syntax
from onnxplain.torch_internals import code_objects

from .live_objects import closure_of, file_of, functions_of, is_plain, is_same, is_users, namespace_of, users_module
from .registrations import registers
from .source_files import Bound, File, ModuleClass
from .statements import DEFINITIONS, IMPORTS, dotted_name, first_line, imported_modules, module_imported_from, names_read, root_name

_READING = ("load", "file", "memmap", "txt", "hub")
"""Parts of the names of functions that read files."""
_NOTHING: Mapping[str, Any] = {}


class Sources:
    """Collects what classes and functions need, each once.

    Attributes:
        files: The user's files that the script takes something from, by path.
        problems: What could not be found, a clause each.
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
        """Whether the collected code mentions an attribute."""
        return self._everything or name in self._mentioned

    def need(self, value: Any) -> tuple[File, str] | None:
        """Collects a class or function of the user; returns the file that has it and its name there."""
        if id(value) in self._local:
            return self._local[id(value)]
        path = file_of(value)
        namespace = namespace_of(value)
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
            if is_same(found, value) and first.isidentifier():
                self._collect_name(file, first)
                self._mention(rest)
                return file, name
        return self._collect_local(file, value)

    def settle(self) -> None:
        """Collects the statements that register something for the collected code: custom operators, containers."""
        before = -1
        while before != (before := sum(len(file.statements) for file in self.files.values()) + len(self._operators)):
            for module in list(sys.modules.values()) if self._operators else ():
                path = getattr(module, "__file__", None)
                if isinstance(path, str) and path.endswith(".py") and locations.is_users(path):
                    self._collect_registrations(self._file(path, vars(module)))
            for file in list(self.files.values()):
                self._collect_registrations(file)

    def in_order(self) -> list[File]:
        """The files that the script takes something from, each after the files that it uses."""
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

    def _file(self, path: str, namespace: Mapping[str, Any]) -> File | None:
        if path not in self.files:
            try:
                self.files[path] = File(path, namespace)
            except (SyntaxError, ValueError) as error:
                self.problems.append(f"the source {path!r} cannot be read: {error}")
                return None
        return self.files[path]

    def _collect_name(self, file: File, name: str, closure: Mapping[str, Any] = _NOTHING) -> None:
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
        if not binders or any(_imports_users_module(file, node) for node in binders):
            self._bind(file, name, value, binders[-1].lineno if binders else 0)
            return
        for node in binders:
            if isinstance(node, IMPORTS):
                self._collect_import(file, name, node)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and is_plain(value) and not _is_arithmetic(file, node):
                self._bind(file, name, value, node.lineno)
                return
            else:
                self._collect_statement(file, node)

    def _collect_statement(self, file: File, node: ast.stmt, value: Any = None, closure: Mapping[str, Any] = _NOTHING) -> None:
        """Collects a statement and what it needs. For a class inside a function, `value` is the class."""
        if node in file.statements:
            return
        file.statements.append(node)
        if isinstance(node, ast.ClassDef) and value is None:
            value = file.namespace.get(node.name)
        if isinstance(node, ast.ClassDef) and isinstance(value, type) and issubclass(value, torch.nn.Module):
            kind = file.classes[id(node)] = ModuleClass(node, closure)
            methods = kind.take(self._methods_in_use())
            self._scan(file, [kind.without_unused(), *methods], closure)
            self._collect_constructor(file, kind)
        else:
            self._scan(file, [node], closure)

    def _scan(self, file: File, nodes: list[ast.stmt], closure: Mapping[str, Any]) -> None:
        """Collects what statements refer to."""
        for name in sorted(names_read(nodes, file.flags)):
            self._collect_name(file, name, closure)
        mentioned: list[str] = []
        for each in (inner for node in nodes for inner in ast.walk(node)):
            if isinstance(each, ast.Attribute):
                mentioned.append(each.attr)
                self._collect_attribute(file, each, closure)
            elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                if each.value.isidentifier():
                    mentioned.append(each.value)
                elif (operator := each.value.partition("::"))[1] and operator[0].isidentifier():
                    self._operators.add(operator[0])
            elif isinstance(each, ast.Call):
                self._note_call(each)
        self._mention(mentioned)

    def _note_call(self, node: ast.Call) -> None:
        name = syntax.last_name(node.func)
        if name == "vars" or (name == "getattr" and not isinstance(node.args[1], ast.Constant)):
            # NOTE: only a run could tell which attributes are in use.
            self._everything = True
            self._mention([])
        if name not in self._called:
            self._called.add(name)
            for file in list(self.files.values()):
                for kind in list(file.classes.values()):
                    self._collect_constructor(file, kind)

    def _mention(self, names: Iterable[str]) -> None:
        """Notes that the collected code mentions attributes; collects methods with these names."""
        new = {*names} - self._mentioned
        self._mentioned |= new
        if not new and not self._everything:
            return
        for file in list(self.files.values()):
            for kind in list(file.classes.values()):
                methods = kind.take(self._methods_in_use())
                if methods:
                    self._scan(file, methods, kind.closure)

    def _methods_in_use(self) -> set[str] | None:
        """The names of the methods to take; None for all."""
        return None if self._everything else self._mentioned - {"__init__"}

    def _collect_constructor(self, file: File, kind: ModuleClass) -> None:
        """Collects `__init__` of a class and of its bases, if the code makes objects of the class."""
        if kind.node.name not in self._called:
            return
        methods = kind.take({"__init__"})
        if not methods:
            return
        self._called.update(syntax.last_name(base) for base in kind.node.bases)
        self._scan(file, methods, kind.closure)
        for each in list(self.files.values()):
            for other in list(each.classes.values()):
                self._collect_constructor(each, other)

    def _collect_attribute(self, file: File, node: ast.Attribute, closure: Mapping[str, Any]) -> None:
        """Collects what `a.b` stands for if `a` is a module of the user; notes the namespace of an operator."""
        dotted = dotted_name(node)
        if dotted[:2] == ["torch", "ops"] and len(dotted) > 3:
            self._operators.add(dotted[2])
        if len(dotted) < 2:
            return
        found, path = closure.get(dotted[0], file.namespace.get(dotted[0])), dotted[0]
        for part in dotted[1:]:
            if not isinstance(found, types.ModuleType) or users_module(found.__name__) is None:
                return
            target = self._file(found.__file__ or "", vars(found))
            found = getattr(found, part, None)
            if target is None or isinstance(found, types.ModuleType):
                path = f"{path}.{part}"
                continue
            self._collect_name(target, part)
            _use(file, target)
            bound = next((each for each in file.bound if each.name == path), None)
            if bound is None:
                bound = Bound(0, path)
                file.bound.append(bound)
            bound.members[part] = target
            return

    def _collect_import(self, file: File, name: str, node: ast.Import | ast.ImportFrom) -> None:
        """Collects what an import statement binds to `name`."""
        for alias in node.names:
            if (alias.asname or alias.name.partition(".")[0]) != name:
                continue
            renamed = f" as {alias.asname}" if alias.asname else ""
            if isinstance(node, ast.ImportFrom):
                self._collect_import_from(file, name, node, alias.name, renamed)
            elif users_module(alias.name) is None:
                # NOTE: `import a.b` and `import a.c` both bind `a`.
                known = file.imports.get(name, "").split("\n")
                file.imports[name] = "\n".join(filter(None, dict.fromkeys([*known, f"import {alias.name}{renamed}"])))

    def _collect_import_from(self, file: File, name: str, node: ast.ImportFrom, imported: str, renamed: str) -> None:
        origin = module_imported_from(node, file.namespace)
        module = users_module(origin)
        if module is None:
            file.imports[name] = f"from {origin} import {imported}{renamed}"
            return
        value = file.namespace[name]
        if isinstance(value, types.ModuleType):
            if users_module(value.__name__) is None:
                self._bind(file, name, value, node.lineno)
            return
        target = self._file(module.__file__ or "", vars(module))
        if target is not None:
            self._collect_name(target, imported)
            _use(file, target)
            file.bound.append(Bound(node.lineno, name, alias=imported, members={"": target}))

    def _bind(self, file: File, name: str, value: Any, line: int) -> None:
        """Binds `name` to `value`, without the statement that did so in the program."""
        if isinstance(value, types.ModuleType):
            if users_module(value.__name__) is None:
                file.imports[name] = f"import {value.__name__}" + (f" as {name}" if value.__name__ != name else "")
            return
        if isinstance(value, type | types.FunctionType) and is_users(value):
            found = self.need(value)
            if found is not None:
                _use(file, found[0])
                if (file, name) != found:
                    file.bound.append(Bound(line, name, alias=found[1], members={"": found[0]}))
                return
        if value is not getattr(builtins, name, None):
            file.bound.append(Bound(line, name, value))

    def _collect_local(self, file: File, value: Any) -> tuple[File, str] | None:
        """Collects a class or function that is defined inside a function."""
        if isinstance(value, types.FunctionType) and "__class__" in value.__code__.co_freevars:
            # NOTE: `super()` needs it as well.
            self.problems.append(f"{value.__qualname__} needs the class around it")
            return None
        if isinstance(value, types.FunctionType) and value.__name__ == "<lambda>":
            return self._collect_lambda(file, value)
        lines = {code_objects.first_line(each) for each in functions_of(value)}
        kind = ast.ClassDef if isinstance(value, type) else ast.FunctionDef
        found = [
            node
            for node in ast.walk(file.tree)
            if isinstance(node, kind)
            and node.name == value.__name__
            and (not lines or all(first_line(node) <= line <= (node.end_lineno or 0) for line in lines))
        ]
        if len(found) != 1 or not value.__name__.isidentifier() or keyword.iskeyword(value.__name__):
            self.problems.append(f"the definition of {value.__qualname__} cannot be found")
            return None
        node, name = found[0], value.__name__
        closure = closure_of(value)
        if isinstance(value, type):
            closure |= {base.__name__: base for base in value.__bases__ if "<locals>" in base.__qualname__}
        file.done.add(name)
        self._local[id(value)] = file, name
        self._collect_statement(file, node, value, closure)
        return file, name

    def _collect_lambda(self, file: File, value: types.FunctionType) -> tuple[File, str] | None:
        """Collects a lambda, if it is the only one on its line."""
        line = code_objects.first_line(value)
        found = [node for node in ast.walk(file.tree) if isinstance(node, ast.Lambda) and node.lineno == line]
        if len(found) != 1:
            self.problems.append(f"the lambda on line {line} cannot be told from others")
            return None
        name = f"lambda_{len(self._local) + 1}"
        self._local[id(value)] = file, name
        text = ast.get_source_segment("".join(file.lines), found[0]) or ""
        file.bound.append(Bound(file.tree.body[-1].end_lineno or 0, name, text=f"({text})" if "\n" in text else text))
        self._scan(file, [ast.Expr(found[0], lineno=1, col_offset=0)], closure_of(value))
        return file, name

    def _collect_registrations(self, file: File | None) -> None:
        for node in file.tree.body if file is not None else ():
            if file is not None and node not in file.statements and registers(file, node, self._operators):
                self._collect_statement(file, node)


def _use(file: File, other: File) -> None:
    if other is not file and other not in file.uses:
        file.uses.append(other)


def _imports_users_module(file: File, node: ast.stmt) -> bool:
    """Whether a compound statement imports a module of the user, which the script does not have."""
    if isinstance(node, IMPORTS | DEFINITIONS):
        return False
    inner = (each for each in ast.walk(node) if isinstance(each, IMPORTS))
    return any(users_module(name) is not None for each in inner for name in imported_modules(each, file.namespace))


def _is_arithmetic(file: File, node: ast.stmt) -> bool:
    """Whether all functions that a statement calls compute the same anywhere, and read no files."""
    called = [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
    if any(word in syntax.last_name(each) for each in called for word in _READING):
        return False
    roots = [file.namespace.get(root_name(each), getattr(builtins, root_name(each), None)) for each in called]
    return all(root in (int, float, tuple, list, dict, set, range) or _is_arithmetic_module(root) for root in roots)


def _is_arithmetic_module(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and value.__name__ in ("torch", "math", "numpy")
