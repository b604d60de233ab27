"""Functions in torch's symbolic expressions that sympy lacks, and expressions as text."""

from __future__ import annotations

import sympy

# NOTE: read in torch 2.11, 2.13 and 2.15, utils/_sympy: the expressions that torch.export returns, in `range_constraints` and shapes, are
# made of these classes.
from torch.utils._sympy.functions import FloorDiv, IntTrueDiv, Mod, PythonMod, ToFloat, TruncToInt
from torch.utils._sympy.printers import PythonPrinter

REMAINDERS = (Mod, PythonMod)
"""Functions for a remainder."""
CONVERSIONS = (IntTrueDiv, ToFloat, TruncToInt)
"""Functions whose names Python does not know: a quotient of integers, a float, an integer."""
DIVISIONS = (Mod, PythonMod, FloorDiv)
"""Functions for a remainder or a quotient."""


def as_python(expression: sympy.Basic) -> str:
    """`expression` with Python's operators."""
    return str(PythonPrinter().doprint(expression))
