"""The syntax tree of the user's file at a place: its test, its statement, its text."""

from __future__ import annotations

import ast
import dataclasses
import functools
import linecache
import textwrap
from collections.abc import Iterator
from typing import TypeVar

from onnxplain.diagnostics import Edit, Location, Region, line_text

_Node = TypeVar("_Node", bound=ast.AST)


@functools.lru_cache(maxsize=32)
def parsed(text: str) -> ast.Module | None:
    """The syntax tree of `text`; None if it is not Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def tree(file: str) -> ast.Module | None:
    """The syntax tree of `file`; None if it is not available or not Python."""
    lines = linecache.getlines(file)
    return parsed("".join(lines)) if lines else None


def source(file: str) -> str:
    """The text of `file`; empty if it is not available."""
    return "".join(linecache.getlines(file))


def region(file: str, node: ast.expr | ast.stmt | ast.keyword) -> Region:
    """The part of `file` that `node` covers."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return Region.from_utf8(file, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def text(file: str, node: ast.expr | ast.stmt) -> str:
    """The source text of `node`, on one line."""
    segment = ast.get_source_segment("".join(linecache.getlines(file)), node)
    return segment if segment and "\n" not in segment else ast.unparse(node)


def around(file: str, place: Region) -> list[ast.AST]:
    """The nodes that cover all of `place`, outermost first. If only a line is known, those that cover it or are within it."""
    return [node for node in _at(file, place) if covers(region(file, node), place)]


def innermost(file: str, place: Region, kind: type[_Node]) -> _Node | None:
    """The innermost node of `kind` around `place`."""
    return next((node for node in reversed(around(file, place)) if isinstance(node, kind)), None)


NUMBERS = ("int", "float")
"""What makes Python numbers of sizes."""
ROWS = ("range", "list", "len")
"""What makes lists of Python numbers up to a size, and what reads them."""


def makes_number(location: Location) -> bool:
    """Whether the code at `location` is a call of `int` or `float`, or within one."""
    return not _called_around(location).isdisjoint(NUMBERS)


def makes_row(location: Location) -> bool:
    """Whether the code at `location` is a call of `range` that is the argument of `list` or `len`."""
    called = _called_around(location)
    return "range" in called and not called.isdisjoint(("list", "len"))


def _called_around(location: Location) -> set[str]:
    """The names that the code at `location` calls, and that are called with it."""
    calls = [] if location.region is None else [each for each in around(location.file, location.region) if isinstance(each, ast.Call)]
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)}


def is_only_called(file: str, name: str) -> bool:
    """Whether `file` uses the builtin `name` only in calls, in `map`, in annotations, and as the class that `isinstance` asks about.

    Then another class or function that does the same when it is called can stand for it, unlike for an argument such as `dtype=int`.
    """
    module = tree(file)
    return module is not None and name not in _passed_on(module)


@functools.lru_cache(maxsize=32)
def _passed_on(module: ast.Module) -> frozenset[str]:
    """The names that are used in other ways."""
    fine: list[ast.AST] = []
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass") as function, args=[_, classes]):
                fine += [function, *ast.walk(classes)]
            case ast.Call(func=ast.Name(id="map") as function, args=[mapped, *_]):
                fine += [function, mapped]
            case ast.Call(func=function):
                fine.append(function)
            case ast.arg(annotation=ast.expr() as kind) | ast.AnnAssign(annotation=kind) | ast.FunctionDef(returns=ast.expr() as kind):
                fine += ast.walk(kind)
    known = set(map(id, fine))
    return frozenset(node.id for node in ast.walk(module) if isinstance(node, ast.Name) and id(node) not in known)


def compares(location: Location) -> bool:
    """Whether the expression at `location` has a comparison."""
    return any(isinstance(node, ast.Compare) for node in _within(location))


def has_number(location: Location, number: int) -> bool:
    """Whether `number` is written in the expression at `location`."""
    return any(isinstance(node, ast.Constant) and type(node.value) is int and node.value == number for node in _within(location))


