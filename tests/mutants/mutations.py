"""The faults: which small changes of a source file are worth a test, and the file's text with one of them."""

from __future__ import annotations

import ast
import copy
import dataclasses
import difflib
import pathlib
from collections.abc import Iterator

# NOTE: each operator has one opposite, so that a sample is not flooded with comparisons.
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_FUNCTIONS = {"all": "any", "any": "all", "max": "min", "min": "max"}


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One changed place of a source file.

    Attributes:
        path: The file.
        before: The whole file without the change.
        line: The first line of the place, from 1.
        start: Where the place begins in the file, in bytes.
        end: Where it ends.
        text: What stands there instead.
    """

    path: pathlib.Path
    before: bytes = dataclasses.field(repr=False)
    line: int
    start: int
    end: int
    text: str

    def source(self) -> str:
        """The whole file with the change."""
        return (self.before[: self.start] + self.text.encode() + self.before[self.end :]).decode()

    def statement(self) -> range:
        """The lines of the statement that holds the place; of one with a body, the lines above that."""
        holders = [
            node
            for node in ast.walk(ast.parse(self.before))
            if isinstance(node, ast.stmt) and node.end_lineno is not None and node.lineno <= self.line <= node.end_lineno
        ]
        innermost = max(holders, key=lambda node: node.lineno)
        body = getattr(innermost, "body", None)
        return range(innermost.lineno, (body[0].lineno if body else (innermost.end_lineno or self.line) + 1))

    def runs_on_import(self) -> bool:
        """Whether the place is in no function, so that it runs once, in whichever test first imports the file."""
        functions = [node for node in ast.walk(ast.parse(self.before)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        return not any(node.lineno <= self.line <= (node.end_lineno or 0) for node in functions)

    def diff(self) -> list[str]:
        """The changed lines, the old ones first, with "-" and "+" before them."""
        before, after = self.before.decode().splitlines(), self.source().splitlines()
        return [line for line in difflib.unified_diff(before, after, n=0, lineterm="") if not line.startswith(("---", "+++", "@@"))]


def mutants_of(path: pathlib.Path) -> list[Mutant]:
    """All mutants of a source file that compile, in the order of their places."""
    data = path.read_bytes()
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    module = ast.parse(data)
    blocks = [(starts[min(node.lineno for node in (each, *_decorators(each))) - 1], starts[each.end_lineno or -1]) for each in module.body]
    for node, change in _changes(module):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        text = ast.unparse(change)
        if isinstance(change, ast.expr) and not isinstance(change, ast.Constant | ast.Name):
            # NOTE: what stands around it may bind closer.
            text = f"({text})"
        # NOTE: the statement of the module around it is enough: to compile the whole file for each mutant takes ten times as long.
        first, last = next(block for block in blocks if block[0] <= start < block[1])
        if _compiles(data[first:start] + text.encode() + data[end:last]):
            found.append(Mutant(path, data, node.lineno, start, end, text))
    return sorted(found, key=lambda each: (each.start, each.end, each.text))


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return getattr(node, "decorator_list", [])


def _compiles(source: bytes) -> bool:
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.expr | ast.stmt]]:
    """Nodes below `node`, each with what may replace it."""
    for child in _children(node):
        if isinstance(child, ast.expr | ast.stmt):
            yield from ((child, change) for change in (*_of_expression(child), *_of_statement(child)))
        test = getattr(child, "test", None)
        if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr | ast.Subscript):
            yield test, ast.UnaryOp(ast.Not(), test)
        yield from _changes(child)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of `node` that a test can see.

    Left out are annotations, decorators (`frozen`, `slots` and caches change nothing that a caller sees), asserts (they are for the type
    checker), texts (golden files hold them), `zip(strict=...)`, the types of `isinstance`, and code for type checkers only.
    """
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            types = isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass") and child in node.args[1:]
            alias = isinstance(node, ast.Module) and isinstance(child, ast.Assign) and isinstance(child.value, ast.BinOp | ast.Subscript)
            if isinstance(child, ast.AST) and not (types or alias or _is_unseen(child)):
                yield child


def _is_unseen(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.keyword):
        return node.arg == "strict"
    return isinstance(node, ast.Assert | ast.JoinedStr)


def _of_expression(node: ast.AST) -> Iterator[ast.expr]:
    changed = copy.copy(node)
    if isinstance(changed, ast.Compare) and len(changed.ops) == 1:
        changed.ops = [_COMPARISONS[type(changed.ops[0])]()]
        yield changed
    elif isinstance(changed, ast.BinOp) and type(changed.op) in _ARITHMETIC:
        changed.op = _ARITHMETIC[type(changed.op)]()
        yield changed
    elif isinstance(changed, ast.BoolOp):
        changed.op = ast.Or() if isinstance(changed.op, ast.And) else ast.And()
        yield changed
    elif isinstance(changed, ast.UnaryOp) and isinstance(changed.op, ast.Not | ast.USub):
        yield changed.operand
    elif isinstance(changed, ast.Constant) and isinstance(changed.value, bool):
        yield ast.Constant(not changed.value)
    elif isinstance(changed, ast.Constant) and isinstance(changed.value, int | float):
        # NOTE: the sum of 1 and a large float is that float.
        if changed.value + 1 != changed.value:
            yield ast.Constant(changed.value + 1)
    elif isinstance(changed, ast.Call) and isinstance(changed.func, ast.Name) and changed.func.id in _FUNCTIONS:
        changed.func = ast.Name(_FUNCTIONS[changed.func.id])
        yield changed


def _of_statement(node: ast.AST) -> Iterator[ast.stmt]:
    changed = copy.copy(node)
    if isinstance(changed, ast.AugAssign) and type(changed.op) in _ARITHMETIC:
        changed.op = _ARITHMETIC[type(changed.op)]()
        yield changed
    elif isinstance(changed, ast.Return) and changed.value is not None and ast.unparse(changed.value) not in ("None", "False"):
        # NOTE: callers ask whether a result is true, so False and None are alike. That False becomes True is a mutant as well.
        yield ast.Return(ast.Constant(None))
    elif isinstance(changed, ast.Expr) and isinstance(changed.value, ast.Call):
        yield ast.Pass()
    elif isinstance(changed, ast.Continue):
        yield ast.Break()
    elif isinstance(changed, ast.Break):
        yield ast.Continue()
