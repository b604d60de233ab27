"""The script: the user's sources, statements that make the model and its inputs, and the call of the export."""

from __future__ import annotations

import pathlib
import re
import textwrap
from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from onnxplain.diagnostics import Diagnostic, Log, privacy_of, visible
from onnxplain.request import Request
from onnxplain.torch_internals import modules, pytree
from onnxplain.torch_internals.fake_tensors import MODE as FAKE_MODE
from onnxplain.torch_internals.fake_tensors import is_fake
from onnxplain.torch_internals.operators import OpOverload, OpOverloadPacket

from . import values
from .export_call import keywords_of
from .expression import INDEX, Expression, Items, Quoted, Ref, Text, Unknown, call, literal, parts, render
from .live_objects import is_users, kind_of
from .references import public_name
from .source_files import Bound, File
from .sources import Sources
from .statements import lines_inside_strings, names_bound
from .strings import placeholders, shown_by, with_comments, without

_OWN = ("torch", "onnxplain", "make", "random", "model", "args", "kwargs")
"""The names that the script itself binds."""
_ROUNDS = 10
"""How often the model is described at most, until the sources that it needs mention no further attribute."""
_SHORT = 60
"""The longest expression that is repeated instead of becoming a function, in characters."""

_HELPERS = {
    "make": '''\
def make(cls, state):
    """An object of `cls` with `state`, made without `__init__`: what that was called with is not known."""
    made = cls.__new__(cls)
    is_module = isinstance(made, torch.nn.Module)
    if is_module:
        torch.nn.Module.__init__(made)
    for name, value in state.items():
        if is_module and isinstance(value, (torch.nn.Parameter, torch.nn.Buffer, torch.nn.Module)):
            torch.nn.Module.__setattr__(made, name, value)
        elif hasattr(made, "__dict__"):
            made.__dict__[name] = value
        else:
            object.__setattr__(made, name, value)
    return made
''',
    "random": '''\
def random(*shape, dtype=torch.float32, stride=None, device="cpu"):
    """Numbers from 0 to 1 in place of data."""
    stride = stride or torch.empty(shape, device="meta").stride()
    count = 0 if 0 in shape else 1 + sum((size - 1) * step for size, step in zip(shape, stride))
    return torch.rand(count).to(dtype).to(device).as_strided(shape, stride)
''',
}


def failing(log: Log) -> Diagnostic:
    """The first finding that fails an export."""
    return next(finding for finding in log.findings if finding.fails)


