"""Loops over blocks of a dim, of which the last one may be shorter, such as `for i in range(0, n, k): f(x[i : i + k])`."""

from __future__ import annotations

import ast
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence

from . import scope
from .blocks import Rewrite
from .scope import Scope

_SIZES, _STEPS = range(1, 60), range(1, 12)
"""Sizes for which a number of blocks is computed, to see whether it is that of all blocks."""


@dataclasses.dataclass(frozen=True)
class Blocks:
    """What a loop takes in each iteration: a block of `step` positions, the last of which may end earlier, at `stop`.

    Attributes:
        where: The function around it.
        number: The name of the iteration's number.
        step: The length of a block.
        stop: The size of the dim.
        counts: Whether the iterations are numbered 0, 1, 2. Otherwise their numbers are the positions at which the blocks begin.
        names: The variables that the loop sets once, with their values.
    """

    where: Scope
    number: str
    step: ast.expr
    stop: ast.expr
    counts: bool
    names: Mapping[str, ast.expr]

    def length(self, part: ast.Slice) -> str | None:
        """The length of a slice in all blocks but the last one, if the slice is the block; None if it is not."""
        is_block = part.lower is not None and part.upper is not None and part.step is None
        return self.where.text(self.step) if is_block and self._begins(part.lower) and self._ends(part.upper) else None

    def in_whole_blocks(self, statements: Sequence[ast.stmt]) -> Iterator[Rewrite]:
        """What ends and lengths of blocks become in all blocks but the last one."""
        parts = [part for each in statements for part in ast.walk(each) if isinstance(part, ast.Slice) and self.length(part)]
        inside = {id(node) for part in parts for node in ast.walk(part)}
        for node in (node for each in statements for node in ast.walk(each) if id(node) not in inside):
            match node:
                case ast.Call() if self._ends(node) and (end := self._least(node)) is not None:
                    yield Rewrite(self.where.region(node), self.where.text(end))
                case ast.BinOp(left=end, op=ast.Sub(), right=first) if self._ends(end) and self._begins(first):
                    yield Rewrite(self.where.region(node), self.where.text(self.step))

    def in_last_block(self, statements: Sequence[ast.stmt]) -> Iterator[Rewrite]:
        """What the ends of blocks that are cut off become in the last block."""
        for node in (node for each in statements for node in ast.walk(each)):
            if isinstance(node, ast.Call) and self._least(node) is not None:
                yield Rewrite(self.where.region(node), self.where.text(self.stop))

    def _begins(self, node: ast.expr | None) -> bool:
        """Whether `node` is the position at which a block begins."""
        match self._value(node):
            case ast.Name(id=name):
                return name == self.number and not self.counts
            case ast.BinOp(left=one, op=ast.Mult(), right=other):
                return self.counts and {ast.unparse(one), ast.unparse(other)} == {self.number, ast.unparse(self.step)}
        return False

    def _ends(self, node: ast.expr | None) -> bool:
        """Whether `node` is the position at which all blocks end but the last one, which may end earlier."""
        match value := self._value(node):
            case ast.BinOp(left=first, op=ast.Add(), right=length):
                return self._begins(first) and ast.unparse(length) == ast.unparse(self.step)
            case ast.BinOp(left=ast.BinOp(left=ast.Name(id=name), op=ast.Add(), right=ast.Constant(value=1)), op=ast.Mult(), right=length):
                return self.counts and name == self.number and ast.unparse(length) == ast.unparse(self.step)
            case ast.Call():
                return self._least(value) is not None
        return False

    def _least(self, call: ast.Call) -> ast.expr | None:
        """The end of a block that is cut off at the end of the dim."""
        match call:
            case ast.Call(func=ast.Name(id="min"), args=[one, other], keywords=[]):
                for end, stop in (one, other), (other, one):
                    if ast.unparse(stop) == ast.unparse(self.stop) and self._ends(end):
                        return end
        return None

    def _value(self, node: ast.expr | None) -> ast.expr | None:
        return self.names.get(node.id, node) if isinstance(node, ast.Name) else node


def of(where: Scope, statement: ast.For, bounds: Sequence[ast.expr]) -> Blocks | None:
    """The blocks that a loop over a `range` takes; None if it takes none, or parts of other lengths."""
    assert isinstance(statement.target, ast.Name)
    number, names = statement.target.id, _set_once(statement.body)
    nodes = [node for each in statement.body for node in ast.walk(each)]
    match bounds:
        case [_, stop, ast.Constant() | ast.Name() | ast.Attribute() as length] if ast.unparse(length) != "1":
            found = Blocks(where, number, length, stop, counts=False, names=names)
        case [count]:
            cut = (node.args for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "min" and len(node.args) == 2)
            tried = (
                Blocks(where, number, length, stop, counts=True, names=names)
                for pair in cut
                for stop in pair
                for length in _factors(nodes, number)
                if _counts_blocks(where, count, stop, length)
            )
            first = next(tried, None)
            if first is None:
                return None
            found = first
        case _:
            return None
    # NOTE: other parts that the number selects may be shorter in the last iteration as well.
    slices = [node for node in nodes if isinstance(node, ast.Slice) and _depends(node, {number, *names})]
    return found if any(map(found.length, slices)) else None


