"""Functions in torch's symbolic expressions that sympy lacks, and expressions as text."""

from __future__ import annotations

import sympy

# NOTE: read in torch 2.11, 2.13 and 2.15, utils/_sympy: the expressions that torch.export returns, in `range_constraints` and shapes, are
# made of these classes.
from torch.utils._sympy.functions import FloorDiv, IntTrueDiv, Max, Min, Mod, PythonMod, ToFloat, TruncToInt
from torch.utils._sympy.printers import PythonPrinter
from typing_extensions import override

REMAINDERS = (Mod, PythonMod)
"""Functions for a remainder."""
CONVERSIONS = (IntTrueDiv, Max, Min, ToFloat, TruncToInt)
"""Functions that Python names otherwise: a quotient of integers, the largest and the least, a float, an integer."""
DIVISIONS = (Mod, PythonMod, FloorDiv)
"""Functions for a remainder or a quotient."""


class _Printer(PythonPrinter):
    """Python as a user would write it."""

    @override
    def _print_ToFloat(self, expression: sympy.Basic) -> str:
        return str(self._print(expression.args[0]))

    @override
    def _print_TruncToInt(self, expression: sympy.Basic) -> str:
        return f"int({self._print(expression.args[0])})"

    @override
    def _print_Float(self, expression: sympy.Float) -> str:
        return repr(float(expression))


def as_python(expression: sympy.Basic) -> str:
    """`expression` with Python's operators."""
    return str(_Printer().doprint(expression))