def _within(location: Location) -> list[ast.AST]:
    """The expression at `location`, and all within it."""
    found = None if location.region is None else innermost(location.file, location.region, ast.expr)
    return [] if found is None else list(ast.walk(found))


def is_message(location: Location) -> bool:
    """Whether the code at `location` only tells something: in a `raise`, an `assert`, or an unused call such as `print`."""
    statement = None if location.region is None else innermost(location.file, location.region, ast.stmt)
    return isinstance(statement, ast.Raise | ast.Assert | ast.Expr)


def without_body(location: Location) -> Location:
    """`location`, reduced to the computation in the header if it covers a whole `for`, `while` or `if`."""
    if location.region is None:
        return location
    for node in _at(location.file, location.region):
        if isinstance(node, ast.For | ast.While | ast.If) and region(location.file, node) == location.region:
            return dataclasses.replace(location, region=region(location.file, node.iter if isinstance(node, ast.For) else node.test))
    return location


def test_at(location: Location) -> ast.expr | None:
    """The test that decides a branch at `location`: of an `if`, `while`, `assert`, conditional expression or comprehension."""
    if location.region is None:
        return None
    found = None
    for node in _at(location.file, location.region):
        for test in _tests(node):
            at_test = covers(region(location.file, test), location.region)
            # NOTE: Python 3.11 gives a jump the position of the whole statement or expression that it belongs to.
            found = test if at_test or region(location.file, node) == location.region else found
    return found


def is_plain_assert(location: Location) -> bool:
    """Whether `location` is in an `assert` of one condition, or of several of which the last asks for data, without a computed message."""
    node = None if location.region is None else innermost(location.file, location.region, ast.Assert)
    if node is None or location.function.startswith("<") or not isinstance(node.msg, ast.Constant | None):
        return False
    test = node.test
    while isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        test = test.values[-1]
    is_chain = isinstance(test, ast.Compare) and len(test.ops) > 1
    return not is_chain and not isinstance(test, ast.BoolOp | ast.UnaryOp | ast.IfExp)


def refuses(location: Location) -> bool:
    """Whether the test at `location` is a check: an `assert`, or an `if` that only raises an exception."""
    test = test_at(location)
    if test is None or location.region is None:
        return False
    owners = (each for each in around(location.file, location.region) if isinstance(each, ast.Assert | ast.If) and each.test is test)
    return any(isinstance(owner, ast.Assert) or only_raises(owner) for owner in owners)


def only_raises(branch: ast.If) -> bool:
    """Whether a branch only raises an exception, after messages at most, and has no other way."""
    return isinstance(branch.body[-1], ast.Raise) and not branch.orelse


def counts_truth(location: Location) -> bool:
    """Whether `location` turns a comparison into a number, as in `int(len(x) > 2)`."""
    return location.region is not None and any(
        isinstance(node, ast.Call)
        and last_name(node.func) in ("bool", "float", "int")
        and any(isinstance(argument, ast.Compare | ast.BoolOp) for argument in node.args)
        for node in around(location.file, location.region)
    )


def catches_refusals(location: Location) -> bool:
    """Whether `location` is in a `try` that goes on where an operator refuses its arguments."""
    return any(any(map(_catches, node.handlers)) for node in _tried(location))


def is_tried(location: Location) -> bool:
    """Whether `location` is in a `try` that goes on after some exception."""
    return any(node.handlers for node in _tried(location))


def _tried(location: Location) -> list[ast.Try]:
    """The `try` statements that `location` is in."""
    if location.region is None or (module := tree(location.file)) is None:
        return []
    line = location.region.line
    return [node for node in _tries(module) if node.body[0].lineno <= line <= region(location.file, node.body[-1]).last_line]


@functools.lru_cache(maxsize=32)
def _tries(module: ast.Module) -> list[ast.Try]:
    return [node for node in ast.walk(module) if isinstance(node, ast.Try)]