def made_for(where: Scope, name: str) -> ast.Assign | None:
    """The statement that makes a variable which the function reads in one place; None if there is no such statement."""
    uses = [node for node in ast.walk(where.function) if isinstance(node, ast.Name) and node.id == name]
    made = [node for node in ast.walk(where.function) if isinstance(node, ast.Assign) and name in scope.stored([node])]
    return made[0] if len(uses) == 2 and len(made) == 1 and isinstance(made[0].targets[0], ast.Name) else None


def divided(where: Scope, source: ast.expr) -> tuple[ast.expr, ast.expr, ast.expr | None] | None:
    """The tensor that a call of `split` divides, the length of the parts, and the dim; None if `source` is something else."""
    if isinstance(source, ast.Name) and (made := made_for(where, source.id)) is not None:
        return divided(where, made.value)
    match scope.listed(source):
        case ast.Call(func=ast.Attribute(value=ast.Name(id=where.torch), attr="split"), args=[tensor, *given], keywords=keywords):
            pass
        case ast.Call(func=ast.Attribute(value=tensor, attr="split"), args=given, keywords=keywords):
            pass
        case _:
            return None
    named = {each.arg: each.value for each in keywords}
    sizes = [*given, *(named[name] for name in ("split_size_or_sections", "split_size", "dim") if name in named)]
    match sizes:
        case [ast.Constant(value=int()) | ast.Name() | ast.Attribute() as length, *dim] if where.is_tensor(tensor) and len(dim) < 2:
            return tensor, length, dim[0] if dim else None
    return None


def _depends(node: ast.AST, names: set[str]) -> bool:
    return bool(scope.loaded([node]).keys() & names)


def _set_once(statements: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """The variables that statements set, each in one place, with their values."""
    stored = [node.id for each in statements for node in ast.walk(each) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return {
        each.targets[0].id: each.value
        for each in statements
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name) and stored.count(each.targets[0].id) == 1
    }


def _factors(nodes: Sequence[ast.AST], number: str) -> Iterator[ast.expr]:
    """What the number of an iteration is multiplied by."""
    for node in nodes:
        match node:
            case ast.BinOp(left=ast.Name(id=name), op=ast.Mult(), right=factor) if name == number:
                yield factor
            case ast.BinOp(left=factor, op=ast.Mult(), right=ast.Name(id=name)) if name == number:
                yield factor


def _counts_blocks(where: Scope, count: ast.expr, stop: ast.expr, length: ast.expr) -> bool:
    """Whether `count` is the number of blocks of `length` up to `stop`, of which the last one may be shorter."""
    if isinstance(count, ast.Name):
        made = [node.value for node in ast.walk(where.function) if isinstance(node, ast.Assign) and count.id in scope.stored([node])]
        if len(made) != 1:
            return False
        (count,) = made
    steps = [length.value] if isinstance(length, ast.Constant) and isinstance(length.value, int) else _STEPS
    known = [(size, step, _number(count, {ast.unparse(stop): size}, ast.unparse(length), step)) for size in _SIZES for step in steps]
    # NOTE: `(n + 3) // 4` writes the length of a block in another way than `4`.
    return all(found == -(-size // step) for size, step, found in known)


def _number(node: ast.expr, sizes: Mapping[str, int], length: str, step: int) -> float | None:
    """The value of `node`, of whole numbers and sizes; None if it is made of other things."""
    text = ast.unparse(node)
    if text in sizes:
        return sizes[text]
    if text == length:
        return step

    def of(inner: ast.expr) -> float | None:
        return _number(inner, sizes, length, step)

    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            value = of(inner)
            return None if value is None else -value
        case ast.Call(func=ast.Attribute(attr="ceil"), args=[inner], keywords=[]):
            value = of(inner)
            return None if value is None else math.ceil(value)
        case ast.Call(func=ast.Name(id="int"), args=[inner], keywords=[]):
            value = of(inner)
            return None if value is None else int(value)
        case ast.BinOp(left=left, op=operator, right=right) if (one := of(left)) is not None and (other := of(right)) is not None:
            return _computed(operator, one, other)
    return None


def _computed(operator: ast.operator, one: float, other: float) -> float | None:
    match operator:
        case ast.Add():
            return one + other
        case ast.Sub():
            return one - other
        case ast.Mult():
            return one * other
        case ast.FloorDiv() if other:
            return one // other
        case ast.Div() if other:
            return one / other
    return None
