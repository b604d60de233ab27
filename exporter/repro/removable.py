"""What may be taken out of a script: statements, items between brackets, and whatever else makes it shorter."""

from __future__ import annotations

import ast
import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Sequence

from onnxplain.source import syntax

from .cuts import Block, Brackets, Cut, Parsed
from .statements import IMPORTS, first_line, names_bound, root_name

_KEPT = re.compile(r"import (torch|onnxplain)\n|torch\.manual_seed\(|(model|args|kwargs) = |model\.(eval|train)\(\)|onnxplain\.export\(")
"""The beginnings of the statements that each script needs."""
_OWN = "torch.manual_seed("
"""The beginning of the first of the statements that make the model and its inputs. Code of the user comes before them."""
_COMPOUND = ast.If | ast.For | ast.While | ast.With | ast.Try
_HELPERS = ("make", "random")
"""The functions of the script itself, which stay whole."""
_NUMBERED = ("Sequential", "ModuleList", "ParameterList")
"""Containers of torch whose constructors take a sequence."""


@dataclasses.dataclass(frozen=True)
class Part:
    """One of several neighbours: a statement of a block, or an item between brackets."""

    group: Block | Brackets
    number: int


def cuts_of(parts: Iterable[Part]) -> list[Cut]:
    """The cuts that remove parts."""
    groups: dict[Block | Brackets, list[int]] = {}
    for part in parts:
        groups.setdefault(part.group, []).append(part.number)
    return [cut for group, gone in groups.items() for cut in group.without(sorted(gone))]


