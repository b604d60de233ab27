"""Edits of the user's source that make a data-dependent branch or value exportable."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterable, Sequence

from onnxplain import syntax, where
from onnxplain.diagnostics import Confidence, Edit, Fix, Location, Region
from onnxplain.diagnostics.source import line_text

_LINE_LENGTH = 100
_VIEWS = frozenset(
    {"expand", "flatten", "narrow", "permute", "reshape", "select", "squeeze", "swapaxes", "t", "transpose", "unsqueeze", "view"}
)
"""Methods whose result may share its data with the tensor; a branch of torch.cond may not return such a result."""
_NEGATED = {ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">", ast.Eq: "!=", ast.NotEq: "=="}


@dataclasses.dataclass(frozen=True)
class _Branches:
    """A branch that torch.cond can replace: `<head>torch.cond(...)` in place of `region`."""

    region: Region
    head: str
    if_true: ast.expr
    if_false: ast.expr


def for_branch(place: Location, tensors: frozenset[str] | None) -> list[Fix]:
    """Ways out of a Python branch on a tensor.

    Args:
        place: The place of its test.
        tensors: Names of the local variables that hold tensors there; None if that is not known.
    """
    test = syntax.test_at(place)
    module = syntax.tree(place.file)
    if test is None or module is None:
        return []
    torch = syntax.name_of_torch(place.file)
    predicate = _predicate(place.file, test, torch or "torch")
    if (check := _left_out(place.file, module, test, torch)) is not None:
        return [check]
    branches = _branches(place.file, module, test)
    if branches is None or predicate is None:
        return [_advice(place.file, module, test)]
    results = [fresh(place.file, each) for each in (branches.if_true, branches.if_false)]
    if None in results:
        return [_advice(place.file, module, test)]
    operands = _operands(place.file, branches, tensors)
    lambdas = [f"lambda {', '.join(operands)}: {result}" if operands else f"lambda: {result}" for result in results]
    code = _call(branches, f"{torch or 'torch'}.cond", [predicate, *lambdas, f"({''.join(f'{name}, ' for name in operands).strip()})"])
    editable = torch is not None and where.origin(place.file) is where.Origin.USER
    cond = Fix(
        "Keep both branches in the graph with torch.cond, which becomes an ONNX If.",
        Confidence.SAFE,
        edits=(Edit(place.file, branches.region, code),) if editable else (),
        snippet="" if editable else code,
    )
    choices = [syntax.text(place.file, each) for each in (branches.if_true, branches.if_false)]
    elementwise = Fix(
        "Or compute both and choose by element, if they have the same shape.",
        Confidence.GUESS,
        snippet=_call(branches, f"{torch or 'torch'}.where", [predicate, *choices]),
    )
    return [cond, elementwise]


def _left_out(file: str, module: ast.Module, test: ast.expr, torch: str | None) -> Fix | None:
    """Skips an `assert`, or an `if` that only raises, during an export."""
    condition = syntax.text(file, test)
    condition = f"({condition})" if isinstance(test, ast.BoolOp | ast.IfExp | ast.NamedExpr | ast.Lambda) else condition
    match next((node for node in ast.walk(module) if getattr(node, "test", None) is test), None):
        case ast.Assert():
            code = f"{torch}.compiler.is_exporting() or {condition}"
        case ast.If(body=[ast.Raise()]):
            code = f"not {torch}.compiler.is_exporting() and {condition}"
        case _:
            return None
    description = "Leave the check out of the exported model: ONNX has no way to stop a run."
    if torch is None or where.origin(file) is not where.Origin.USER:
        return Fix(description, Confidence.CHANGES_BEHAVIOUR)
    return Fix(description, Confidence.CHANGES_BEHAVIOUR, edits=(Edit(file, syntax.region(file, test), code),))


def _advice(file: str, module: ast.Module, test: ast.expr) -> Fix:
    """What to do where no edit can be told from the source."""
    owner = next((node for node in ast.walk(module) if getattr(node, "test", None) is test), None)
    condition = syntax.text(file, test)
    match owner:
        case ast.While():
            loop = f"x, = torch.while_loop(lambda x: {condition}, body, (x,))"
            return Fix("Write the loop's body as a function of the tensors that it changes.", Confidence.GUESS, snippet=loop)
        case ast.If() | ast.IfExp():
            branch = f"x = torch.cond({condition}, when_true, when_false, (x,))"
            return Fix("Write both branches as functions of the tensors that they read.", Confidence.GUESS, snippet=branch)
    return Fix("Choose the elements with a mask: x[mask], or torch.where(mask, x, other).", Confidence.GUESS)


def for_value(place: Location, truth_of: Callable[[str, int, str], bool | None]) -> list[Fix]:
    """Ways out of Python needing a number that was computed from a tensor.

    Args:
        place: Where it needs it.
        truth_of: Tells what an expression at a line of a file is for the example: what is stated has to hold there.
    """
    test, module = syntax.test_at(place), syntax.tree(place.file)
    if test is None or module is None:
        return [
            Fix(
                "Stay in tensors: a mask such as torch.arange(size) < n, or a closed form, replaces a loop or an index.",
                Confidence.GUESS,
            )
        ]
    statement = syntax.innermost(place.file, syntax.region(place.file, test), ast.stmt)
    if statement is None or isinstance(statement, ast.While):
        return []
    region = syntax.region(place.file, statement)
    start = Region(region.line, region.column, region.line, region.column)
    indent = " " * ((region.column or 1) - 1)
    own_line = not line_text(place.file, region.line)[: (region.column or 1) - 1].strip()
    torch = syntax.name_of_torch(place.file)
    own_line = own_line and not _is_elif(place.file, statement)
    editable = own_line and torch is not None and where.origin(place.file) is where.Origin.USER
    return [
        Fix(
            f"State that {claim} for every input: the other branch is left out then.",
            Confidence.GUESS,
            edits=(Edit(place.file, start, f"{torch}._check({claim})\n{indent}"),) if editable else (),
            snippet="" if editable else f"{torch or 'torch'}._check({claim})",
        )
        for claim in _claims(place.file, test, truth_of(place.file, statement.lineno, syntax.text(place.file, test)))
    ]


def _claims(file: str, test: ast.expr, holds: bool | None) -> list[str]:
    """What may be stated about `test`: that it holds, that it does not, or either where that is not known."""
    claims = {True: syntax.text(file, test), False: _negated(file, test)}
    return list(claims.values()) if holds is None else [claims[holds]]


def for_int_of_size(place: Location) -> list[Fix]:
    """Replaces `int(x.shape[0])` at `place` by `x.shape[0]`."""
    if place.region is None or place.region.column is None:
        return []
    call = syntax.innermost(place.file, place.region, ast.Call)
    if call is None or not (isinstance(call.func, ast.Name) and call.func.id == "int" and len(call.args) == 1 and not call.keywords):
        return []
    size = syntax.text(place.file, call.args[0])
    return [Fix("Use the size as it is.", Confidence.SAFE, edits=(Edit(place.file, syntax.region(place.file, call), size),))]


def _branches(file: str, module: ast.Module, test: ast.expr) -> _Branches | None:
    for node in ast.walk(module):
        if isinstance(node, ast.IfExp) and node.test is test:
            return _Branches(syntax.region(file, node), "", node.body, node.orelse)
        for body in _bodies(node):
            for number, statement in enumerate(body, 1):
                if isinstance(statement, ast.If) and statement.test is test and not _is_elif(file, statement):
                    following = body[number] if number < len(body) else None
                    return _returns(file, statement, following) or _assignments(file, statement)
    return None


def _returns(file: str, branch: ast.If, following: ast.stmt | None) -> _Branches | None:
    """`if c: return a`, then `else: return b` or `return b`."""
    last = branch.orelse[0] if len(branch.orelse) == 1 else following if not branch.orelse else None
    match branch.body, last:
        case [ast.Return(value=ast.expr() as if_true)], ast.Return(value=ast.expr() as if_false):
            whole, end = syntax.region(file, branch), syntax.region(file, last)
            region = Region(whole.line, whole.column, end.end_line, end.end_column)
            return _Branches(region, "return ", if_true, if_false)
    return None


def _assignments(file: str, branch: ast.If) -> _Branches | None:
    """`if c: x = a`, then `else: x = b` or nothing, which leaves `x` as it is."""
    match branch.body, branch.orelse:
        case [ast.Assign(targets=[ast.Name(id=name)], value=if_true)], [ast.Assign(targets=[ast.Name(id=other)], value=if_false)]:
            return _Branches(syntax.region(file, branch), f"{name} = ", if_true, if_false) if name == other else None
        case [ast.Assign(targets=[ast.Name(id=name)], value=if_true)], []:
            return _Branches(syntax.region(file, branch), f"{name} = ", if_true, ast.Name(id=name, ctx=ast.Load()))
    return None


def _predicate(file: str, test: ast.expr, torch: str) -> str | None:
    """`test` as a tensor of dtype bool; None where that cannot be told from the source."""
    text = syntax.text(file, test)
    match test:
        case ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]) | ast.BoolOp() | ast.NamedExpr():
            return None
        case ast.Compare(ops=[_]) | ast.Call(func=ast.Attribute(attr="any" | "all")):
            return text
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"{torch}.logical_not({syntax.text(file, operand)})"
        case ast.Name() | ast.Attribute() | ast.Call() | ast.Subscript():
            return f"{text}.bool()"
    return None


def fresh(file: str, value: ast.expr) -> str | None:
    """The text of a branch's result as a tensor of its own; None if it is no tensor, or sets names."""
    if any(isinstance(node, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for node in ast.walk(value)):
        return None
    match value:
        case ast.Constant() | ast.Dict() | ast.List() | ast.Starred():
            return None
        case ast.Tuple(elts=parts):
            texts = [fresh(file, part) for part in parts]
            return None if None in texts else f"({''.join(f'{text}, ' for text in texts).strip()})"
        case ast.Name(id=name):
            return f"{name}.clone()"
        case ast.Attribute() | ast.Subscript():
            return f"{syntax.text(file, value)}.clone()"
        case ast.Call(func=ast.Attribute(attr=method)) if method in _VIEWS:
            return f"{syntax.text(file, value)}.clone()"
    return syntax.text(file, value)


def _operands(file: str, branches: _Branches, tensors: frozenset[str] | None) -> list[str]:
    """The tensors of the enclosing function that the branches read, in order."""
    function = syntax.innermost(file, branches.region, ast.FunctionDef)
    local = _locals(function) if function is not None else set()
    read = _names((branches.if_true, branches.if_false), ast.Load)
    bound_inside = _names((branches.if_true, branches.if_false), ast.Store) | _parameters((branches.if_true, branches.if_false))
    candidates = [name for name in read if name in local and name not in bound_inside]
    return [name for name in candidates if tensors is None or name in tensors]


def _locals(function: ast.FunctionDef) -> set[str]:
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    # NOTE: the first parameter of a method is the module itself.
    return ({each.arg for each in parameters} - {"self", "cls"}) | set(_names(function.body, ast.Store))


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context]) -> dict[str, None]:
    """The names that are read or set in `nodes`, in the order of the text."""
    found = [node for root in nodes for node in ast.walk(root) if isinstance(node, ast.Name) and isinstance(node.ctx, context)]
    found.sort(key=lambda node: (getattr(node, "lineno", 0), getattr(node, "col_offset", 0)))
    return dict.fromkeys(node.id for node in found)


