"""The targets, and whether the results meet them."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Collection, Sequence

from .measure import Pair, Result

MEDIAN_OVER_CAPTURE = 1.25
WORST_OVER_CAPTURE = 1.5
FIRST_OVER_CAPTURE = {0.5: 1.05, 0.9: 1.3, 1.0: 1.6}
"""The targets of the sample: the share of its architectures and the largest ratio among them."""
TIMES_FASTER = 4.0
TIMES_FASTER_COLD = 1.5
COST_OF_LOG = 1.02
LARGE_LOG_SECONDS = 2
LARGE_LOG_MIB = 200
FAKE_MIB = 3000
GROWTH = 2
SLOWER_FUNCTIONS = 1.05
MORE_MEGABYTES = 10
SAME_LATENCY = 1.02
"""Two runs of one graph differ by as much."""
SAMPLE_LATENCY = 1.05
"""Two runs of one small graph differ by as much."""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A target, the result, and the models that missed it."""

    target: str
    reached: str
    met: bool
    missed_by: tuple[str, ...] = ()


def verdicts(results: Sequence[Result], failures: Collection[str]) -> list[Verdict]:
    """One verdict for each target that the results cover. `failures` are the models that we do not export."""
    exported = Verdict("every model exports", f"{len(results)} of {len(results) + len(failures)}", not failures, tuple(failures))
    if not results:
        return [exported]
    over = {result.name: result.over_capture for result in results}
    median, worst = statistics.median(over.values()), max(over, key=over.__getitem__)
    late = tuple(name for name, ratio in over.items() if ratio > WORST_OVER_CAPTURE)
    found = [
        exported,
        Verdict(f"ours / capture, median <= {MEDIAN_OVER_CAPTURE}", f"{median:.2f}", median <= MEDIAN_OVER_CAPTURE),
        Verdict(f"ours / capture, worst <= {WORST_OVER_CAPTURE}", f"{over[worst]:.2f} ({worst})", not late, late),
    ]
    faster = [1 / result.seconds.ratio for result in results if result.seconds.ratio]
    if faster:
        mean = statistics.geometric_mean(faster)
        found.append(Verdict(f"theirs / ours, geometric mean >= {TIMES_FASTER:g}", f"{mean:.2f}", mean >= TIMES_FASTER))
    found += _each(results, "nodes", lambda result: result.nodes, 1.0)
    found += _each(results, "latency", lambda result: result.latency, SAME_LATENCY)
    found += _each(results, "peak memory", lambda result: result.memory, 1.0)
    return found


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which a share of the values lies; the largest value for 1."""
    if len(values) == 1 or share == 1:
        return max(values)
    return statistics.quantiles(values, n=100, method="inclusive")[round(100 * share) - 1]


def _each(results: Sequence[Result], what: str, pick: Callable[[Result], Pair | None], limit: float) -> list[Verdict]:
    ratios = {result.name: pair.ratio for result in results if (pair := pick(result)) is not None and pair.ratio is not None}
    if not ratios:
        return []
    missed = tuple(name for name, ratio in ratios.items() if ratio > limit)
    reached = f"geometric mean {statistics.geometric_mean(ratios.values()):.2f}, worst {max(ratios.values()):.2f}"
    return [Verdict(f"{what}, ours / theirs, of each model <= {limit:g}", reached, not missed, missed)]
