"""How far an exported model is from eager PyTorch behind each operator: as text in a log, by layer, and as a curve."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import math
from collections.abc import Iterable, Sequence

_ROWS = 2_000
"""The most rows of the text. Of more, each stretch of the model keeps the row with the largest difference."""
_LAYERS = 30
"""The most layers that are told apart."""
_POINTS = 120
"""The most points of a curve."""
FLOOR = 1e-9
"""The smallest difference that a curve shows: those of float64 are smaller, and 0 has no logarithm."""


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """The comparison of one value.

    Attributes:
        node: The name of the node that computes it.
        operator: The node's operator.
        module: The path of the module that it belongs to.
        line: The line of the user's code; 0 if there is none.
        difference: How far the exported model's value is from PyTorch's: the largest of `|got - want| / (1 + |want|)`.
        own: The same if both compute only this operator, from the exported model's values.
        tolerance: How large a difference may be.
        rule: The id of the rule if the operator is to blame; empty otherwise.
    """

    node: str
    operator: str
    module: str
    line: int
    difference: float
    own: float
    tolerance: float
    rule: str = ""


_NAMES = tuple(field.name for field in dataclasses.fields(Difference))


@dataclasses.dataclass(frozen=True, slots=True)
class Layer:
    """The largest differences of the operators of a module, or of neighbouring operators outside of all modules.

    Attributes:
        module: The module; empty for operators outside of all modules.
        operators: Their number.
        difference: The largest difference.
        own: The largest own difference.
        tolerance: The tolerance of the former.
        rules: The ids of the rules that blame one of its operators.
    """

    module: str
    operators: int
    difference: float
    own: float
    tolerance: float
    rules: tuple[str, ...]


def differences_text(rows: Iterable[Difference]) -> str:
    """The comparison as CSV, one row for each value in the order of execution."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_NAMES)
    for row in _thinned(list(rows), _ROWS):
        writer.writerow(f"{value:.4g}" if isinstance(value, float) else value for value in dataclasses.astuple(row))
    return file.getvalue()


def differences_of(text: str) -> list[Difference]:
    """The rows of a text that `differences_text` made. Leaves out what is no such row: the text may come from a log of anybody."""
    found: list[Difference] = []
    rows = csv.DictReader(io.StringIO(text))
    while len(found) < _ROWS:
        try:
            row = next(rows)
            node, operator, module, rule = (str(row[name]) for name in ("node", "operator", "module", "rule"))
            difference, own, tolerance = (float(row[name]) for name in ("difference", "own", "tolerance"))
            found.append(Difference(node, operator, module, int(row["line"]), difference, own, tolerance, rule))
        except (KeyError, TypeError, ValueError):
            continue
        except (StopIteration, csv.Error):
            break
    return found


def layers(rows: Sequence[Difference]) -> list[Layer]:
    """The rows by module, in the order of execution: as deep in the tree of modules as the table stays short."""
    depth = max((row.module.count(".") + 1 for row in rows if row.module), default=1)
    while depth > 1 and len(_grouped(rows, depth)) > _LAYERS:
        depth -= 1
    return [
        Layer(
            members[0].module and module,
            len(members),
            max(row.difference for row in members),
            max(row.own for row in members),
            max(members, key=lambda row: row.difference).tolerance,
            tuple(dict.fromkeys(row.rule for row in members if row.rule)),
        )
        for module, members in _grouped(rows, depth).items()
    ]


def curve(rows: Sequence[Difference]) -> list[Difference]:
    """Few rows that show the course of the differences: the largest of each stretch of the model, and all that are to blame."""
    # NOTE: integers have no tolerance, so that its line would fall at each of them.
    shown = [row for row in rows if row.tolerance or row.difference or row.rule]
    return _thinned(shown or rows, _POINTS)


def height(difference: float, rows: Iterable[Difference]) -> float:
    """The logarithm of a difference to the base 10. An infinite one is one above the largest."""
    finite = [row.difference for row in rows if math.isfinite(row.difference)]
    largest = max([FLOOR, *finite])
    return math.log10(max(FLOOR, difference)) if math.isfinite(difference) else math.log10(largest) + 1


def _grouped(rows: Sequence[Difference], depth: int) -> dict[str, list[Difference]]:
    """The rows by the first parts of their modules. Each stretch outside of all modules is a group."""
    found: dict[str, list[Difference]] = {}
    before, stretch = "", 0
    for row in rows:
        stretch += bool(before) and not row.module
        before = row.module
        found.setdefault(".".join(row.module.split(".")[:depth]) if row.module else f"{stretch} outside", []).append(row)
    return found


def _thinned(rows: Sequence[Difference], limit: int) -> list[Difference]:
    if len(rows) <= limit:
        return list(rows)
    edges = [round(index * len(rows) / limit) for index in range(limit + 1)]
    return [max(rows[begin:end], key=_weight) for begin, end in itertools.pairwise(edges) if end > begin]


def _weight(row: Difference) -> tuple[bool, float]:
    return bool(row.rule), row.difference
