"""torch's symbols for the sizes of dims, and expressions of them in the user's names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

import sympy

from onnxplain.request import InputDim, Kind
from onnxplain.torch_internals import dim_entries, shape_env
from onnxplain.torch_internals.symbolic_expressions import as_python, is_pythons, plainer, remainders


class DimSymbols:
    """The symbols of one capture.

    Args:
        environment: torch's shape environment; None if the capture made none.
    """

    def __init__(self, environment: Any) -> None:
        self._environment = environment

    def __contains__(self, dim: InputDim) -> bool:
        """Whether the capture asked torch for a size of `dim` that may vary."""
        return self.of(dim) is not None

    def of(self, dim: InputDim) -> sympy.Symbol | None:
        """The symbol of `dim`; None if its size is a number."""
        return shape_env.symbol_of(self._environment, dim.way, dim.flat_index, dim.axis)

    def all(self) -> set[sympy.Basic]:
        """The symbols of all sizes of inputs."""
        return set(shape_env.symbols_by_source(self._environment).values())

    def replaced(self) -> dict[sympy.Symbol, sympy.Basic]:
        """The expression that each symbol equals in the graph."""
        return shape_env.replacements(self._environment)

    def range_of(self, symbol: sympy.Basic | None) -> tuple[sympy.Basic, sympy.Basic] | None:
        """The least and the largest size, if they are known."""
        return shape_env.range_of(self._environment, symbol)

    def asserted(self) -> list[sympy.Basic]:
        """The relations that the graph checks when it runs."""
        return list(map(plainer, shape_env.assertions(self._environment)))

    def sizes(self, dims: Iterable[InputDim]) -> dict[sympy.Basic, int]:
        """The example's sizes of `dims`, by torch's symbols in the graph."""
        known = {symbol: dim.size for dim in dims if (symbol := self.of(dim)) is not None}
        replaced = self.replaced()
        # NOTE: for a Dim such as `2 * half`, `half` need not be the size of a dim.
        roots = [_root(target, size) for symbol, size in known.items() if (target := replaced.get(symbol)) is not None]
        return known | dict(filter(None, roots))

    def resized(self, dims: Iterable[InputDim], sizes: Mapping[sympy.Basic, int]) -> dict[InputDim, int]:
        """The sizes of `dims` where torch's symbols in the graph have `sizes`; the example's where these do not tell."""
        # NOTE: a Dim such as `2 * half` is computed from a symbol.
        numbers = {symbol: sympy.Integer(size) for symbol, size in sizes.items()}
        known = {dim: self.expression(symbol).xreplace(numbers) for dim in dims if (symbol := self.of(dim)) is not None}
        return {dim: int(size) if size.is_Integer else dim.size for dim, size in known.items()}

    def places(self, expressions: Iterable[sympy.Basic], dims: Iterable[InputDim]) -> list[InputDim]:
        """Those of `dims` on which the expressions of torch's symbols in the graph depend."""
        symbols = {symbol for expression in expressions for symbol in expression.free_symbols}
        return [dim for dim in dims if (symbol := self.of(dim)) is not None and {symbol, *self.expression(symbol).free_symbols} & symbols]

    def stated(self, dims: Iterable[InputDim]) -> dict[sympy.Basic, sympy.Basic]:
        """What `dynamic_shapes` states of torch's symbols in the graph: one symbol for a name, an expression for a Dim such as `n - 1`."""
        known = {dim: self.expression(symbol) for dim in dims if (symbol := self.of(dim)) is not None}
        first: dict[str, sympy.Basic] = {}
        found: dict[sympy.Basic, sympy.Basic] = {}
        for dim, symbol in known.items():
            if dim.kind in (Kind.DIM, Kind.NAMED) and symbol.is_Symbol:
                found[symbol] = first.setdefault(dim.name, symbol)
        for dim, symbol in known.items():
            root = dim_entries.root(dim.given) if dim.kind is Kind.DERIVED else None
            if root is not None and symbol.is_Symbol and root.__name__ in first:
                found[symbol] = dim_entries.from_root(dim.given)(first[root.__name__])
        return found

    def expression(self, symbol: sympy.Basic) -> sympy.Basic:
        """A symbol as the graph has it: itself, another symbol, or an expression of one."""
        return self.replaced().get(symbol, symbol)

    def text(self, expression: sympy.Basic, names: Mapping[InputDim, str]) -> str:
        """`expression`, which has torch's symbols of the graph, in the names of dims."""
        return as_text(expression.xreplace(self.named(names)))

    def named(self, names: Mapping[InputDim, str]) -> dict[sympy.Basic, sympy.Symbol]:
        """The names of dims by their symbols, in the graph and before."""
        # NOTE: the name of a Dim such as `half + 1` is an expression.
        texts = {dim: f"({name})" if dim.kind is Kind.DERIVED else name for dim, name in names.items()}
        named = {symbol: sympy.Symbol(text) for dim, text in texts.items() if (symbol := self.of(dim)) is not None}
        replaced = self.replaced()
        roots: dict[sympy.Basic, sympy.Symbol] = {}
        for dim in names:
            computed = replaced.get(symbol) if (symbol := self.of(dim)) is not None else None
            if dim.kind is Kind.DERIVED and computed is not None and len(computed.free_symbols) == 1 and not computed.is_Symbol:
                roots[next(iter(computed.free_symbols))] = sympy.Symbol(dim.root[0])
        return roots | {replaced.get(symbol, symbol): name for symbol, name in reversed(named.items())} | named


