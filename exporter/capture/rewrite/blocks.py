"""Moves the user's statements into a new function: the text of its body, and its call."""

from __future__ import annotations

import ast
import dataclasses
import itertools
from collections.abc import Collection, Iterator, Sequence

from onnxplain.diagnostics import Region, line_text
from onnxplain.source import syntax

from . import scope as scopes
from .scope import Scope

_LINE_LENGTH = 100
_OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}


_KEEPS = frozenset({"add", "append", "extend", "insert", "setdefault"})
"""Methods of containers that keep what they are given."""


@dataclasses.dataclass(frozen=True)
class Rewrite:
    """A replacement of source text.

    Attributes:
        region: The text to replace.
        code: The new text.
        exact: Whether the new text does the same for all inputs.
    """

    region: Region
    code: str
    exact: bool = True


def written_out(scope: Scope, statement: ast.AugAssign) -> str:
    """The value that `x += y` gives to `x`, as an expression that does not change the old `x`."""
    value = scope.text(statement.value)
    return f"{scope.text(statement.target)} {_OPERATORS[type(statement.op)]} {value if _is_atom(statement.value) else f'({value})'}"


def _written_out_in_place(scope: Scope, statement: ast.AugAssign) -> Iterator[Rewrite]:
    """As `written_out`, as replacements beside the value, so that parts of the value may be replaced as well."""
    target, value, whole = scope.region(statement.target), scope.region(statement.value), scope.region(statement)
    line = target.last_line
    text = line_text(scope.file, line)
    after = text[text.index("=", target.end_offset) + 1 :].lstrip()
    end = len(text) - len(after) + 1
    name = f" = {scope.text(statement.target)} {_OPERATORS[type(statement.op)]} "
    region = Region(line, target.end_column, line, end)
    # NOTE: parentheses around the value are not part of it.
    if _is_atom(statement.value) or (value.line, value.column) != (line, end):
        yield Rewrite(region, name)
    else:
        yield Rewrite(region, f"{name}(")
        yield Rewrite(Region(whole.last_line, whole.end_column, whole.last_line, whole.end_column), ")")


def _is_atom(value: ast.expr) -> bool:
    return isinstance(value, ast.Name | ast.Constant | ast.Call | ast.Attribute | ast.Subscript)


def is_in_place(method: str) -> bool:
    """Whether a method of a tensor changes it, by torch's rule for names: `index_add_` does."""
    return method.endswith("_") and not method.endswith("__")


def changes_others(scope: Scope, statements: Sequence[ast.stmt]) -> bool:
    """Whether a change in place in `statements` may be of a tensor that the function did not make, or that has another name."""
    targets, renewed = set[str](), set[str]()
    for statement in statements:
        targets |= _changed_in_place(scope, [statement]) - renewed
        if isinstance(statement, ast.Assign) and not scopes.shares(statement.value):
            renewed |= {each.id for each in statement.targets if isinstance(each, ast.Name)}
    made = [node for node in _until(scope, statements) if isinstance(node, ast.Assign | ast.AnnAssign) and not _copies(scope, node)]
    shared = {name for node in made if scopes.shares(node.value) for name in scopes.stored([node])}
    # NOTE: another name, or an item of a container, may stand for the same tensor.
    others = [node.value for node in made if scopes.shares(node.value) or isinstance(node.value, ast.List | ast.Dict | ast.Set)]
    appended = [node for node in _until(scope, statements) if isinstance(node, ast.Call) and syntax.last_name(node.func) in _KEEPS]
    lent = scopes.loaded([*filter(None, others), *(each for call in appended for each in call.args if scopes.shares(each))])
    made_here = {name for node in made for name in scopes.stored([node])} - shared - lent.keys()
    return not targets <= made_here - scopes.parameters([scope.function])


def _until(scope: Scope, statements: Sequence[ast.stmt]) -> list[ast.AST]:
    """The code of the function that runs before `statements` end: without what comes after them, and after the loops around them."""
    nodes, first = list(ast.walk(scope.function)), scope.region(statements[0])
    loops = [scope.region(node) for node in nodes if isinstance(node, ast.For | ast.While)]
    ends = [scope.region(statements[-1]), *(region for region in loops if syntax.covers(region, first))]
    last = max((region.last_line, region.end_offset) for region in ends)
    return [node for node in nodes if not isinstance(node, ast.stmt | ast.expr) or (node.lineno, node.col_offset) < last]