class Removable:
    """Finds what may be taken out of a script.

    Args:
        parsed: The script.
        blamed: The offset of the line that the finding is at, which stays; None if it is not in the script.

    Attributes:
        parsed: As above.
    """

    def __init__(self, parsed: Parsed, blamed: int | None) -> None:
        self.parsed = parsed
        self._blamed = blamed
        body = parsed.tree.body
        self._fixed = {"self", *(name for node in body if isinstance(node, IMPORTS) for name in names_bound(node))}
        self._helpers = [parsed.span(node) for node in body if isinstance(node, ast.FunctionDef) and node.name in _HELPERS]
        self._own = next((parsed.span(node)[0] for node in body if parsed.code(node).startswith(_OWN)), len(parsed.text))

    @property
    def depths(self) -> int:
        """How deep statements are within each other."""
        return 1 + max(depth for _, _, depth in self._blocks())

    def statements(self, depth: int) -> list[Part]:
        """The statements that are within so many others, but not those around the blamed one."""
        return [
            Part(block, number)
            for block, nodes, within in self._blocks()
            for number, node in enumerate(nodes)
            if within == depth and not self._stays(node)
        ]

    def unmentioned(self) -> list[Part]:
        """Definitions, assignments and attributes whose names the rest of the script does not mention."""
        mentioned = self._mentioned
        parts = [
            Part(block, number)
            for block, nodes, _ in self._blocks()
            for number, node in enumerate(nodes)
            if not self._stays(node) and (name := _name_of(node, nodes is self.parsed.tree.body)) and name not in mentioned
        ]
        for dictionary in self._states():
            brackets = self._all_of(dictionary)
            keys = [key.value if isinstance(key, ast.Constant) else None for key in dictionary.keys]
            parts += [Part(brackets, number) for number, key in enumerate(keys) if key is not None and key not in mentioned]
        return parts

    def unused_imports(self) -> list[Part]:
        """Imports whose names the rest of the script does not mention."""
        mentioned = self._mentioned
        return [
            Part(block, number)
            for block, nodes, _ in self._blocks()
            for number, node in enumerate(nodes)
            if isinstance(node, IMPORTS)
            and not self._stays(node)
            and not any((alias.asname or alias.name.partition(".")[0]) in mentioned for alias in node.names)
        ]

    def items(self) -> list[Part]:
        """Items of lists, tuples and dictionaries, modules of containers, and keywords of the calls that make model and inputs."""
        parts: list[Part] = []
        states = {id(state) for state in self._states()}
        for node in self._expressions():
            for brackets, kept in self._bracketed(node, states):
                parts += [Part(brackets, number) for number in range(len(brackets.items)) if number not in kept]
        return parts

    def unwrapped(self) -> Iterator[list[Cut]]:
        """For each statement with a body: the cuts that leave only its body, and those that leave only its `else`."""
        for node in ast.walk(self.parsed.tree):
            if isinstance(node, _COMPOUND) and not self._is_blamed(node) and self.parsed.span(node)[0] < self._own:
                for body in filter(None, (node.body, getattr(node, "orelse", []))):
                    yield from self._only(node, body)

    def hoisted(self) -> Iterator[list[Cut]]:
        """For each call and each operator in the user's functions: the cuts that leave only one of its arguments."""
        for node in self._expressions():
            if isinstance(node, ast.expr) and self.parsed.span(node)[0] < self._own:
                for argument in self._arguments(node):
                    (start, end), (first, last) = self.parsed.span(node), self.parsed.span(argument)
                    yield [Cut(start, first), Cut(last, end)]

    def fewer(self) -> Iterator[list[Cut]]:
        """For each `range` of a fixed length: the cut that makes it a single step."""
        for node in self._expressions():
            match node:
                case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(count)) as length]) if count > 1:
                    yield [Cut(*self.parsed.span(length), "1")]

    def inputs(self) -> Iterator[list[Cut]]:
        """For each example input: the cuts that remove it, the parameter that takes it, and its entry in `dynamic_shapes`."""
        # NOTE: an input that the function reads stays, because the script would read a name that it does not bind.
        model, own = self._forward(), {node.targets[0].id: node.value for node in self._assigned()}  # type: ignore[attr-defined]  # by `_assigned`
        parameters = [] if model is None else [each for each in (*model.args.posonlyargs, *model.args.args) if each.arg != "self"]
        shapes = self._shapes()
        positional = own.get("args")
        if isinstance(positional, ast.Tuple):
            for number in range(len(positional.elts)):
                names = {parameters[number].arg} if number < len(parameters) else set()
                yield [
                    *self._without(positional, number),
                    *self._without_parameters(model, names),
                    *self._without_shape(shapes, number, names),
                ]
        named = own.get("kwargs")
        if isinstance(named, ast.Dict):
            for number, key in enumerate(named.keys):
                names = {key.value} if isinstance(key, ast.Constant) and isinstance(key.value, str) else set()
                yield [*self._without(named, number), *self._without_parameters(model, names), *self._without_shape(shapes, None, names)]

    def _stays(self, node: ast.stmt) -> bool:
        start, end = self.parsed.span(node)
        is_around = self._blamed is not None and start <= self._blamed < end
        is_needed = _attribute_of(node) in self._mentioned and start >= self._own
        is_helpers = any(begin < start < finish for begin, finish in self._helpers)
        return is_around or is_needed or is_helpers or bool(_KEPT.match(self.parsed.text, start)) or isinstance(node, ast.Pass)

    def _is_blamed(self, node: ast.stmt) -> bool:
        """Whether the blamed statement is `node`, and none in its body."""
        start, end = self.parsed.span(node)
        body = getattr(node, "body", None)
        return self._blamed is not None and start <= self._blamed < (self.parsed.span(body[0])[0] if body else end)

    def _blocks(self) -> Iterator[tuple[Block, Sequence[ast.stmt], int]]:
        """The blocks of statements, and how many others they are in. An `else` is a block of one statement as well."""
        waiting: list[tuple[ast.AST, int]] = [(self.parsed.tree, 0)]
        while waiting:
            node, depth = waiting.pop(0)
            for name in ("body", "orelse", "finalbody"):
                nodes = getattr(node, name, None)
                if not isinstance(nodes, list) or not nodes:
                    continue
                waiting += ((each, depth + 1) for each in nodes)
                if name == "orelse" and isinstance(node, _COMPOUND):
                    yield Block(((self._line_after(node.body[-1]), self._line_after(nodes[-1]), True),), ""), nodes[:1], depth
                if not self.parsed.text.startswith("elif", self.parsed.span(nodes[0])[0]):
                    yield self._block(nodes), nodes, depth
            waiting += ((each, depth) for each in (*getattr(node, "handlers", []), *getattr(node, "cases", [])))

    def _block(self, nodes: Sequence[ast.stmt]) -> Block:
        parsed = self.parsed
        start = parsed.start_of_line(first_line(nodes[0]))
        margin = parsed.text[start : parsed.first_of_line(first_line(nodes[0]))]
        return Block(tuple(self._lines(node, margin) for node in nodes), margin)

    def _lines(self, node: ast.stmt, margin: str) -> tuple[int, int, bool]:
        parsed, (begin, finish) = self.parsed, self.parsed.span(node)
        line = first_line(node)
        after = parsed.text[finish : parsed.start_of_line((node.end_lineno or line) + 1)].strip()
        if parsed.text[parsed.start_of_line(node.lineno) : begin].strip() or (after and not after.startswith("#")):
            return begin, finish, False
        while margin and parsed.text.startswith("#", parsed.first_of_line(line - 1)):
            line -= 1
        return parsed.start_of_line(line), self._line_after(node), True

    def _line_after(self, node: ast.stmt) -> int:
        return min(self.parsed.start_of_line((node.end_lineno or node.lineno) + 1), len(self.parsed.text))

    def _only(self, node: ast.stmt, body: Sequence[ast.stmt]) -> Iterator[list[Cut]]:
        """The cuts that leave only a body, with the indentation of the statement."""
        parsed = self.parsed
        start, first = parsed.start_of_line(node.lineno), parsed.start_of_line(first_line(body[0]))
        indentation = parsed.first_of_line(first_line(body[0])) - first - (parsed.first_of_line(node.lineno) - start)
        last = body[-1].end_lineno or body[-1].lineno
        if indentation <= 0:
            return
        lines = range(first_line(body[0]), last + 1)
        margins = [Cut(at := parsed.start_of_line(line), min(at + indentation, parsed.first_of_line(line))) for line in lines]
        yield [Cut(start, first), *margins, Cut(self._line_after(body[-1]), self._line_after(node))]

    def _expressions(self) -> Iterator[ast.AST]:
        """All nodes outside of the blamed statement, unless that is the call of the export."""
        waiting: list[ast.AST] = [self.parsed.tree]
        while waiting:
            node = waiting.pop(0)
            if isinstance(node, ast.stmt) and self._is_blamed(node) and self.parsed.span(node)[0] < self._own:
                # NOTE: what is in its body are other statements.
                waiting += getattr(node, "body", []) + getattr(node, "orelse", [])
                continue
            yield node
            waiting += ast.iter_child_nodes(node)

    def _bracketed(self, node: ast.AST, states: set[int]) -> Iterator[tuple[Brackets, set[int]]]:
        """The items between the brackets of an expression, and the numbers of those that stay."""
        if (
            isinstance(node, ast.List | ast.Tuple)
            and self._is_enclosed(node)
            and not all(isinstance(each, ast.Constant) for each in node.elts)
        ):
            yield self._brackets(node, [(each, each) for each in node.elts]), set()
        elif isinstance(node, ast.Dict) and node.keys and id(node) not in states:
            yield self._brackets(node, [(key or value, value) for key, value in zip(node.keys, node.values, strict=True)]), set()
        elif isinstance(node, ast.Call):
            given = sorted([*node.args, *node.keywords], key=self.parsed.span)
            is_row = syntax.last_name(node.func) in _NUMBERED
            is_own = self.parsed.span(node)[0] >= self._own
            if given and (is_row or (is_own and node.keywords)):
                kept = {number for number, each in enumerate(given) if not (isinstance(each, ast.keyword) or is_row)}
                yield self._brackets(node, [(each, each) for each in given]), kept

    def _is_enclosed(self, node: ast.List | ast.Tuple) -> bool:
        """Whether items have brackets around them, and the expression is no target."""
        start, end = self.parsed.span(node)
        has_items = bool(node.elts) and start < self.parsed.span(node.elts[0])[0] and self.parsed.text[end - 1] in ")]"
        return has_items and isinstance(node.ctx, ast.Load)

    def _brackets(self, node: ast.expr, items: Sequence[tuple[ast.AST | None, ast.AST]]) -> Brackets:
        start, end = self.parsed.span(node)
        if isinstance(node, ast.Call):
            start = self.parsed.text.index("(", self.parsed.span(node.func)[1])
        spans = tuple((self.parsed.span(first or last)[0], self.parsed.span(last)[1]) for first, last in items)
        return Brackets(start + 1, end - 1, spans, isinstance(node, ast.Tuple))

    def _arguments(self, node: ast.expr) -> Iterator[ast.expr]:
        """What may stand for a call or an operation: its first two arguments, or the object of the method."""
        found: list[ast.expr] = []
        match node:
            case ast.Call(func=ast.Attribute(value=value), args=given) if root_name(value) not in self._fixed:
                found = [value, *given[:1]]
            case ast.Call(args=given):
                found = given[:2]
            case ast.BinOp(left=left, right=right):
                found = [left, right]
            case ast.IfExp(body=first, orelse=second):
                found = [first, second]
        yield from (each for each in found if not isinstance(each, ast.Starred | ast.Constant))

    def _states(self) -> Iterator[ast.Dict]:
        """The states that `make` gives to the objects that it makes."""
        for node in ast.walk(self.parsed.tree):
            match node:
                case ast.Call(func=ast.Name(id="make"), args=[_, ast.Dict(keys=[_, *_]) as state]):
                    yield state

    @functools.cached_property
    def _mentioned(self) -> set[str]:
        """The names that the script reads, and those in its strings, but for the keys of states."""
        keys = {id(key) for state in self._states() for key in state.keys}
        found: set[str] = set()
        for node in ast.walk(self.parsed.tree):
            match node:
                case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name, ctx=ast.Load()):
                    found.add(name)
                case ast.Constant(value=str(text)) if id(node) not in keys:
                    found.update(re.findall(r"\w+", text))
        return found

    def _assigned(self) -> Iterator[ast.Assign]:
        """The statements that bind the model and its inputs."""
        for node in ast.walk(self.parsed.tree):
            match node:
                case ast.Assign(targets=[ast.Name(id="model" | "args" | "kwargs")]) if self.parsed.span(node)[0] >= self._own:
                    yield node

    def _forward(self) -> ast.FunctionDef | None:
        """The function that takes the inputs, if it is in the script."""
        made = next((node.value for node in self._assigned() if self.parsed.code(node).startswith("model = ")), None)
        match made:
            case ast.Call(func=ast.Name(id="make"), args=[ast.Name(id=name), *_]) | ast.Call(func=ast.Name(id=name)) | ast.Name(id=name):
                pass
            case _:
                return None
        for node in ast.walk(self.parsed.tree):
            match node:
                case ast.FunctionDef() if node.name == name:
                    return node
                case ast.ClassDef() if node.name == name:
                    return next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "forward"), None)
        return None

    def _shapes(self) -> ast.expr | None:
        calls = [node for node in ast.walk(self.parsed.tree) if isinstance(node, ast.Call) and syntax.last_name(node.func) == "export"]
        return next((each.value for call in calls for each in call.keywords if each.arg == "dynamic_shapes"), None)

    def _without(self, node: ast.Tuple | ast.Dict, number: int) -> list[Cut]:
        return self._all_of(node).without([number])

    def _all_of(self, node: ast.Tuple | ast.Dict) -> Brackets:
        if isinstance(node, ast.Tuple):
            return self._brackets(node, [(each, each) for each in node.elts])
        return self._brackets(node, [*zip(node.keys, node.values, strict=True)])

    def _without_parameters(self, function: ast.FunctionDef | None, names: set[str]) -> list[Cut]:
        if function is None:
            return []
        given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        defaults = [*function.args.defaults, *(each for each in function.args.kw_defaults if each is not None)]
        spans = []
        for each in given:
            start, end = self.parsed.span(each)
            following = min(
                (self.parsed.span(other)[0] for other in given if self.parsed.span(other)[0] > start), default=len(self.parsed.text)
            )
            own = [self.parsed.span(default)[1] for default in defaults if end <= self.parsed.span(default)[0] < following]
            spans.append((start, own[0] if own else end))
        gone = [number for number, each in enumerate(given) if each.arg in names]
        brackets = Brackets(spans[0][0], spans[-1][1], tuple(spans)) if spans else None
        return brackets.without(gone) if brackets is not None and gone else []

    def _without_shape(self, shapes: ast.expr | None, number: int | None, names: set[str]) -> list[Cut]:
        if isinstance(shapes, ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in shapes.keys]
            found = [at for at, key in enumerate(keys) if key in names]
            return self._without(shapes, found[0]) if found else []
        if isinstance(shapes, ast.Tuple) and number is not None and number < len(shapes.elts):
            return self._without(shapes, number)
        return []


def _attribute_of(node: ast.stmt) -> str | None:
    """The attribute that a statement sets."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr=name)]):
            return name
    return None


def _name_of(node: ast.stmt, top: bool) -> str:
    """The name that a statement binds; empty if it may do something else."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return "" if not top and (name == "forward" or name.startswith("__")) else name
        case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)]) if top:
            return name
    return ""
