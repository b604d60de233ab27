"""Branches that change nothing for the sizes that do not take them, such as `if missing > 0: x = F.pad(x, (0, missing))`.

A graph that takes such a branch is right for all sizes.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import itertools
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import sympy
import torch

from onnxplain.source import locations, syntax
from onnxplain.torch_internals import python_frames
from onnxplain.torch_internals.symbolic_expressions import expression_of
from onnxplain.torch_internals.truths_of_sizes import Answer

from . import size_limits, size_values

_Case: TypeAlias = "tuple[sympy.Basic, ...]"
_CONSTANT = ast.Constant("constant")
_CONDITIONS = (bool, int, torch.SymBool, torch.SymInt)


@dataclasses.dataclass(frozen=True)
class _Branch:
    """A branch without another way.

    Attributes:
        test: The test.
        steps: What it assigns, in order: a variable, its value, and the tensor that the value may leave unchanged, if it is one.
        stored: The `or` that the test reads from a variable, which holds one of its operands only.
    """

    test: ast.expr
    steps: tuple[tuple[str, ast.expr, str | None], ...]
    stored: ast.BoolOp | None = None


_Moduli: TypeAlias = "dict[sympy.Basic, int]"


class IdleBranches:
    """Tells the frames of a capture to take idle branches. Otherwise torch would ask the example about their tests."""

    def __init__(self) -> None:
        self._asked = python_frames.once_per_instruction(_asked)
        self._moduli: dict[int, list[tuple[ast.expr, _Moduli]]] = {}

    def truth(self, frame: types.FrameType) -> Answer:
        """True for the test of an idle branch in `frame`; None for other tests."""
        if (asked := self._asked(frame)) is None:
            return None
        variables = collections.ChainMap({}, dict(python_frames.variables(frame)), frame.f_globals)
        if isinstance(asked, ast.BoolOp):
            # NOTE: the variable then holds one operand, and the branch asks about all of them.
            return all(isinstance(size_values.of(operand, variables), _CONDITIONS) for operand in asked.values) or None
        moduli = _made_idle(asked, variables)
        self._moduli[id(frame.f_code)] = moduli or []
        if moduli is not None:
            return True
        return None if asked.stored is None else tuple(size_values.of(operand, variables) for operand in asked.stored.values)

    def modulus(self, frame: types.FrameType, amount: torch.SymInt) -> int | None:
        """The modulus that makes an amount idle by which a line of `frame` pads a tensor; None if it needs none."""
        known = self._moduli.get(id(frame.f_code), ())
        moduli = (moduli for call, moduli in known if call.lineno <= frame.f_lineno <= (call.end_lineno or 0))
        return next(moduli, {}).get(expression_of(amount))


def _asked(frame: types.FrameType) -> _Branch | ast.BoolOp | None:
    """The branch that a frame asks about; the `or` that only branches without another way ask about later; or None."""
    place = None if locations.is_internal_code(frame.f_code) else locations.location(*python_frames.entry_of(frame))
    # NOTE: Python 3.10 tells only the line.
    if place is None or place.region is None or place.region.column is None:
        return None
    nodes = syntax.around(place.file, place.region)
    function = next((node for node in reversed(nodes) if isinstance(node, ast.FunctionDef)), None)
    owner = next((node for node in reversed(nodes) if isinstance(node, ast.If | ast.IfExp | ast.stmt)), None)
    if function is None or owner is None:
        return None
    match owner:
        # NOTE: where Python asks a variable, its place is that of the whole statement (seen in 3.11).
        case ast.If(test=test) | ast.IfExp(test=test) if owner is nodes[-1] or any(node is test for node in nodes):
            return _branch(function, owner)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BoolOp(op=ast.Or()) as test) if _stored(function, name) is test:
            return test
    return None


def _branch(function: ast.FunctionDef, owner: ast.If | ast.IfExp) -> _Branch | None:
    """The branch of `owner`; None if it does more than to compute numbers and to change tensors."""
    stored = _stored(function, owner.test.id) if isinstance(owner.test, ast.Name) else None
    test = owner.test if stored is None else stored
    if isinstance(owner, ast.IfExp):
        tensor = _tensor(owner.body)
        same = isinstance(owner.orelse, ast.Name) and owner.orelse.id == tensor
        return _Branch(test, (("", owner.body, tensor),), stored) if same else None
    kept = _other_way(owner)
    if kept is None:
        return None
    steps = []
    for step in owner.body:
        match step:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                steps.append((name, value, tensor := _tensor(value)))
                if tensor != kept.get(name, name) and (tensor is not None or _is_read_after(function, name)):
                    return None
            case _:
                return None
    return _Branch(test, tuple(steps), stored) if kept.keys() <= {name for name, _, _ in steps} else None


def _other_way(owner: ast.If) -> Mapping[str, str] | None:
    """The tensor to which each variable is set where a branch is not taken; None if there is more to do."""
    kept = {}
    for step in owner.orelse:
        match step:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=tensor)):
                kept[name] = tensor
            case _:
                return None
    return kept


def _tensor(value: ast.expr) -> str | None:
    """The tensor of which `value` is a padded or a cut copy, or a contiguous one."""
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="contiguous"), args=[], keywords=[]):
            return inner.id if isinstance(inner, ast.Name) else _tensor(inner)
        case ast.Call(func=function, args=[ast.Name(id=name), *_]) if syntax.last_name(function) == "pad":
            return name
        case ast.Subscript(value=ast.Name(id=name), slice=index) if any(isinstance(each, ast.Slice) for each in _parts(index)):
            return name
    return None


def _reads(node: ast.AST, name: str) -> int:
    return sum(isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load) for each in ast.walk(node))


def _is_read_after(function: ast.FunctionDef, name: str) -> bool:
    """Whether anything reads a variable, except bodies of branches that set it first."""
    bodies = [[step for step in node.body if _names(step, name)] for node in ast.walk(function) if isinstance(node, ast.If)]
    own = [body for body in bodies if body and isinstance(body[0], ast.Assign) and not _reads(body[0].value, name)]
    return _reads(function, name) != sum(_reads(step, name) for body in own for step in body)


def _names(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(node))


def _stored(function: ast.FunctionDef, name: str) -> ast.BoolOp | None:
    """The `or` that is all that a variable ever holds, if only tests of branches without another way read it."""
    nodes = list(ast.walk(function))
    made = [node for node in nodes if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)]
    assigned = [node for node in nodes if isinstance(node, ast.Assign) and made == node.targets]
    tested = [node for node in nodes if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == name]
    # NOTE: in a loop or in a function within this one, a branch may come before the assignment or after another one.
    straight = not any(isinstance(node, ast.For | ast.While | ast.Lambda | ast.FunctionDef) for node in nodes if node is not function)
    if not (straight and assigned and isinstance(assigned[0].value, ast.BoolOp) and isinstance(assigned[0].value.op, ast.Or)):
        return None
    if _reads(function, name) != len(tested) or any(_other_way(each) is None for each in tested):
        return None
    test = assigned[0].value
    operands = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    later = (node for node in nodes if isinstance(node, ast.Name) and node.lineno > test.lineno and not isinstance(node.ctx, ast.Load))
    return None if any(node.id in operands for node in later) else test


def _made_idle(branch: _Branch, variables: collections.ChainMap[str, Any]) -> list[tuple[ast.expr, _Moduli]] | None:
    """How the branch leaves all tensors as they are, for all sizes for which its test is false; None if it does not.

    Such as `F.pad(x, (0, 8 - n % 8))` behind `n % 8 != 0`: modulo 8, the amount is the same where the branch is taken, and else 0.

    Returns:
        The values that pad or cut a tensor, each with the moduli of those amounts that need one.
    """
    cases, test = _if_false(branch.test, variables), _if_true(branch.test, variables)
    made = []
    for name, value, tensor in branch.steps:
        if tensor is None:
            variables[name] = size_values.of(value, variables)
            continue
        unchanged = _unchanged(value, variables)
        if cases is None or unchanged is None:
            return None
        moduli = {fact: _modulus(fact, cases, test) for fact in unchanged}
        if None in moduli.values():
            return None
        made.append((value, {fact.args[0]: modulus for fact, modulus in moduli.items() if modulus}))
        variables[name] = variables[tensor]
    return made if any(tensor is not None for _, _, tensor in branch.steps) else None


def _modulus(fact: sympy.Basic, cases: Sequence[_Case], test: sympy.Basic | None) -> int | None:
    """0 if `fact` holds in all `cases`; or the modulus with which a number that `fact` compares with 0 is 0 there, and itself by `test`."""
    if all(size_limits.implies(case, fact) for case in cases):
        return 0
    if test is None or not isinstance(fact, sympy.Eq):
        return None
    amount = fact.args[0]
    numbers = sorted(int(number) for number in amount.atoms(sympy.Integer) if number > 1)
    ranges = ((number, sympy.And(sympy.Ge(amount, 0), sympy.Lt(amount, number))) for number in numbers)
    fits = (
        number
        for number, below in ranges
        if size_limits.implies((test,), below) and all(size_limits.implies(case, sympy.Eq(amount, number)) for case in cases)
    )
    return next(fits, None)


def _if_true(test: ast.expr, variables: Mapping[str, Any]) -> sympy.Basic | None:
    """What holds of sizes where `test`, a single comparison of sizes, is true."""
    value = size_values.of(test, variables)
    if isinstance(value, torch.SymInt):
        return sympy.Ne(expression_of(value), 0)
    return expression_of(value) if isinstance(value, torch.SymBool) else None


def _if_false(test: ast.expr, variables: Mapping[str, Any]) -> list[_Case] | None:
    """What may hold of sizes where `test` is false, as relations that hold together; None if it is not known."""
    if isinstance(test, ast.BoolOp):
        operands = [_if_false(operand, variables) for operand in test.values]
        known = [cases for cases in operands if cases is not None]
        if len(known) < len(operands):
            return None
        if isinstance(test.op, ast.And):
            return list(itertools.chain(*known))
        return [tuple(itertools.chain(*cases)) for cases in itertools.product(*known)]
    value = size_values.of(test, variables)
    if isinstance(value, torch.SymBool):
        return [(sympy.Not(expression_of(value)),)]
    if isinstance(value, torch.SymInt):
        return [(sympy.Eq(expression_of(value), 0),)]
    return ([] if value else [()]) if isinstance(value, _CONDITIONS) else None


def _unchanged(value: ast.expr, variables: Mapping[str, Any]) -> list[sympy.Basic] | None:
    """The relations of sizes for which a padded or cut copy of a tensor is as the tensor; None if that is not known."""
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="contiguous"), args=[], keywords=[]):
            is_tensor = isinstance(inner, ast.Name) and isinstance(size_values.of(inner, variables), torch.Tensor)
            return [] if is_tensor else _unchanged(inner, variables)
        case ast.Call(args=[tensor, *_]):
            amounts, padded = pads_of(value, variables), size_values.of(tensor, variables)
            if amounts is None or not isinstance(padded, torch.Tensor) or len(amounts) > 2 * padded.dim():
                return None
            return [sympy.Eq(size_expression(each), 0) for each in amounts]
        case ast.Subscript(value=tensor):
            cut, limits = size_values.of(tensor, variables), limits_of(value, variables)
            if not isinstance(cut, torch.Tensor) or limits is None:
                return None
            return [sympy.Ge(size_expression(limit), size_expression(cut.shape[dim])) for dim, limit in limits.items()]
    return None


def pads_of(value: ast.expr, variables: Mapping[str, Any]) -> Sequence[Any] | None:
    """The amounts by which `value`, a call, pads a tensor with a constant; None if that is not known."""
    if not isinstance(value, ast.Call):
        return None
    # NOTE: other modes refuse some tensors and amounts, which the model may know when it pads.
    others = dict(zip(("pad", "mode", "value"), value.args[1:], strict=False))
    given = {keyword.arg: keyword.value for keyword in value.keywords} | others
    mode, pads = given.get("mode", _CONSTANT), given.get("pad")
    is_pad = size_values.of(value.func, variables) is torch.nn.functional.pad and ast.unparse(mode) == ast.unparse(_CONSTANT)
    amounts = size_values.of(pads, variables) if is_pad and pads else None
    return amounts if isinstance(amounts, tuple | list) and all(map(is_size, amounts)) else None


def limits_of(value: ast.expr, variables: Mapping[str, Any]) -> dict[int, Any] | None:
    """The ends at which `value`, a slice of a tensor from its beginning, cuts dims; None if that is not known."""
    cut = size_values.of(value.value, variables) if isinstance(value, ast.Subscript) else None
    if not isinstance(value, ast.Subscript) or not isinstance(cut, torch.Tensor):
        return None
    parts = list(_parts(value.slice))
    ellipses = [place for place, part in enumerate(parts) if isinstance(part, ast.Constant) and part.value is ...]
    for place in ellipses[:1]:
        parts[place : place + 1] = [ast.Slice()] * (cut.dim() - len(parts) + 1)
    limits = {}
    for dim, part in zip(range(cut.dim()), parts, strict=False):
        match part:
            case ast.Slice(lower=None | ast.Constant(value=0), upper=None, step=None):
                pass
            case ast.Slice(lower=None | ast.Constant(value=0), upper=ast.expr() as end, step=None) if is_size(
                limit := size_values.of(end, variables)
            ):
                limits[dim] = limit
            case _:
                return None
    return limits


def _parts(index: ast.expr) -> Iterator[ast.expr]:
    yield from index.elts if isinstance(index, ast.Tuple) else (index,)


def is_size(value: object) -> bool:
    """Whether `value` is a number that may be a size, or a symbolic one."""
    return isinstance(value, int | torch.SymInt)


def size_expression(size: int | torch.SymInt) -> sympy.Expr:
    """A size as torch's expression."""
    return expression_of(size) if isinstance(size, torch.SymInt) else sympy.Integer(size)