def is_changed_later(scope: Scope, region: Region, names: Collection[str]) -> bool:
    """Whether a tensor of `names`, or one that it may share data with, changes in place after the statement at `region`.

    A rewritten statement gives tensors of these names their own data.
    """
    loops = [each for each in ast.walk(scope.function) if isinstance(each, ast.For | ast.While)]
    around = [each for each in loops if scope.region(each) != region and syntax.covers(scope.region(each), region)]
    changed = _changed_in_place(scope, [*around, *following(scope, region)])
    named = [node for node in ast.walk(scope.function) if _gives_another_name(scope, node)]
    together = [set(scopes.stored([node])) | set(scopes.loaded([node])) for node in named]
    shared, rest = set(names), together
    while near := [each for each in rest if each & shared]:
        shared = shared.union(*near)
        rest = [each for each in rest if each not in near]
    return rest != together and bool(changed & shared)


def _gives_another_name(scope: Scope, node: ast.AST) -> bool:
    match node:
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            return scopes.shares(value) and not _copies(scope, node)
        case ast.NamedExpr(value=value) | ast.withitem(context_expr=value):
            return scopes.shares(value)
    return False


def _changed_in_place(scope: Scope, statements: Sequence[ast.stmt]) -> set[str]:
    """The names of what changes in place in `statements`, or whose views do."""
    found: set[str] = set()
    for node in (node for root in statements for node in ast.walk(root)):
        match node:
            case ast.AugAssign(target=ast.Name(id=name)):
                found |= {name} - scope.numbers
            case ast.Subscript(value=changed, ctx=ast.Store()):
                found |= set(scopes.loaded([changed])) if scopes.shares(changed) else set()
            case ast.Call(func=ast.Attribute(value=changed, attr=method)) if is_in_place(method) and scopes.shares(changed):
                found |= set(scopes.loaded([changed]))
    return found


def _copies(scope: Scope, statement: ast.Assign | ast.AnnAssign) -> bool:
    """Whether `statement` sets items of a tensor, which copies a value and does not give it another name."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    items = [each.value for each in targets if isinstance(each, ast.Subscript)]
    return len(items) == len(targets) and all(isinstance(each, ast.Name) and each.id in (scope.tensors or ()) for each in items)


def body(scope: Scope, statements: Sequence[ast.stmt], indent: int, replaced: Sequence[Rewrite] = ()) -> str:
    """The text of `statements` with this indentation, with in-place operators written out, results copied, and `replaced` applied."""
    # NOTE: statements after an `if` have less indentation than those within it.
    parts = [list(part) for _, part in itertools.groupby(statements, key=lambda each: each.col_offset)]
    return ("\n" + " " * indent).join(_part(scope, part, indent, replaced) for part in parts)


def _part(scope: Scope, statements: Sequence[ast.stmt], indent: int, replaced: Sequence[Rewrite]) -> str:
    start, end = scope.region(statements[0]), scope.region(statements[-1])
    region = Region(start.line, start.column, end.last_line, end.end_column)
    changes = [*replaced, *(each for statement in statements for each in _changes(scope, statement, replaced))]
    changes = [each for each in changes if start.line <= each.region.line <= end.last_line]
    text = spliced(syntax.source(scope.file), region, changes)
    old, new = " " * start.offset, " " * indent
    return "\n".join((new + line.removeprefix(old)) if number and line.strip() else line for number, line in enumerate(text.split("\n")))


def spliced(source: str, region: Region, changes: Sequence[Rewrite]) -> str:
    """The text of `region` in `source` with `changes`."""
    starts = line_starts(source)
    first, last = offsets(starts, region)
    text = source
    for change in sorted(changes, key=lambda each: offsets(starts, each.region), reverse=True):
        start, end = offsets(starts, change.region)
        text, last = text[:start] + change.code + text[end:], last + len(change.code) - (end - start)
    return text[first:last]


def line_starts(source: str) -> list[int]:
    """Where the lines of `source` begin, and where it ends."""
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def offsets(starts: Sequence[int], region: Region) -> tuple[int, int]:
    """Where `region` begins and ends in a text whose lines begin at `starts`."""
    return starts[region.line - 1] + region.offset, starts[region.last_line - 1] + region.end_offset


def function(name: str, parameters: Sequence[str], lines: Sequence[str], indent: int) -> str:
    """The definition of a function with this indentation, and that of what follows."""
    start = "\n" + " " * (indent + 4)
    return f"def {name}({', '.join(parameters)}):{start}{start.join(lines)}\n\n" + " " * indent


def call(head: str, function: str, arguments: Sequence[str], indent: int) -> str:
    """The call on one line if it fits behind this indentation, or else with a line for each argument."""
    start = " " * indent
    short = f"{head}{function}({', '.join(arguments)})"
    if indent + len(short) <= _LINE_LENGTH:
        return short
    lines = "".join(f"{start}    {argument},\n" for argument in arguments)
    return f"{head}{function}(\n{lines}{start})"


def targets(names: Sequence[str]) -> str:
    """The names to which a call's results are assigned."""
    return ", ".join(names) if len(names) > 1 else tuple_of(names)


