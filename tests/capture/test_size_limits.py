"""What a relation between sizes says of one size: a bound, a multiple, or nothing."""

from __future__ import annotations

import pytest
import sympy
from torch.utils._sympy.functions import Mod

from onnxplain.capture.observe.size_limits import Limit, excludes, is_bound, limit_of, may_fail

SIZE, OTHER = sympy.symbols("size other", integer=True, positive=True)


@pytest.mark.parametrize(
    ("relation", "example", "least", "most", "expected"),
    [
        (sympy.Eq(SIZE // 2, 4), 8, 8, 100, Limit(most=9)),
        (sympy.Eq(SIZE // 2, 4), 8, 7, 100, Limit(most=9, least=8)),
        (sympy.Eq(SIZE // 2, 4), 8, 0, 9, None),
        (sympy.Eq(SIZE // 2, 1), 2, 0, 100, Limit(most=3, least=2)),
        (sympy.Eq(SIZE // 2, 1), 3, 1, 100, Limit(most=3, least=2)),
        (sympy.Eq(SIZE // 2, 1), 2, 2, 100, Limit(most=3)),
        (sympy.Eq(SIZE // 8, 4), 32, 0, 100, Limit(most=39, least=32)),
        (sympy.Eq(SIZE // 100, 4), 450, 0, 1000, Limit(most=499, least=400)),
        (sympy.Eq(SIZE // 100, 4), 450, 420, 1000, Limit(most=499)),
        (sympy.Eq(SIZE, 8), 8, 0, 100, Limit(most=8, least=8)),
        (sympy.And(SIZE >= 4, SIZE <= 12), 8, 0, 100, Limit(most=12)),
        (sympy.And(sympy.Eq(SIZE % 4, 0), SIZE <= 20), 8, 0, 100, None),
        (sympy.Eq(SIZE % 4, 0), 8, 0, 9, Limit(factor=4)),
        (sympy.Eq(SIZE % 4, 0), 8, 0, 8, None),
        (sympy.Eq(SIZE % 4, 0), 8, 0, 17, Limit(factor=4)),
        (sympy.Eq(SIZE % 2, 0), 8, 0, 100, Limit(factor=2)),
        (sympy.Eq(SIZE % 100, 0), 800, 0, 1000, Limit(factor=100)),
        (sympy.Eq(SIZE % 3, 2), 8, 0, 100, None),
        (SIZE // 40 <= 2, 40, 0, 130, Limit(most=119)),
        (SIZE <= 1000, 8, 0, 10_000, Limit(most=1000)),
        (SIZE < 8, 8, 0, 8, None),
        (SIZE <= 1, 1, 0, 100, None),
        (SIZE <= 2, 2, 0, 100, Limit(most=2)),
        (sympy.Eq(sympy.Max(1, SIZE - 8), 1), 8, 0, 100, Limit(most=9)),
        (sympy.true, 8, 0, 100, None),
    ],
    ids=str,
)
def test_limit_within_a_range(relation: sympy.Basic, example: int, least: int, most: int, expected: Limit | None) -> None:
    assert limit_of(relation, SIZE, example, least, most) == expected


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (Limit(factor=4), "n % 4 == 0"),
        (Limit(most=9), "n <= 9"),
        (Limit(most=9, least=0), "n >= 0 and n <= 9"),
        (Limit(most=0), "n <= 0"),
    ],
    ids=str,
)
def test_limit_as_a_relation(limit: Limit, text: str) -> None:
    assert limit.of("n") == text


@pytest.mark.parametrize(
    ("relation", "most", "expected"),
    [
        (sympy.Eq(Mod(80, SIZE), 0), 1000, True),
        (sympy.Eq(Mod(80, SIZE), 0), 81, True),
        (sympy.Eq(Mod(80, SIZE), 0), 80, False),
        (sympy.Eq(Mod(SIZE, 80), 0), 1000, False),
        (sympy.Eq(Mod(81, SIZE), 0), 1000, False),
        (sympy.Ne(Mod(80, SIZE), 81), 1000, False),
        (sympy.Eq(Mod(80, SIZE), 80), 1000, False),
        (sympy.Eq(Mod(OTHER, SIZE), 0), 1000, False),
        (sympy.Eq(SIZE, 8), 1000, False),
        (sympy.Eq(Mod(Mod(80, SIZE) + SIZE, 2), 0), 1000, False),
    ],
    ids=str,
)
def test_bound_of_a_relation(relation: sympy.Basic, most: int, expected: bool) -> None:
    assert is_bound(relation, SIZE, 8, most) is expected


@pytest.mark.parametrize(
    ("relation", "least", "expected"),
    [
        (SIZE >= 2, 0, True),
        (SIZE >= 2, 2, False),
        (SIZE >= 3, 2, True),
        (sympy.Ne(SIZE, 1), 0, True),
        (sympy.Ne(SIZE, 1), 2, False),
        (SIZE < 2**20, 0, True),
        (SIZE <= 2**20, 0, False),
        (SIZE < 2**31, 0, False),
        (SIZE <= OTHER, 2, True),
        (SIZE + OTHER >= 4, 2, False),
        (SIZE + OTHER >= 6, 2, True),
        (sympy.Ne(SIZE * OTHER, 1), 0, True),
        (sympy.Ne(SIZE * OTHER, 1), 2, False),
        (sympy.Ne(SIZE + OTHER, 2), 0, True),
        (sympy.Ne(SIZE, 50), 0, True),
        (sympy.Eq(SIZE // SIZE, 1), 0, False),
    ],
    ids=str,
)
def test_sizes_that_a_relation_excludes(relation: sympy.Basic, least: int, expected: bool) -> None:
    assert excludes(relation, least) is expected


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (sympy.Min(1000, SIZE) <= SIZE, False),
        (sympy.Min(7, SIZE) <= 7, False),
        (SIZE <= 1000, True),
        (sympy.Ne(SIZE, 2500), True),
        (SIZE <= OTHER, True),
        (SIZE * OTHER >= 0, False),
        (SIZE < 2**31, True),
    ],
    ids=str,
)
def test_checks_that_never_fail(relation: sympy.Basic, expected: bool) -> None:
    assert may_fail(relation) is expected
