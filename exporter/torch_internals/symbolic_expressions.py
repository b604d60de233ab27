"""Functions in torch's symbolic expressions that sympy lacks, and expressions as text."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import sympy
import torch
from typing_extensions import override

from .symbols import Symbol

# NOTE: read in torch 2.11, 2.13 and 2.15, utils/_sympy: the expressions that torch.export returns, in `range_constraints` and shapes, are
# made of these classes.
_FUNCTIONS = "torch.utils._sympy.functions"
_REMAINDERS = [Symbol(f"{_FUNCTIONS}:{name}", without="findings may miss that a size must be a multiple") for name in ("Mod", "PythonMod")]
_WITHOUT = "findings about dims may name a function of torch in place of Python's"
_CONVERSIONS = [Symbol(f"{_FUNCTIONS}:{name}", without=_WITHOUT) for name in ("IntTrueDiv", "Max", "Min", "ToFloat", "TruncToInt")]
_QUOTIENTS = [
    Symbol(f"{_FUNCTIONS}:{name}", without="a model whose example tells that a quotient of sizes is 1 may be refused")
    for name in ("FloorDiv", "CleanDiv")
]
_PRINTER = Symbol("torch.utils._sympy.printers:PythonPrinter", without=_WITHOUT, otherwise=sympy.StrPrinter)


_PLAIN: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}


def expression_of(size: torch.SymInt | torch.SymFloat | torch.SymBool) -> sympy.Expr:
    """The expression that a symbolic number stands for, of torch's symbols."""
    # NOTE: torch.export is built on these two attributes (read in torch 2.11, 2.13 and 2.15, fx/experimental/sym_node.py).
    found: sympy.Expr = size.node.expr
    return found


def at(expression: sympy.Basic, sizes: Mapping[sympy.Basic, int]) -> sympy.Basic | None:
    """`expression` where symbols have these sizes; None if that cannot be computed."""
    try:
        value: sympy.Basic = expression.xreplace({symbol: sympy.Integer(size) for symbol, size in sizes.items()})
    except (ArithmeticError, ValueError, AssertionError, TypeError):
        # NOTE: for example a division by a size that is rounded down to 0, or the root of a negative number.
        return None
    return value


def number_at(size: int | torch.SymInt, sizes: Mapping[sympy.Basic, int]) -> int:
    """A size where symbols have these sizes."""
    return int(expression_of(size).xreplace(sizes)) if isinstance(size, torch.SymInt) else size


def plain_at(value: Any, sizes: Mapping[sympy.Basic, int]) -> Any:
    """`value`, or the number that a symbolic number is where symbols have these sizes."""
    plain = next((plain for symbolic, plain in _PLAIN.items() if isinstance(value, symbolic)), None)
    return value if plain is None else plain(expression_of(value).xreplace(sizes))


def remainders() -> tuple[type[sympy.Basic], ...]:
    """The functions for a remainder."""
    return tuple(each.value for each in _REMAINDERS if each.is_present)


def plainer(relation: sympy.Basic) -> sympy.Basic:
    """`relation` as a user would write it.

    It is `n % 4 == 0` for `-n - 4 * (-n // 4) == 0`, which says that `n` lacks nothing to a multiple, and for `(batch*n) % (4*batch) == 0`.
    """
    return _without_common_factor(_with_remainder(relation))


def _with_remainder(relation: sympy.Basic) -> sympy.Basic:
    is_zero = {sympy.Eq: True, sympy.Le: True, sympy.Ne: False, sympy.Gt: False}.get(relation.func)
    if is_zero is None or not relation.has(*quotients()):
        return relation
    found = _as_remainder(relation.lhs - relation.rhs)
    if found is None or found[2] != 0:
        return relation
    whole, divisor, _ = found
    # NOTE: the last one takes negative numbers.
    remainder = remainders()[-1](-whole if whole.could_extract_minus_sign() else whole, divisor)
    return sympy.Eq(remainder, 0) if is_zero else sympy.Ne(remainder, 0)


def _without_common_factor(relation: sympy.Basic) -> sympy.Basic:
    if not isinstance(relation, sympy.Eq | sympy.Ne) or relation.rhs != 0 or not isinstance(relation.lhs, remainders()):
        return relation
    whole, divisor = relation.lhs.args
    common = [each for each in sympy.Mul.make_args(divisor) if each.is_Symbol and each in sympy.Mul.make_args(whole)]
    if not common or common == [divisor]:
        return relation
    factor = sympy.Mul(*common)
    return type(relation)(type(relation.lhs)(whole / factor, divisor / factor), 0)