def _parameters(nodes: Iterable[ast.AST]) -> dict[str, None]:
    return dict.fromkeys(node.arg for root in nodes for node in ast.walk(root) if isinstance(node, ast.arg))


def _call(branches: _Branches, function: str, arguments: Sequence[str]) -> str:
    """The call on one line if it fits, or else on a line for each argument, indented as what it replaces."""
    indent = " " * ((branches.region.column or 1) - 1)
    short = f"{branches.head}{function}({', '.join(arguments)})"
    if len(indent) + len(short) <= _LINE_LENGTH:
        return short
    lines = "".join(f"{indent}    {argument},\n" for argument in arguments)
    return f"{branches.head}{function}(\n{lines}{indent})"


def _negated(file: str, test: ast.expr) -> str:
    match test:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _NEGATED:
            return f"{syntax.text(file, left)} {_NEGATED[type(operator)]} {syntax.text(file, right)}"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return syntax.text(file, operand)
    return f"not ({syntax.text(file, test)})"


def _bodies(node: ast.AST) -> list[list[ast.stmt]]:
    return [body for name in ("body", "orelse", "finalbody") if isinstance(body := getattr(node, name, None), list)]


def _is_elif(file: str, statement: ast.stmt) -> bool:
    region = syntax.region(file, statement)
    return line_text(file, region.line)[(region.column or 1) - 1 :].startswith("elif")