def _catches(handler: ast.ExceptHandler) -> bool:
    """Whether `handler` catches the exceptions of operators."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or last_name(kind) in ("RuntimeError", "IndexError", "Exception", "BaseException") for kind in kinds)


def unpacks(location: Location | None) -> bool:
    """Whether the statement at `location` assigns the parts of a call's result to a fixed number of names, as `a, b = x.chunk(2)` does."""
    found = _assignment(location)
    return found is not None and bool(_names(found)) and isinstance(found.value, ast.Call) and not collects(location)


def collects(location: Location | None) -> bool:
    """Whether the statement at `location` assigns any number of parts to a name, as `first, *rest = x` does."""
    found = _assignment(location)
    return found is not None and any(isinstance(name, ast.Starred) for name in _names(found))


def _assignment(location: Location | None) -> ast.Assign | None:
    return None if location is None or location.region is None else innermost(location.file, location.region, ast.Assign)


def _names(assignment: ast.Assign) -> list[ast.expr]:
    """The names to which it assigns parts."""
    return [name for target in assignment.targets if isinstance(target, ast.Tuple | ast.List) for name in target.elts]


def expression_at(location: Location) -> str:
    """The text of the expression at `location`, on one line. If only its line is known, the expression of the line's statement."""
    if location.region is None:
        return ""
    if location.region.column is not None:
        expression = innermost(location.file, location.region, ast.expr)
        return location.snippet if expression is None else text(location.file, expression)
    statement = innermost(location.file, location.region, ast.stmt)
    parts = (getattr(statement, name, None) for name in ("iter", "test", "value"))
    return next((text(location.file, part) for part in parts if isinstance(part, ast.expr)), location.snippet)


def behind(file: str, node: ast.stmt, code: str) -> tuple[Edit, ...]:
    """The edit that puts `code` below the definition `node`, with the usual distance between definitions and the same indentation."""
    last = region(file, node).last_line
    column = len(line_text(file, last).rstrip()) + 1
    text = "\n\n\n" + textwrap.indent(code, " " * node.col_offset)
    return (Edit(file, Region(last, column, last, column), text),)


def last_name(function: ast.expr) -> str:
    """The name of a called function, without the part before its last dot."""
    return function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""


def name_of_torch(file: str) -> str | None:
    """The name of torch in `file`; None if the file does not import it."""
    module = tree(file)
    nodes = [] if module is None else list(ast.walk(module))
    for node in nodes:
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.name == "torch":
                    return name.asname or "torch"
                if name.name.startswith("torch.") and not name.asname:
                    return "torch"
    everything = any(isinstance(node, ast.ImportFrom) and any(each.name == "*" for each in node.names) for node in nodes)
    return "torch" if everything and any(isinstance(node, ast.Name) and node.id == "torch" for node in nodes) else None


def _tests(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.If | ast.While | ast.Assert | ast.IfExp):
        return [node.test]
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        return [test for generator in node.generators for test in generator.ifs]
    return []


def _at(file: str, place: Region) -> Iterator[ast.expr | ast.stmt]:
    """The nodes that share a line with `place`, each before the nodes within it."""
    module = tree(file)
    for node in () if module is None else _down(module):
        # NOTE: a search by lines comes first, because columns need the text of the lines, and a file may have many thousand nodes.
        if node.lineno <= place.last_line and place.line <= (node.end_lineno or node.lineno):
            yield node


@functools.lru_cache(maxsize=32)
def _down(module: ast.Module) -> list[ast.expr | ast.stmt]:
    """All nodes with a position, each before the nodes within it."""
    return [node for node in ast.walk(module) if isinstance(node, ast.expr | ast.stmt)]


def covers(whole: Region, place: Region) -> bool:
    """Whether `place` is within `whole`, or is it."""
    if place.column is None:
        return whole.line <= place.line <= whole.last_line
    start, end = (whole.line, whole.column or 0), (whole.last_line, whole.end_column or 0)
    return start <= (place.line, place.column) and (place.last_line, place.end_column or 0) <= end
