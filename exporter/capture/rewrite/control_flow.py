"""Edits of the user's source that make a data-dependent branch or value exportable."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence

from onnxplain.capture.observe.frames import Site
from onnxplain.diagnostics import Confidence, Edit, Fix, Location, Region, line_text
from onnxplain.source import locations, syntax

from . import (
    block_loops,
    branches,
    caches,
    chosen_places,
    comprehensions,
    loops,
    one_block,
    repeated_items,
    rows_at_once,
    shortcuts,
    tensors_of_lists,
)
from .blocks import Rewrite
from .scope import Scope, is_pythons

_NEGATED = {ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
_COND = "Keep both branches in the graph with torch.cond, which becomes an ONNX If."
_LOOP = "Keep the loop in the graph with torch.while_loop, which becomes an ONNX Loop."
_SCAN = "Keep the loop in the graph with a scan, which becomes an ONNX Scan."
_ROWS = "Compute all rows at once."
_CACHE = "Compute what the cache holds within the exported model, for any size."
_ONE_BLOCK = "Run the loop once where there is one block."
_REPEATED = "Repeat the tensor instead of the item of the list."
_WHOLE = "Use the tensor instead of the list of its rows."
_NUMBERS = "Count with torch.arange instead of a range."
_THROUGH = "Run all iterations, and keep the results of the one that ends the loop."
_SPARED = "Run the code where nothing is selected as well, and keep its results where something is."
_PLACES = "Run the iterations of all places, and keep the results of those that the mask chooses."
_LOGS = re.compile(r"\b(log|logger|logging|warnings|writer)\b")
_ONE_STEP = Fix(
    "Export one iteration as the model, and write the loop in the code that runs it; or run a fixed number of iterations, and choose among "
    "their results afterwards with a mask.",
    Confidence.GUESS,
)


def for_branch(place: Location, site: Site) -> list[Fix]:
    """Fixes for a Python branch on a tensor.

    Args:
        place: The place of its test.
        site: The variables that are known there.
    """
    test = syntax.test_at(place)
    module = syntax.tree(place.file)
    if test is None or module is None:
        return list(_of_builtin(place))
    torch = syntax.name_of_torch(place.file)
    if (check := _left_out(place.file, module, test, torch)) is not None:
        return [check]
    scope = _scope(place, site)
    owner = _owner(module, test)
    around = loops.left_by(module, owner) if isinstance(owner, ast.If) else None
    if scope is None:
        return [_advice(place.file, module, test)]
    if isinstance(owner, ast.While):
        loop = loops.rewritten(scope, owner)
        return [_of_loop(place.file, loop)] if loop is not None else [_advice(place.file, module, test)]
    predicate = scope.predicate(test)
    cond = branches.rewritten(scope, test, predicate)
    spared = _of_spared(scope, owner, around)
    if isinstance(owner, ast.If) and around is not None and cond is None:
        return [*spared, *_of_early_end(scope, owner, around), *_of_shortcut(place.file, owner, around)]
    if cond is None or predicate is None:
        return spared or [_advice(place.file, module, test, predicate)]
    if any(isinstance(node, ast.Attribute) and node.attr == "equal" for node in ast.walk(test)):
        # NOTE: torch.equal also takes tensors of different shapes, and returns False for them.
        cond = dataclasses.replace(cond, exact=False)
    ways = [_fix(place.file, _COND, cond), *spared]
    if (elementwise := branches.by_element(scope, test, predicate)) is not None:
        ways.append(Fix("Compute both and choose by element, if they have the same shape.", Confidence.GUESS, snippet=elementwise))
    return ways


def _scope(place: Location, site: Site | None = None) -> Scope | None:
    function = None if place.region is None else syntax.innermost(place.file, place.region, ast.FunctionDef)
    if function is None:
        return None
    tensors, numbers = (None, frozenset[str]()) if site is None else (site.tensors, site.numbers)
    return Scope(place.file, function, syntax.name_of_torch(place.file) or "torch", tensors, numbers)


def _owner(module: ast.Module, test: ast.expr) -> ast.AST | None:
    return next((node for node in ast.walk(module) if getattr(node, "test", None) is test), None)


def _fix(file: str, description: str, *rewrites: Rewrite) -> Fix:
    confidence = Confidence.SAFE if all(each.exact for each in rewrites) else Confidence.CHANGES_BEHAVIOUR
    edits = tuple(Edit(file, each.region, each.code) for each in rewrites)
    if syntax.name_of_torch(file) is None:
        return Fix(description, confidence, snippet=edits[0].as_snippet())
    # NOTE: the file may be a library's. The export edits copies of its functions, and shows users code instead of an edit.
    return Fix(description, confidence, edits=edits)


def _of_loop(file: str, rewrites: Sequence[Rewrite]) -> Fix:
    return _fix(file, _LOOP if ".while_loop(" in rewrites[0].code else _SCAN, *rewrites)


def _of_builtin(place: Location) -> Iterator[Fix]:
    """Fixes for a builtin function that compares tensors, or asks for the truth of several."""
    call = None if place.region is None else syntax.innermost(place.file, place.region, ast.Call)
    function = syntax.innermost(place.file, place.region, ast.FunctionDef) if place.region is not None else None
    if call is None or function is None or not isinstance(call.func, ast.Name):
        return
    scope = Scope(place.file, function, syntax.name_of_torch(place.file) or "torch", None, frozenset())
    match call:
        case ast.Call(func=ast.Name(id="max" | "min" as name), args=[_, _], keywords=[]):
            # NOTE: Python's max returns NaN only if it is the first argument.
            maximum = f"{scope.torch}.{name}imum({', '.join(map(scope.text, call.args))})"
            yield _guess(scope, "Compare the tensors in the graph.", call, maximum, Confidence.CHANGES_BEHAVIOUR)
        case ast.Call(func=ast.Name(id="any" | "all"), args=[ast.GeneratorExp()]) if (together := scope.predicate(call)) is not None:
            yield _guess(scope, "Combine the answers in the graph: the result is a tensor then.", call, together, Confidence.GUESS)


def _guess(scope: Scope, description: str, node: ast.expr, code: str, confidence: Confidence) -> Fix:
    if not locations.is_users(scope.file) or syntax.name_of_torch(scope.file) is None:
        return Fix(description, confidence, snippet=code)
    return Fix(description, confidence, edits=(Edit(scope.file, scope.region(node), code),))


def _left_out(file: str, module: ast.Module, test: ast.expr, torch: str | None) -> Fix | None:
    """The fix that skips an `assert`, or an `if` that only raises, during an export."""
    condition = syntax.text(file, test)
    condition = f"({condition})" if isinstance(test, ast.BoolOp | ast.IfExp | ast.NamedExpr | ast.Lambda) else condition
    match _owner(module, test):
        case ast.Assert():
            code = f"{torch}.compiler.is_exporting() or {condition}"
        case ast.If(body=[ast.Raise()]):
            code = f"not {torch}.compiler.is_exporting() and {condition}"
        case _:
            return None
    description = "Leave the check out of the exported model: ONNX has no way to stop a run."
    if torch is None or not locations.is_users(file):
        return Fix(description, Confidence.CHANGES_BEHAVIOUR)
    return Fix(description, Confidence.CHANGES_BEHAVIOUR, edits=(Edit(file, syntax.region(file, test), code),))


def _of_early_end(scope: Scope, branch: ast.If, loop: ast.For | ast.While) -> list[Fix]:
    """The fix for a branch that ends a loop after an iteration."""
    if loops.early_end(loop.body) is not branch:
        return []
    if (kept := loops.rewritten(scope, loop)) is not None:
        return [_of_loop(scope.file, kept)]
    through = loops.run_through(scope, loop, branch) if isinstance(loop, ast.For) else None
    return [] if through is None else [_fix(scope.file, _THROUGH, *through)]


def _of_spared(scope: Scope, owner: ast.AST | None, loop: ast.For | ast.While | None) -> list[Fix]:
    """The fix for a branch that spares work where nothing is selected."""
    without = shortcuts.rewritten(scope, owner, loop) if isinstance(owner, ast.If) else None
    return [] if without is None else [_fix(scope.file, _SPARED, *without)]


def _of_shortcut(file: str, branch: ast.If, loop: ast.For | ast.While) -> list[Fix]:
    """Fixes for a branch that ends a loop or an iteration early."""
    torch = syntax.name_of_torch(file)
    alone = len(branch.body) == 1 and not branch.orelse
    if torch is None or not alone or not locations.is_users(file) or branches.is_elif(file, branch):
        return [_ONE_STEP]
    match branch.body[0]:
        case ast.Break() if isinstance(loop, ast.For):
            advice = "Leave the early end out of the exported model, which then runs all iterations."
        case ast.Continue():
            advice = "Leave the shortcut out of the exported model, which then runs the rest of each iteration."
        case _:
            return [_ONE_STEP]
    condition = syntax.text(file, branch.test)
    condition = f"({condition})" if isinstance(branch.test, ast.BoolOp | ast.IfExp | ast.NamedExpr | ast.Lambda) else condition
    edit = Edit(file, syntax.region(file, branch.test), f"not {torch}.compiler.is_exporting() and {condition}")
    return [Fix(advice, Confidence.CHANGES_BEHAVIOUR, edits=(edit,)), _ONE_STEP]


def _advice(file: str, module: ast.Module, test: ast.expr, predicate: str | None = None) -> Fix:
    """The advice if the source does not tell an edit. `predicate` is the test as a tensor, if that is known."""
    owner = _owner(module, test)
    condition = predicate or syntax.text(file, test)
    match owner:
        case ast.While():
            loop = f"x, = torch.while_loop(lambda x: {condition}, body, (x,))"
            return Fix("Write the loop's body as a function of the tensors that it changes.", Confidence.GUESS, snippet=loop)
        case ast.If() | ast.IfExp():
            branch = f"x = torch.cond({condition}, when_true, when_false, (x,))"
            return Fix("Write both branches as functions of the tensors that they read.", Confidence.GUESS, snippet=branch)
    return Fix("Choose the elements with a mask: x[mask], or torch.where(mask, x, other).", Confidence.GUESS)


def for_value(place: Location, site: Site, truth_of: Callable[[str, int, str], bool | None]) -> list[Fix]:
    """Fixes for Python code that needs a number computed from a tensor.

    Args:
        place: The place that needs the number.
        site: The variables that are known there.
        truth_of: The truth of an expression at a line of a file for the example: a stated condition must hold there.
    """
    test, module, scope = syntax.test_at(place), syntax.tree(place.file), _scope(place, site)
    if test is None or module is None:
        return _for_use(place, scope)
    owner = _owner(module, test)
    if isinstance(owner, ast.While):
        loop = None if scope is None else loops.rewritten(scope, owner)
        return [_ONE_STEP] if loop is None else [_of_loop(place.file, loop)]
    ways = []
    if scope is not None and isinstance(owner, ast.If | ast.IfExp):
        # NOTE: torch.cond also takes a comparison of numbers.
        compared = scope.comparison(test) if isinstance(test, ast.Compare) else None
        asked = scope.predicate(test) if scope.asks_tensor(test) else compared
        cond = branches.rewritten(scope, test, None if asked is not None and is_pythons(asked) else asked)
        around = loops.left_by(module, owner) if isinstance(owner, ast.If) else None
        ways = [*([] if cond is None else [_fix(place.file, _COND, cond)]), *_of_spared(scope, owner, around)]
    if isinstance(owner, ast.If) and (around := loops.left_by(module, owner)) is not None:
        # NOTE: nothing may state that the branch is never taken: the exported loop would lack its end.
        return ways or _of_shortcut(place.file, owner, around)
    return [*ways, *_statements(place, test, truth_of)]


def question(place: Location) -> tuple[str, int, str] | None:
    """The question of `for_value` to `truth_of` at `place`: file, line and expression; None if there is none."""
    test = syntax.test_at(place)
    statement = None if test is None else syntax.innermost(place.file, syntax.region(place.file, test), ast.stmt)
    if test is None or statement is None or isinstance(statement, ast.While | ast.Assert):
        return None
    return place.file, statement.lineno, syntax.text(place.file, test)


def for_message(place: Location) -> list[Fix]:
    """The fix that leaves a statement at `place` which only prints or logs out of an export."""
    statement = None if place.region is None else syntax.innermost(place.file, place.region, ast.stmt)
    torch = syntax.name_of_torch(place.file)
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            pass
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner))) if _LOGS.search(syntax.text(place.file, owner)):
            pass
        case _:
            return []
    region = syntax.region(place.file, statement)
    if torch is None or not locations.is_users(place.file) or line_text(place.file, region.line)[: region.offset].strip():
        return []
    start = Region(region.line, region.column, region.line, region.column)
    code = f"if not {torch}.compiler.is_exporting():\n" + " " * (region.offset + 4)
    return [Fix("Leave the message out of an export.", Confidence.SAFE, edits=(Edit(place.file, start, code),))]


def _for_use(place: Location, scope: Scope | None) -> list[Fix]:
    """Fixes for a number that code other than a branch needs."""
    if message := for_message(place):
        return message
    if scope is not None and place.region is not None:
        if ways := [*_of_iterations(scope, place), *_of_list(scope, place)]:
            return ways
        around = reversed(syntax.around(place.file, place.region))
        match next((node for node in around if isinstance(node, ast.Call | ast.Subscript)), None):
            case ast.Call(func=ast.Name(id="int" | "float" as name), args=[value], keywords=[]) as call if scope.is_tensor(value):
                text = scope.text(value) if isinstance(value, ast.Name | ast.Call | ast.Attribute) else f"({scope.text(value)})"
                code = f"{text}.{'long' if name == 'int' else 'double'}().item()"
                return [_guess(scope, "Leave the number in the graph.", call, code, Confidence.SAFE)]
            case ast.Call(func=ast.Subscript(value=modules, slice=index), args=arguments, keywords=[]) as call:
                return [_all_of(scope, call, modules, index, arguments)]
            case ast.Subscript(value=modules, slice=index) as chosen:
                calls = (node for node in syntax.around(place.file, scope.region(chosen)) if isinstance(node, ast.Call))
                if (caller := next((node for node in calls if node.func is chosen), None)) is not None:
                    return [_all_of(scope, caller, modules, index, caller.args)]
    advice = "Use tensors only: replace the loop or the index by a mask such as torch.arange(size) < n, or by a closed formula."
    return [Fix(advice, Confidence.GUESS)]


def _of_iterations(scope: Scope, place: Location) -> list[Fix]:
    """Fixes for the `for` that iterates over what `place` needs."""
    over_all = next(filter(None, (chosen_places.rewritten(scope, node) for node in _loops_over(scope, place))), None)
    loop = _loop_over(scope, place)
    return [
        *([] if loop is None else [_of_loop(place.file, loop)]),
        *([] if over_all is None else [_fix(place.file, _PLACES, *over_all)]),
    ]


def _loop_over(scope: Scope, place: Location) -> list[Rewrite] | None:
    """The `for` that iterates over what `place` needs, as a torch.while_loop."""
    return next(filter(None, (loops.rewritten(scope, node) for node in _loops_over(scope, place))), None)


def _loops_over(scope: Scope, place: Location) -> list[ast.For]:
    """The loops that iterate over what `place` needs, the innermost first."""
    if place.region is None:
        return []
    around = [node for node in reversed(syntax.around(place.file, place.region)) if isinstance(node, ast.For)]
    own = [node for node in around if syntax.covers(scope.region(node.iter), place.region)]
    return own or [node for node in ast.walk(scope.function) if isinstance(node, ast.For) and _takes_parts(scope, node.iter, place)]


def _takes_parts(scope: Scope, iterable: ast.expr, place: Location) -> bool:
    """Whether the statement at `place` makes the list of parts that `iterable` takes."""
    names = [node for node in ast.walk(iterable) if isinstance(node, ast.Name) and block_loops.divided(scope, node) is not None]
    made = [block_loops.made_for(scope, each.id) for each in names]
    return place.region is not None and any(each is not None and syntax.covers(scope.region(each), place.region) for each in made)


def _all_of(scope: Scope, call: ast.Call, modules: ast.expr, index: ast.expr, arguments: Sequence[ast.expr]) -> Fix:
    """The fix that runs all modules of a list or a dict and selects one result."""
    given = ", ".join(map(scope.text, arguments))
    each, number = scope.text(modules), index
    match index:
        case ast.Call(func=ast.Name(id="str"), args=[number]):
            # NOTE: the keys of a ModuleDict are strings. The trial tells whether they count from 0.
            each = f"{each}.values()"
    while isinstance(number, ast.Call):
        match number:
            case ast.Call(func=ast.Name(id="int"), args=[number]) | ast.Call(func=ast.Attribute(value=number, attr="item"), args=[]):
                pass
            case _:
                break
    code = f"{scope.torch}.stack([module({given}) for module in {each}])[{scope.text(number)}]"
    return _guess(
        scope, "Run all of them and select a result; the results must have the same shape.", call, code, Confidence.CHANGES_BEHAVIOUR
    )


def _statements(place: Location, test: ast.expr, truth_of: Callable[[str, int, str], bool | None]) -> list[Fix]:
    """Fixes that state the outcome of a test, so that the graph lacks the other branch."""
    statement = syntax.innermost(place.file, syntax.region(place.file, test), ast.stmt)
    assert statement is not None
    region = syntax.region(place.file, statement)
    start = Region(region.line, region.column, region.line, region.column)
    indent = " " * region.offset
    own_line = not line_text(place.file, region.line)[: region.offset].strip()
    torch = syntax.name_of_torch(place.file)
    own_line = own_line and not branches.is_elif(place.file, statement)
    editable = own_line and torch is not None and locations.is_users(place.file)
    asked = question(place)
    # NOTE: only an `assert` leaves no question: the model goes on if its test holds.
    holds = True if asked is None else truth_of(*asked)
    return [
        Fix(
            f"State that {claim} for every input; the exported model then lacks the other branch.",
            Confidence.GUESS,
            edits=(Edit(place.file, start, f"{torch}._check({claim})\n{indent}"),) if editable else (),
            snippet="" if editable else f"{torch or 'torch'}._check({claim})",
        )
        for claim in _claims(place.file, test, holds)
    ]


def _claims(file: str, test: ast.expr, holds: bool | None) -> list[str]:
    """The claims about `test`: that it holds, that it does not, or both if that is not known."""
    claims = {True: syntax.text(file, test), False: _negated(file, test)}
    return list(claims.values()) if holds is None else [claims[holds]]


def for_cache(place: Location) -> list[Fix]:
    """The fix for a branch at `place` on whether a cache has the size of an input, which an earlier run has filled for its size."""
    scope, test = _scope(place), syntax.test_at(place)
    if scope is None or place.region is None:
        return []
    cache = caches.looked_up(scope, place.region) if test is None else caches.rewritten(scope, test)
    return [] if cache is None else [_fix(place.file, _CACHE, *cache)]


def for_size(place: Location, site: Site) -> list[Fix]:
    """The fix for a loop at `place` with as many iterations as a size.

    Args:
        place: The place that needs the size.
        site: The variables that are known there.
    """
    scope = _scope(place, site)
    if scope is None:
        return []
    test = syntax.test_at(place)
    owner = None if test is None or (module := syntax.tree(place.file)) is None else _owner(module, test)
    if isinstance(owner, ast.While):
        loop = loops.rewritten(scope, owner)
        return [] if loop is None else [_of_loop(place.file, loop)]
    at_once = next(filter(None, (rows_at_once.rewritten(scope, node) for node in _loops_over(scope, place))), None)
    ways = [] if at_once is None else [_fix(place.file, _ROWS, at_once)]
    found = [_loop_over(scope, place), *(loops.rewritten(scope, node, inner=True) for node in _loops_over(scope, place))]
    once = next(filter(None, (one_block.rewritten(scope, node) for node in _loops_over(scope, place))), None)
    return [
        *ways,
        *(_of_loop(place.file, loop) for loop in found if loop is not None),
        *_of_list(scope, place),
        *([] if once is None else [_fix(place.file, _ONE_BLOCK, once)]),
    ]


def _of_list(scope: Scope, place: Location) -> list[Fix]:
    """Fixes for a tensor that is made of a list whose length `place` needs."""
    around = [] if place.region is None else syntax.around(place.file, place.region)[::-1]
    calls = [node for node in around if isinstance(node, ast.Call)]
    repeated = next(filter(None, (repeated_items.rewritten(scope, call) for call in calls)), None)
    rows = next(filter(None, (tensors_of_lists.of_rows(scope, call) for call in calls)), None)
    numbered = (node for node in around if isinstance(node, ast.expr))
    numbers = next(filter(None, (tensors_of_lists.of_numbers(scope, node) for node in numbered)), None)
    listed = [node for node in ast.walk(scope.function) if isinstance(node, ast.ListComp | ast.GeneratorExp)]
    lists = [node for node in listed if node in around or _takes_parts(scope, node.generators[0].iter, place)]
    collected = next(filter(None, (comprehensions.rewritten(scope, node) for node in lists)), None)
    return [
        *([] if repeated is None else [_fix(place.file, _REPEATED, *repeated)]),
        *([] if rows is None else [_fix(place.file, _WHOLE, rows)]),
        *([] if numbers is None else [_fix(place.file, _NUMBERS, numbers)]),
        *([] if collected is None else [_of_loop(place.file, collected)]),
    ]


def for_int_of_size(place: Location) -> list[Fix]:
    """The fix that replaces `int(x.shape[0])` at `place` by `x.shape[0]`, and `int(x.shape[0] / 2)` by torch.sym_int."""
    torch = syntax.name_of_torch(place.file)
    if place.region is None or place.region.column is None or torch is None:
        return []
    call = syntax.innermost(place.file, place.region, ast.Call)
    if call is None or not (isinstance(call.func, ast.Name) and call.func.id == "int" and len(call.args) == 1 and not call.keywords):
        return []
    size, region = syntax.text(place.file, call.args[0]), syntax.region(place.file, call)
    match call.args[0]:
        case ast.BinOp():
            return [Fix("Round the size in the graph.", Confidence.SAFE, edits=(Edit(place.file, region, f"{torch}.sym_int({size})"),))]
        case ast.Name() | ast.Attribute() | ast.Subscript() | ast.Call():
            return [Fix("Use the size without a conversion.", Confidence.SAFE, edits=(Edit(place.file, region, size),))]
    # NOTE: `int(n > 2)` is no size, and without the call the code around it would become a part of the comparison.
    return []


def _negated(file: str, test: ast.expr) -> str:
    match test:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _NEGATED:
            return f"{syntax.text(file, left)} {_NEGATED[type(operator)]} {syntax.text(file, right)}"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return syntax.text(file, operand)
    return f"not ({syntax.text(file, test)})"