def _root(expression: sympy.Basic, value: int) -> tuple[sympy.Basic, int] | None:
    """The only symbol of an expression that has this value, with its own value; None if there are several."""
    symbols = list(expression.free_symbols)
    if len(symbols) != 1:
        return None
    # NOTE: a dim that is computed from another dim is a linear function of it (torch 2.11 to 2.15, export/dynamic_shapes.py).
    offset, next_ = (int(expression.xreplace({symbols[0]: sympy.Integer(each)})) for each in (0, 1))
    return (symbols[0], (value - offset) // (next_ - offset)) if next_ > offset else None


def _solved(relation: sympy.Rel) -> tuple[sympy.Basic, str, sympy.Basic]:
    """The sides of `relation`, such as `-(n % 2) - 1 == -1`, and its operator, with the number alone and without signs: `n % 2 == 0`."""
    if relation.lhs.is_Integer:
        relation = relation.reversed
    if not relation.rhs.is_Integer:
        return relation.lhs, relation.rel_op, relation.rhs
    number, rest = relation.lhs.as_coeff_Add()
    if not number.is_Integer:
        return relation.lhs, relation.rel_op, relation.rhs
    if rest.could_extract_minus_sign():
        return -rest, relation.reversed.rel_op, number - relation.rhs
    return rest, relation.rel_op, relation.rhs - number


def as_text(relation: sympy.Basic) -> str:
    """`relation` as a Python expression."""
    if isinstance(relation, sympy.Le) and isinstance(relation.lhs, remainders()) and relation.rhs == 0:
        # NOTE: torch asks `size % 2 > 0` as well.
        return f"{as_text(relation.lhs)} == 0"
    if isinstance(relation, sympy.Rel):
        left, operator, right = _solved(relation)
        return f"{as_text(left)} {operator} {as_text(right)}"
    text = as_python(relation) if is_pythons(relation) else str(relation)
    # NOTE: torch writes a floor division as `((size//2))`.
    return _without_parentheses(text) if "//" in text else text


def _without_parentheses(text: str) -> str:
    """A Python expression without the parentheses that it does not need; `text` itself if it is none."""
    try:
        return ast.unparse(ast.parse(text, mode="eval"))
    except SyntaxError:
        return text