def tuple_of(parts: Sequence[str]) -> str:
    """A tuple with parentheses."""
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


def result(scope: Scope, statements: Sequence[ast.stmt], name: str) -> str | None:
    """`name` after `statements`, as a result that shares its data with no other tensor; None if it may not be a valid result."""
    values = [node for root in statements for node in ast.walk(root) if isinstance(node, ast.Assign | ast.AnnAssign)]
    values = [node for node in values if name in scopes.stored([node])]
    if any(isinstance(node.value, ast.Constant) and type(node.value.value) is not int for node in values):
        return None
    if name in scope.numbers or any(isinstance(node.value, ast.Constant) for node in values):
        return name
    kept = not scopes.sets(statements, name)
    if kept and scope.tensors is not None and name not in scope.tensors:
        return None
    return f"{name}.clone()" if kept or any(scopes.shares(node.value) for node in values) else name


def target_outlives(scope: Scope, loop: ast.For, name: str) -> bool:
    """Whether the function may read `name`, a target of `loop`, after the loop. The loop itself sets it before it reads it."""
    region, own = scope.region(loop), {id(node) for node in ast.walk(loop)}
    around = [each for each in ast.walk(scope.function) if isinstance(each, ast.For | ast.While) and loop in ast.walk(each)]
    names = (node for each in around for node in ast.walk(each) if isinstance(node, ast.Name) and id(node) not in own)
    return any(node.id == name for node in names) or scopes.read_first(following(scope, region), name)


def read_after(scope: Scope, region: Region, name: str) -> bool:
    """Whether the function may read what `name` holds at the end of the statement at `region`."""
    loops = [each for each in ast.walk(scope.function) if isinstance(each, ast.For | ast.While)]
    around = [each for each in loops if scope.region(each) != region and syntax.covers(scope.region(each), region)]
    # NOTE: the next iteration may read it before it sets it.
    next_steps = [[*([ast.Expr(each.test)] if isinstance(each, ast.While) else []), *each.body] for each in around]
    return any(scopes.read_first(steps, name) for steps in [*next_steps, following(scope, region)])


def following(scope: Scope, region: Region) -> list[ast.stmt]:
    """The statements that come after `region`, in its block and then in the blocks around it."""
    blocks = [
        (block, number)
        for node in ast.walk(scope.function)
        for block in scopes.bodies(node)
        for number, each in enumerate(block)
        if syntax.covers(scope.region(each), region)
    ]
    # NOTE: `ast.walk` comes to outer blocks first.
    return [statement for block, number in reversed(blocks) for statement in block[number + 1 :]]


def _changes(scope: Scope, node: ast.AST, replaced: Sequence[Rewrite]) -> Iterator[Rewrite]:
    if isinstance(node, ast.stmt):
        region = scope.region(node)
        if any(each.region.line <= region.line and region.last_line <= each.region.last_line for each in replaced):
            return
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            yield from _written_out_in_place(scope, node)
        elif isinstance(node, ast.Return) and node.value is not None:
            yield Rewrite(scope.region(node.value), scopes.fresh(scope.file, node.value) or scope.text(node.value))
    for child in ast.iter_child_nodes(node):
        yield from _changes(scope, child, replaced)


def on_device_of(tensor: str) -> str:
    """The argument that makes a tensor on the device of another one; empty if that is no name, whose code would run once more."""
    return f", device={tensor}.device" if all(part.isidentifier() for part in tensor.split(".")) else ""
