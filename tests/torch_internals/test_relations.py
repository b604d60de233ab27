"""Relations between sizes, as a user would write them."""

from __future__ import annotations

import pytest
import sympy
from torch.utils._sympy.functions import FloorDiv

from onnxplain.torch_internals import symbolic_expressions

N = sympy.Symbol("n", integer=True, positive=True)
BATCH = sympy.Symbol("batch", integer=True, positive=True)
LACK = N - 4 * FloorDiv(N, 4)
REMAINDER = symbolic_expressions.remainders()[-1]


@pytest.mark.parametrize(
    ("relation", "plain"),
    [
        (sympy.Eq(LACK, 0, evaluate=False), sympy.Eq(REMAINDER(N, 4), 0)),
        (sympy.Le(LACK, 0, evaluate=False), sympy.Eq(REMAINDER(N, 4), 0)),
        (sympy.Ne(LACK, 0, evaluate=False), sympy.Ne(REMAINDER(N, 4), 0)),
        (sympy.Gt(LACK, 0, evaluate=False), sympy.Ne(REMAINDER(N, 4), 0)),
        (sympy.Lt(LACK, 2, evaluate=False), sympy.Lt(LACK, 2, evaluate=False)),
        (sympy.Eq(LACK, 1, evaluate=False), sympy.Eq(LACK, 1, evaluate=False)),
        (sympy.Eq(N, 8), sympy.Eq(N, 8)),
        (sympy.Eq(REMAINDER(N * BATCH, 4 * BATCH), 0), sympy.Eq(REMAINDER(N, 4), 0)),
        (sympy.Eq(REMAINDER(N * BATCH, 4), 0), sympy.Eq(REMAINDER(N * BATCH, 4), 0)),
        (sympy.Eq(REMAINDER(N * BATCH, BATCH), 0, evaluate=False), sympy.Eq(REMAINDER(N * BATCH, BATCH), 0, evaluate=False)),
    ],
)
def test_remainders_are_plain(relation: sympy.Basic, plain: sympy.Basic) -> None:
    assert str(symbolic_expressions.plainer(relation)) == str(plain)
