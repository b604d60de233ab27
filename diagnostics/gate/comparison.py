"""What became of results since a baseline, and how a list on a terminal shows it."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from onnxplain.diagnostics.display import Span, visible
from onnxplain.diagnostics.level import Level

from .results import Result

State = Literal["new", "unchanged", "updated", "absent"]
"""SARIF's words for what became of a result since a baseline (2.1.0, section 3.27.24). An `absent` result was fixed."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """A result and what became of it. `before` is its counterpart in the baseline; for an `absent` result it is the result itself."""

    result: Result
    state: State
    before: Result | None = None

    @property
    def raised_from(self) -> Level | None:
        """Its level in the baseline, if that was lower. The result is new then."""
        return self.before.level if self.before is not None and self.result.level.rank < self.before.level.rank else None


def compare(results: Sequence[Result], known: Sequence[Result]) -> tuple[Compared, ...]:
    """Tells for each of `results`, in order, what became of it; then follow the results that only the baseline `known` has.

    Results of one model with equal fingerprints are counted: of three where the baseline has two, one is new. Suppressed results are
    matched last, so that they take no counterpart from results that count; the counterpart of a suppressed result is not absent.
    """
    before: dict[Result, Result] = {}
    left = sorted((each for each in known if not each.suppressed), key=lambda each: each.level.rank)
    mildest_first = sorted(results, key=lambda each: (each.suppressed, -each.level.rank))
    for suppressed in (False, True):
        for same in (_whole, _kind, _key):
            waiting = [each for each in mildest_first if each.suppressed is suppressed and each not in before]
            left = _pair(waiting, left, same, before)
    return (
        *(Compared(each, _state(each, before.get(each)), before.get(each)) for each in results),
        *(Compared(each, "absent", each) for each in left),
    )


def listed(title: str, compared: Sequence[Compared], limit: int) -> Iterator[list[Span]]:
    """Lines that show the first `limit` of `compared` under a title; none for an empty list."""
    if compared:
        yield [(f"{title}:", "label")]
    several = len({each.result.model for each in compared}) > 1
    yield from (_line(each, several=several) for each in compared[:limit])
    if len(compared) > limit:
        yield [(f"  and {len(compared) - limit} more", "faint")]


def where(result: Result) -> str:
    """The place of `result` on one line: `model.py:7:12`, or its module; empty if nothing is known."""
    place = result.place
    numbers = [str(number) for number in (place.line, place.column) if number is not None]
    return visible(":".join([place.file, *numbers]) if place.file else f"module {place.module}" if place.module else "")


def _pair(
    results: Iterable[Result], known: Sequence[Result], same: Callable[[Result], object], before: dict[Result, Result]
) -> list[Result]:
    """Adds to `before` the counterpart in `known` of each of `results`. Returns the rest of `known`."""
    waiting: dict[object, collections.deque[Result]] = {}
    for each in known:
        waiting.setdefault(same(each), collections.deque()).append(each)
    for result in results:
        if found := waiting.get(same(result)):
            before[result] = found.popleft()
    taken = {*before.values()}
    return [each for each in known if each not in taken]


def _key(result: Result) -> tuple[object, ...]:
    return result.model, result.fingerprint


def _kind(result: Result) -> tuple[object, ...]:
    return *_key(result), result.level


def _whole(result: Result) -> tuple[object, ...]:
    return *_kind(result), result.message, str(result.location)


def _state(result: Result, before: Result | None) -> State:
    if before is None or result.level.rank < before.level.rank:
        return "new"
    return "unchanged" if (result.message, result.location) == (before.message, before.location) else "updated"


def _line(compared: Compared, *, several: bool) -> list[Span]:
    result = compared.result
    level = result.level.value
    place = where(result)
    raised = "" if compared.raised_from is None else f" (was a {compared.raised_from.value})"
    return [
        (f"  {place}: " if place else "  ", "place"),
        (f"{level}[{visible(result.rule)}]", level),
        (f": {visible(result.message)}{raised}", ""),
        (f" in {visible(result.model)}" if several else "", "faint"),
    ]
