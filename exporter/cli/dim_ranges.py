"""What an exported model assumes of its dynamic dims, as the command line tells it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import sympy
import torch

from onnxplain.registry import qualified_name
from onnxplain.request import fake_inputs
from onnxplain.torch_internals.symbolic_expressions import as_python, at, expression_of, minima

if TYPE_CHECKING:
    from onnxplain.program import ONNXProgram

_TOLD = 3
"""The most relations between several dims that are listed, the shortest ones."""
_LOOKED_AT = 200
"""The size up to which it is tried whether a relation holds, to tell a multiple or a least size from it."""


@dataclasses.dataclass
class _Limits:
    """The sizes that a dim may have."""

    least: int
    most: float
    excluded: set[int] = dataclasses.field(default_factory=set)
    told: list[str] = dataclasses.field(default_factory=list)

    def narrow(self, relation: sympy.Basic) -> bool:
        """Takes account of a relation of this dim alone. Returns whether it tells a range or a multiple."""
        if isinstance(relation, sympy.Ne) and relation.lhs.is_Symbol and relation.rhs.is_Integer:
            self.excluded.add(int(relation.rhs))
        elif (bounds := _bounds(relation)) is not None:
            self.least, self.most = max(self.least, bounds[0]), min(self.most, bounds[1])
        elif (solved := _solved(relation)) is not None:
            least, step = solved
            if least > step:
                self.least = max(self.least, least)
            if step > 1:
                self.tell(f"multiple of {step}")
        else:
            return False
        return True

    def tell(self, text: str) -> None:
        """Adds a text, once."""
        if text and text not in self.told:
            self.told.append(text)

    def __str__(self) -> str:
        return ", ".join([*self._sizes(), *self.told]) or "any size"

    def _sizes(self) -> Iterator[str]:
        first = next(size for size in itertools.count(self.least) if size not in self.excluded)
        if self.most < math.inf:
            yield f"only {first}" if first == self.most else f"{first} to {self.most}"
        elif first > 1:
            yield f"at least {first}"
        yield from (f"not {size}" for size in sorted(self.excluded) if first < size <= self.most)


def ranges(program: ONNXProgram) -> Iterator[str]:
    """What is assumed of each dynamic dim, such as `batch: 2 to 64` or `height: multiple of 2`, and of several together."""
    symbols: dict[sympy.Basic, str] = {}
    known = program.exported_program.range_constraints
    limits: dict[str, _Limits] = {}
    for value, fake in zip(program.model.graph.inputs, fake_inputs(program.exported_program), strict=False):
        sizes = fake.shape if isinstance(fake, torch.Tensor) else ()
        for dim, size in zip(value.shape or (), sizes, strict=False):
            if isinstance(size, torch.SymInt) and (name := str(getattr(dim, "value", dim))) not in limits:
                expression = expression_of(size)
                limits[name] = _Limits(*_range(known.get(expression)))
                if expression.is_Symbol:
                    symbols[expression] = name
    together: list[str] = []
    for relation in map(_shortened, _assumptions(program)):
        if relation.free_symbols and relation.free_symbols <= symbols.keys():
            (first, *others) = sorted(symbols[each] for each in relation.free_symbols)
            if not others and limits[first].narrow(relation):
                continue
            text = _told(relation, symbols)
            if not others:
                limits[first].tell(text)
            elif text not in together:
                together.append(text)
    yield from (f"{name}: {each}" for name, each in limits.items())
    yield from sorted(together, key=len)[:_TOLD]
    if len(together) > _TOLD:
        yield f"and {len(together) - _TOLD} more"


def _bounds(relation: sympy.Basic) -> tuple[int, float] | None:
    """The least and the largest size of the only dim in `relation`, such as `n < 8` or `n == min(64, n)`; None for other relations.

    The range that torch knows may be wider. A slice of 64 rows asks for a minimum.
    """
    if isinstance(relation, sympy.Eq) and relation.lhs.is_Symbol and isinstance(relation.rhs, minima()) and len(relation.rhs.args) == 2:
        limits = [each for each in relation.rhs.args if each != relation.lhs]
        return (1, int(limits[0])) if len(limits) == 1 and limits[0].is_Integer else None
    if isinstance(relation, sympy.Gt | sympy.Ge | sympy.Lt | sympy.Le):
        one: Any = relation if relation.lhs.is_Symbol else relation.reversed
        if one.lhs.is_Symbol and one.rhs.is_Integer:
            is_upper, is_strict = isinstance(one, sympy.Lt | sympy.Le), isinstance(one, sympy.Lt | sympy.Gt)
            return (1, int(one.rhs) - is_strict) if is_upper else (int(one.rhs) + is_strict, math.inf)
    return None


def _shortened(relation: sympy.Basic) -> sympy.Basic:
    """A relation without the dims that are factors of both sides, as in `b*h == 16*b*(h // 16)`."""
    if not isinstance(relation, sympy.Eq):
        return relation
    product = sympy.factor_terms(relation.lhs - relation.rhs)
    rest = sympy.Mul(*(each for each in sympy.Mul.make_args(product) if not each.is_Symbol))
    return sympy.Eq(rest, 0) if rest.free_symbols and rest.free_symbols < relation.free_symbols else relation


def _solved(relation: sympy.Basic) -> tuple[int, int] | None:
    """The least size of the only dim in `relation`, and what all sizes are multiples of; None if they are others, as far as trials tell."""
    (symbol,) = relation.free_symbols
    sizes = [size for size in range(1, _LOOKED_AT) if at(relation, {symbol: size}) == sympy.true]
    step = math.gcd(*sizes)
    return (sizes[0], step) if sizes and sizes == [*range(sizes[0], _LOOKED_AT, step)] else None


def _range(known: Any) -> tuple[int, float]:
    """The least and the largest size of a dim."""
    if known is None:
        return 1, math.inf
    # NOTE: torch's infinity is no number of Python's.
    bounded = isinstance(known.upper, int) or known.upper.is_Integer
    return max(int(known.lower), 1), int(known.upper) if bounded else math.inf


def _assumptions(program: ONNXProgram) -> Iterator[sympy.Basic]:
    """The relations between sizes that the captured program checks when it runs, and the exported model does not."""
    for node in program.exported_program.graph.nodes:
        if qualified_name(node.target) == "aten::_assert_scalar":
            checked = node.args[0].meta.get("val") if isinstance(node.args[0], torch.fx.Node) else None
            if isinstance(checked, torch.SymBool):
                yield expression_of(checked)


def _told(relation: sympy.Basic, symbols: Mapping[sympy.Basic, str]) -> str:
    """A relation as a text."""
    texts = {symbol: name if name.isidentifier() else f"({name})" for symbol, name in symbols.items()}
    named = relation.xreplace({symbol: sympy.Symbol(text, integer=True) for symbol, text in texts.items()})
    if isinstance(named, sympy.Rel):
        return f"{as_python(named.lhs)} {named.rel_op} {as_python(named.rhs)}"
    return as_python(named)