class Script:
    """Collects what a script needs to fail as an export did.

    As in a log, the model's strings, comments and docstrings name no folders of the machine and no secrets of the environment.

    Args:
        request: The export. Its model is no ExportedProgram, which has no source.
        log: The log of the export.
        translations: The `custom_translation_table` of the export.
        try_fixes: Whether the export might try fixes.

    Attributes:
        quotes_strings: Whether the text has strings of the model and the inputs instead of placeholders.

    Raises:
        Unknown: There is no expression for the model.
    """

    def __init__(self, request: Request, log: Log, translations: Mapping[Any, Any], *, try_fixes: bool) -> None:
        self._request = request
        self._log = log
        self._sources = Sources()
        self._left_out: dict[str, None] = {}
        self._imports = {"import onnxplain", "import torch"}
        self._modules: dict[int, str] = {}
        self._factories: dict[Expression, str] = {}
        self._bound: dict[int, Expression] = {}
        self._repeated = _repeated(request)
        self._shared = {key: Text(f"shared_{number}") for number, key in enumerate(self._repeated, 1)}
        self.quotes_strings = False
        self._privacy = privacy_of(log.folder or pathlib.Path.cwd())
        self._args = self._input(request.args, "args")
        self._keywords = keywords_of(request, log, failing(log).stage, translations, self._input, self._data, try_fixes=try_fixes)
        self._model, self._afterwards = self._collected()
        roots = (self._args, *self._keywords.values(), self._model, *self._afterwards, *self._bound.values())
        self._strings = [each for root in roots for each in parts(root) if isinstance(each, Quoted)]
        self._placeholders = placeholders(self._strings)
        # NOTE: a string that the user's code contains tells nothing new.
        shown = shown_by(self.body())
        self._placeholders = placeholders(each for each in self._strings if each.value not in shown)

    @property
    def places(self) -> list[str]:
        """The places of the strings that have placeholders unless the script quotes them."""
        return list(dict.fromkeys(each.place for each in self._strings if each.value in self._placeholders))

    def body(self) -> str:
        """The script without the comments at its top."""
        files = self._sources.in_order()
        taken = self._separated(files)
        self._name_factories(taken)
        sections = [section for file in files if (section := self._section(file))]
        model = self._statements()
        factories = [f"def {name}():\n    return {self._inside(each)}\n" for each, name in self._factories.items()]
        body = "\n\n".join([*sections, *factories, model])
        helpers = [source for name, source in _HELPERS.items() if re.search(rf"\b{name}\(", body)]
        future = "from __future__ import annotations\n\n" if any(file.flags for file in files) else ""
        imports = "".join(f"{line}\n" for line in sorted(self._imports, key=lambda line: (line.startswith("from"), line)))
        return with_comments("\n\n".join([f"{future}{imports}", *helpers, body]), self._private)

    def text(self, body: str, remark: str = "", *, is_shorter: bool = False) -> str:
        """The script.

        Args:
            body: What `body` returned, or what is left of it.
            remark: A comment for the top.
            is_shorter: Whether something was taken out of the body.
        """
        return f"{self._head(body, remark, is_shorter=is_shorter)}\n{body}"

    def _head(self, body: str, remark: str, *, is_shorter: bool) -> str:
        """The comments at the top. Texts from the model have no control characters, so that they cannot end a comment."""
        versions, finding = dict(self._log.environment), failing(self._log)
        lines = [
            f"{finding.rule.id}: {self._private(finding.message)}",
            f"Found by onnxplain {versions.get('onnxplain')} with torch {versions.get('torch')}, Python {versions.get('python')}.",
            "Run it with `python`: it needs no other file. Weights and inputs are random numbers; read the rest before you share it.",
            *(["Whatever the failure does not need was taken out of the model."] if is_shorter else []),
            *self._about_strings(body),
            *(f"Left out: {self._private(each)}" for each in list(self._left_out)[:5]),
            *(f"NOTE: {self._private(each)}" for each in (*self._sources.problems, remark) if each),
        ]
        return "".join(f"# {visible(line)}\n" for line in lines)

    def _about_strings(self, body: str) -> list[str]:
        if self.quotes_strings and not self._placeholders:
            return []
        if self.quotes_strings:
            return [f"It needs, and quotes, the strings in {', '.join(self.places)}."]
        used = [each for each in self._placeholders.values() if repr(each) in body]
        return [f"{used[0]!r} and the like are placeholders for strings of the model and the inputs."] if used else []

    def _private(self, text: str) -> str:
        """A comment without what only the user's machine or data has."""
        text = self._privacy.text(text)
        return text if self.quotes_strings else without(self._placeholders, text)

    def _collected(self) -> tuple[Expression, tuple[Expression, ...]]:
        """The expression that makes the model, and the statements that follow it. Collects the sources that they need.

        The sources tell which attributes the code uses, and the values of these attributes may need further sources.
        """
        options = [self._args, *self._keywords.values()]
        noted = dict(self._left_out)
        found: tuple[Expression, tuple[Expression, ...]] | None = None
        for _ in range(_ROUNDS):
            before, self._left_out = found, dict(noted)
            found = self._described()
            self._need([found[0], *found[1], *options])
            for file in list(self._sources.files.values()):
                for bound in (each for each in list(file.bound) if not each.members and not each.text):
                    if id(bound) not in self._bound:
                        self._bound[id(bound)] = self._data(bound.value, bound.name, owner=object)
                        self._need([self._bound[id(bound)]])
            self._sources.settle()
            if found == before:
                break
        assert found is not None
        return found

    def _described(self) -> tuple[Expression, tuple[Expression, ...]]:
        model = self._request.model
        if not isinstance(model, torch.nn.Module):
            return self._data(model, "the model", owner=object), ()
        described = values.described(model, self._sources.wants)
        self._left_out.update(dict.fromkeys(described.left_out))
        return described.expression, described.afterwards

    def _need(self, expressions: list[Expression]) -> None:
        for part in (part for each in expressions for part in parts(each)):
            if isinstance(part, Ref) and is_users(part.value):
                self._sources.need(part.value)

    def _data(self, value: Any, place: str, *, owner: type | None = None) -> Expression:
        try:
            return values.data(value, place, owner=owner)
        except Unknown as unknown:
            self._left_out[str(unknown)] = None
            return Text("None")

    def _input(self, value: Any, place: str) -> Expression:
        try:
            return values.example(value, self._shared, place)
        except Unknown as unknown:
            self._left_out[str(unknown)] = None
            return Text("None")

    def _separated(self, files: list[File]) -> set[str]:
        """Gives a separate namespace to each file that shares a name with another file or with the script; returns all names."""
        taken: dict[str, str] = dict.fromkeys((*_OWN, *(each.text for each in self._shared.values())), "")
        taken["torch"], taken["onnxplain"] = "import torch", "import onnxplain"
        for file in sorted(files, key=list(self._sources.files.values()).index):
            names = {name: file.imports.get(name, "") for name in file.names()}
            names = {name: text for name, text in names.items() if not self._is_elsewhere(file, name)}
            if any(name in taken and not (text and text == taken[name]) for name, text in names.items()):
                stem = re.sub(r"\W", "_", pathlib.Path(file.path).stem)
                wrapper = _unused(f"in_{stem}", {*taken})
                taken[wrapper] = ""
                self._modules[id(file)] = wrapper
            else:
                taken |= names
        return {*taken}

    def _is_elsewhere(self, file: File, name: str) -> bool:
        """Whether a name of `file` only stands for an object that another file has under the same name."""
        bound = [each for each in file.bound if each.name == name]
        elsewhere = all(each.alias == name and file not in each.members.values() for each in bound)
        return bool(bound) and elsewhere and not file.defines(name)

    def _section(self, file: File) -> str:
        """The part of the script that comes from one of the user's files."""
        pieces = [(node.lineno, file.text_of(node)) for node in file.statements]
        pieces += [(self._line(file, bound), text) for bound in file.bound if (text := self._binding(file, bound))]
        namespaces = self._namespaces(file)
        wrapper = self._modules.get(id(file))
        imports = sorted(line for each in file.imports.values() for line in each.split("\n"))
        if not wrapper:
            self._imports.update(imports)
        if not pieces and not namespaces:
            return ""
        texts = [text for _, text in sorted(pieces, key=lambda piece: piece[0])]
        spaced = [f"\n\n{text}\n\n" if text.startswith(("def ", "class ", "@", "async ")) else text for text in texts]
        body = re.sub(r"\n{4,}", "\n\n\n", "".join([*namespaces, *spaced])).strip("\n") + "\n"
        name = visible(pathlib.Path(file.path).name)
        if not wrapper:
            return f"# {name}\n{body}"
        self._imports.add("import types")
        inner = "".join(f"{line}\n" for line in imports) + body
        head = f"# {name}, in a function: other files use the same names\ndef {wrapper}():\n"
        return f"{head}{_indented(inner)}    return types.SimpleNamespace(**locals())\n\n\n{wrapper} = {wrapper}()\n"

    def _line(self, file: File, bound: Bound) -> int:
        """Where to bind a name: behind the definitions that its value is made with. The line of a function's variable is not known."""
        made_with = parts(self._bound[id(bound)]) if id(bound) in self._bound else ()
        needed = [self._sources.need(part.value) for part in made_with if isinstance(part, Ref) and is_users(part.value)]
        names = {found[1].partition(".")[0] for found in needed if found is not None and found[0] is file}
        return max([bound.line, *(node.end_lineno or 0 for node in file.statements if names.intersection(names_bound(node)))])

    def _binding(self, file: File, bound: Bound) -> str:
        """A statement that binds a name, because no statement that can be copied does."""
        if bound.text:
            return f"{bound.name} = {bound.text}\n"
        if not bound.members:
            return f"{bound.name} = {self._render(self._bound[id(bound)], file, len(bound.name) + 3)}\n"
        if not bound.alias:
            return ""
        target = self._qualified(bound.members[""], bound.alias, file)
        return "" if target == bound.name else f"{bound.name} = {target}\n"

    def _namespaces(self, file: File) -> list[str]:
        """Statements that bind the user's modules as namespaces, with the names that are reached through them."""
        roots: dict[str, Any] = {}
        for bound in (each for each in file.bound if each.members and not each.alias):
            inner = roots
            for part in bound.name.split("."):
                inner = inner.setdefault(part, {})
            inner |= {name: self._qualified(target, name, file) for name, target in sorted(bound.members.items())}
        if roots:
            self._imports.add("import types")
        return [f"{name} = {_namespace(members)}\n" for name, members in roots.items()]

    def _qualified(self, home: File, name: str, file: File | None) -> str:
        """The text by which the code of `file` reaches a name of `home`."""
        wrapper = self._modules.get(id(home))
        return f"{wrapper}.{name}" if wrapper and home is not file else name

    def _name(self, expression: Expression, file: File | None) -> str | None:
        if isinstance(expression, Quoted):
            return literal(self._string(expression.value)).text
        if isinstance(expression, Text):
            for module in ("functools", "types"):
                if expression.text.startswith(f"{module}."):
                    self._imports.add(f"import {module}")
            return None
        if not isinstance(expression, Ref):
            return self._factories[expression] + "()" if expression in self._factories else None
        if isinstance(expression.value, OpOverload | OpOverloadPacket):
            return f"torch.ops.{expression.value}"
        if is_users(expression.value):
            found = self._sources.need(expression.value)
            return "None" if found is None else self._qualified(*found, file) + expression.after
        public = public_name(expression.value)
        if public is None:
            self._left_out[kind_of(expression.value)] = None
            return "None"
        module, name = public
        if module == "builtins":
            return name + expression.after
        if not module.startswith("torch"):
            self._imports.add(f"import {module}")
        return f"{module}.{name}{expression.after}"

    def _string(self, value: str | bytes) -> str | bytes:
        """A string of the model or the inputs as the script has it."""
        if value not in self._placeholders:
            return value
        if not self.quotes_strings:
            return self._placeholders[value]
        if isinstance(value, str):
            return self._privacy.text(value)
        return self._privacy.text(value.decode(errors="surrogateescape")).encode(errors="surrogateescape")

    def _render(self, expression: Expression, file: File | None = None, before: int = 0) -> str:
        return render(expression, lambda each: self._name(each, file), before=before)

    def _inside(self, expression: Expression) -> str:
        """The text of an expression that a function returns: other functions are called in it, but not the function itself."""
        known = {each: name for each, name in self._factories.items() if each != expression}
        return render(expression, lambda each: f"{known[each]}()" if each in known else self._name_but(each, expression), 4, 11)

    def _name_but(self, expression: Expression, itself: Expression) -> str | None:
        return None if expression == itself else self._name(expression, None)

    def _name_factories(self, taken: set[str]) -> None:
        """Makes a function for each expression that occurs several times, the inner ones first."""
        counted: Counter[Expression] = Counter()
        seen: set[Expression] = set()
        ordered: list[Items] = []

        def visit(expression: Expression) -> None:
            counted[expression] += 1
            if expression in seen or not isinstance(expression, Items):
                return
            seen.add(expression)
            for _, item in expression.items:
                visit(item)
            ordered.append(expression)

        self._factories.clear()
        visit(self._model)
        for each in ordered:
            made = each.items[0][1] if each.head == values.MAKE else each.head
            numbered = any(part == INDEX for part in parts(each))
            if counted[each] > 1 and isinstance(made, Ref) and not numbered and len(self._render(each)) > _SHORT:
                stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W", "_", made.value.__name__)
                name = _unused(f"make_{stem.lower()}", taken)
                taken.add(name)
                self._factories[each] = name

    def _statements(self) -> str:
        """The statements that make the model and its inputs, and the call of the export."""
        made = [f"model = {self._render(self._model, before=8)}", *map(self._render, self._afterwards)]
        made += [f"{self._shared[key].text} = {self._render(values.example(tensor, {}))}" for key, tensor in self._repeated.items()]
        made.append(f"args = {self._render(self._args, before=7)}")
        keywords = dict(self._keywords)
        if "kwargs" in keywords:
            made.append(f"kwargs = {self._render(keywords['kwargs'], before=9)}")
            keywords["kwargs"] = Text("kwargs")
        if any(is_fake(each) for each in _tensors(self._request.model)):
            body = textwrap.indent("\n".join(made), "    ")
            made = [f"with {FAKE_MODE}():", body]
        exported = call(Text("onnxplain.export"), Text("model"), Text("args"), keywords=keywords)
        return "\n".join(["torch.manual_seed(0)", *made, self._render(exported)]) + "\n"


def _repeated(request: Request) -> dict[int, torch.Tensor]:
    """The tensors that are passed several times, by their ids."""
    leaves = [leaf for leaf in pytree.tree_leaves((request.args, dict(request.kwargs))) if isinstance(leaf, torch.Tensor)]
    counted = Counter(map(id, leaves))
    return {id(leaf): leaf for leaf in leaves if counted[id(leaf)] > 1}


def _namespace(members: Mapping[str, Any]) -> str:
    inner = (f"{name}={value if isinstance(value, str) else _namespace(value)}" for name, value in members.items())
    return f"types.SimpleNamespace({', '.join(inner)})"


def _tensors(model: Any) -> list[torch.Tensor]:
    return [tensor for _, tensor in modules.named_tensors(model)] if isinstance(model, torch.nn.Module) else []


def _indented(text: str) -> str:
    """`text`, indented by four spaces, except for lines that begin inside a string."""
    inside = lines_inside_strings(text)
    lines = text.splitlines(True)
    return "".join(line if number in inside or not line.strip() else f"    {line}" for number, line in enumerate(lines, 1))


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
