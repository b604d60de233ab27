"""Follows an argument of a call back to the place that wrote its value: through names, dicts of options, and enclosing functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from onnxplain.diagnostics import Location

from . import syntax

_RETURNED = {"model": 0, "args": 1, "kwargs": 2, "dynamic_shapes": 3}
"""The values that a target of the command line returns, in order."""


class FromElsewhere(Exception):
    """The value comes from an unknown function, and has had the same name all the way."""


def found(places: Iterable[Location], name: str) -> tuple[str, ast.expr] | None:
    """The file and the expression of the value of a call's argument `name`; None if the source does not tell.

    Args:
        places: The call, then the call of the function that it stands in, and so on; or the function that returns the argument.
        name: The argument.

    Raises:
        FromElsewhere: The value comes from the caller of the last of `places`.
    """
    function: ast.FunctionDef | None = None
    defined_in = ""
    argument = name
    for place in places:
        if place.region is None:
            return None
        # NOTE: before Python 3.11 only the call's line is known, and the line may have other calls.
        call = syntax.innermost(place.file, place.region, ast.Call)
        within = syntax.innermost(place.file, place.region, ast.FunctionDef)
        scopes = [each for each in (within, syntax.tree(place.file)) if each is not None]
        if call is None:
            return _returned(place.file, within, name) if within is not None and function is None else None
        value = _given(scopes, call, defined_in, function, name)
        if value is None and within is not None and _hands_on(call, within):
            function, defined_in = within, place.file
            continue
        if value is None and function is not None and not _calls(call, defined_in, function):
            # NOTE: a library called it, such as a test runner or a thread pool.
            break
        if value is None and any(keyword.arg is None for keyword in call.keywords):
            raise FromElsewhere
        if value is None:
            return None if function is None else _default(defined_in, function, name)
        value = _definition(scopes, _entry(scopes, value))
        if not isinstance(value, ast.Name):
            return place.file, value
        if within is None or value.id not in _parameters(within):
            return None
        function, defined_in, name = within, place.file, value.id
    if function is not None and name == argument:
        raise FromElsewhere
    return None


def definition(file: str, value: ast.expr) -> ast.expr:
    """What a name stands for in `file`: the last assignment before its use in the same function or the module; otherwise `value` itself."""
    within = syntax.innermost(file, syntax.region(file, value), ast.FunctionDef)
    return _definition([each for each in (within, syntax.tree(file)) if each is not None], value)


def _hands_on(call: ast.Call, function: ast.FunctionDef) -> bool:
    """Whether `call` passes on the `**options` of its enclosing function."""
    options = function.args.kwarg
    named = [each.value for each in call.keywords if each.arg is None]
    return options is not None and any(isinstance(each, ast.Name) and each.id == options.arg for each in named)


def _calls(call: ast.Call, file: str, function: ast.FunctionDef) -> bool:
    """Whether `call` calls `function` of `file`, as far as names tell."""
    owner = syntax.innermost(file, syntax.region(file, function), ast.ClassDef) if function.name == "__init__" else None
    return syntax.last_name(call.func) == (function.name if owner is None else owner.name)


def _given(scopes: Sequence[ast.AST], call: ast.Call, file: str, function: ast.FunctionDef | None, name: str) -> ast.expr | None:
    """The expression that `call` passes for the parameter `name` of `function` of `file`, if that is known."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if function is not None and _calls(call, file, function) and name in (positional := _positional(function)):
        # NOTE: a method gets its first argument from the object.
        bound = (isinstance(call.func, ast.Attribute) or function.name == "__init__") and positional[0] in ("self", "cls")
        position = positional.index(name) - bound
        if position < len(call.args) and not any(isinstance(each, ast.Starred) for each in call.args):
            return call.args[position]
    options = (entry for keyword in call.keywords if keyword.arg is None for entry in _entries(scopes, keyword.value, name))
    return max(options, key=lambda node: node.lineno, default=None)


def _entry(scopes: Sequence[ast.AST], value: ast.expr) -> ast.expr:
    """The entry of a dict, if `value` reads one; otherwise `value` itself."""
    match value:
        case ast.Subscript(value=ast.Name() as options, slice=ast.Constant(value=str(key))):
            return max(_entries(scopes, options, key), key=lambda node: node.lineno, default=value)
    return value


def _entries(scopes: Sequence[ast.AST], options: ast.expr, name: str) -> Iterator[ast.expr]:
    """The expressions that the code stores under `name` in a dict."""
    if isinstance(options, ast.Name):
        for node in (each for scope in scopes for each in _before(scope, options)):
            match node:
                case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=owner), slice=ast.Constant(value=key))], value=value):
                    yield from [value] if (owner, key) == (options.id, name) else []
        options = _definition(scopes, options)
    match options:
        case ast.Dict(keys=keys, values=values):
            yield from (value for key, value in zip(keys, values, strict=True) if isinstance(key, ast.Constant) and key.value == name)
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            yield from (each.value for each in keywords if each.arg == name)


def _definition(scopes: Sequence[ast.AST], value: ast.expr) -> ast.expr:
    """The last assignment to `value` before its use, if it is a name; otherwise `value` itself."""
    if not isinstance(value, ast.Name):
        return value
    for scope in scopes:
        assigned = [node for node in _before(scope, value) if value.id in _targets(node)]
        if assigned:
            return max(assigned, key=lambda node: node.lineno).value
    return value


def _targets(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]


def _before(scope: ast.AST, value: ast.expr) -> Iterator[ast.Assign]:
    # NOTE: other functions have other names.
    inside = _own(scope) if isinstance(scope, ast.Module) else ast.walk(scope)
    return (node for node in inside if isinstance(node, ast.Assign) and node.lineno < value.lineno)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield child
            yield from _own(child)


def _positional(function: ast.FunctionDef) -> list[str]:
    return [each.arg for each in (*function.args.posonlyargs, *function.args.args)]


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [*_positional(function), *(each.arg for each in function.args.kwonlyargs)]


def _default(file: str, function: ast.FunctionDef, name: str) -> tuple[str, ast.expr] | None:
    given, positional = function.args, _positional(function)
    defaults = dict(zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True))
    defaults |= {each.arg: value for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value is not None}
    return (file, defaults[name]) if name in defaults else None


def _returned(file: str, function: ast.FunctionDef, name: str) -> tuple[str, ast.expr] | None:
    """The expression that a function returns for `name`, if it has only one return."""
    position = _RETURNED.get(name)
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    match returned:
        case [ast.Tuple(elts=parts)] if position is not None and position < len(parts):
            value = _definition([function], parts[position])
            return None if isinstance(value, ast.Name) else (file, value)
    return None