def bounds_by_remainder(expression: sympy.Basic) -> tuple[int, int] | None:
    """The least and the largest value of `n - 2 * (n // 2) + 1`, which is 1 or 2, and the like; None for other expressions."""
    if (found := _as_remainder(expression)) is not None:
        return found[2], found[2] + found[1] - 1
    if (found := _as_remainder(-expression)) is not None:
        return 1 - found[1] - found[2], -found[2]
    return None


def _as_remainder(expression: sympy.Basic) -> tuple[sympy.Basic, int, int] | None:
    """The number, the divisor and the offset, if `expression` is a remainder and an offset, said by a quotient."""
    for term in sympy.Add.make_args(expression):
        factor, quotient = term.as_coeff_Mul()
        if not isinstance(quotient, quotients()) or not factor.is_Integer or factor > -2:
            continue
        whole, divisor = quotient.args
        if divisor.is_Integer and divisor % factor == 0:
            # NOTE: torch writes `n // 2 // 2` as `n // 4`.
            inner = whole if divisor == -factor else type(quotient)(whole, divisor / -factor)
            offset = expression - term - inner
            if offset.is_Integer:
                return inner, -int(factor), int(offset)
    return None


def decided_by_remainder(relation: sympy.Basic) -> sympy.Basic | None:
    """Whether `relation` holds for all sizes, as `n <= 7 * ((n + 6) // 7)` does, or for none; None if that is not known."""
    if not isinstance(relation, sympy.core.relational.Relational) or not relation.has(*quotients()):
        return None
    bounds = bounds_by_remainder(relation.lhs - relation.rhs)
    if bounds is None:
        return None
    answers = {relation.func(sympy.Integer(each), 0) for each in (*bounds, *([0] if bounds[0] < 0 < bounds[1] else []))}
    return answers.pop() if len(answers) == 1 else None


def quotients() -> tuple[type[sympy.Basic], ...]:
    """The functions for a quotient of ints that is rounded down."""
    return tuple(each.value for each in _QUOTIENTS if each.is_present)


def minima() -> tuple[type[sympy.Basic], ...]:
    """The functions for the least of several."""
    return (sympy.Min, *(each.value for each in _CONVERSIONS if each.is_present and each.name == "Min"))


def is_pythons(expression: sympy.Basic) -> bool:
    """Whether Python writes a part of `expression` otherwise than sympy: a remainder, a quotient, the largest and the least, a float."""
    return bool(expression.has(sympy.Float, *(each.value for each in (*_REMAINDERS, *_CONVERSIONS) if each.is_present)))


def rounds_toward_zero(expression: sympy.Basic) -> bool:
    """Whether a part of `expression` is Python's `int` of a fraction."""
    return bool(expression.has(*(each.value for each in _CONVERSIONS if each.is_present and each.name == "TruncToInt")))


def divides_to_float(expression: sympy.Basic) -> bool:
    """Whether a part of `expression` is Python's `/` of two ints."""
    return bool(expression.has(*(each.value for each in _CONVERSIONS if each.is_present and each.name == "IntTrueDiv")))


def divides_to_int(expression: sympy.Basic) -> bool:
    """Whether a part of `expression` is Python's `//` of two ints."""
    return bool(expression.has(*quotients()))


def as_python(expression: sympy.Basic) -> str:
    """`expression` with Python's operators."""
    return str(_printer(_PRINTER.value)().doprint(expression)).replace("(-1)*", "-")


@functools.cache
def _printer(base: Any) -> Any:
    """A printer that writes Python as a user would write it."""

    class Printer(base):  # type: ignore[misc]  # torch's or sympy's class
        @override
        def _print_ToFloat(self, expression: sympy.Basic) -> str:
            return str(self._print(expression.args[0]))

        @override
        def _print_TruncToInt(self, expression: sympy.Basic) -> str:
            return f"int({self._print(expression.args[0])})"

        @override
        def _print_Add(self, expression: sympy.Add, order: Any = None) -> str:
            first, *others = sorted(expression.args, key=lambda term: (term.could_extract_minus_sign(), term.is_number, str(term)))
            text = self.parenthesize(first, sympy.printing.precedence.PRECEDENCE["Add"])
            for term in others:
                sign, size = ("-", -term) if term.could_extract_minus_sign() else ("+", term)
                text += f" {sign} {self.parenthesize(size, sympy.printing.precedence.PRECEDENCE['Mul'])}"
            return str(text)

        @override
        def _print_Float(self, expression: sympy.Float) -> str:
            return repr(float(expression))

    return Printer
