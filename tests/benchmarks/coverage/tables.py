"""The results as text: by outcome, by cause, beside torch.onnx.export, and as the table of supported operators."""

from __future__ import annotations

import collections
import datetime
from collections.abc import Iterator, Mapping, Sequence

import onnxruntime
import torch

from .cases import DTYPES, Pair
from .comparison import Outcome
from .outcomes import Result

Results = Mapping[Pair, Sequence[Result]]

_DTYPES = [str(dtype)[6:] for dtype in DTYPES]


def summary(results: Results) -> str:
    """How many pairs are right, by dtype, and the causes of all failing samples."""
    lines = [_share(results, "all", list(_counted(results)))]
    lines += [_share(results, dtype, [each for each in _counted(results) if each.dtype == dtype]) for dtype in _DTYPES]
    failing = [each for pair in _counted(results) for each in results[pair] if not _is_ok(each)]
    outcomes = collections.Counter(each.outcome for each in failing)
    lines += [f"{count:5} {outcome}" for outcome, count in outcomes.most_common()]
    causes = collections.Counter((each.outcome, each.cause) for each in failing)
    lines += [f"{count:5} {outcome}: {cause}" for (outcome, cause), count in causes.most_common(40)]
    return "\n".join(lines)


def failures(results: Results) -> str:
    """Every sample that fails, with its cause."""
    return "\n".join(
        f"{pair.operator} {pair.dtype}: {each.outcome}: {each.cause} {each.detail}"
        for pair in sorted(results, key=lambda pair: pair.operator)
        for each in results[pair]
        if not _is_ok(each)
    )


def comparison(ours: Results, theirs: Results) -> str:
    """The pairs that only one of the exporters gets right."""
    both = [pair for pair in _counted(ours) if pair in theirs]
    lost = [pair for pair in both if supports(theirs[pair]) and not supports(ours[pair])]
    gained = [pair for pair in both if supports(ours[pair]) and not supports(theirs[pair])]
    right = sum(supports(theirs[pair]) for pair in both)
    lines = [f"theirs: {right} of {len(both)}; {len(gained)} gained, {len(lost)} lost"]
    return "\n".join(lines + [f"  lost: {pair.operator} {pair.dtype}" for pair in lost])


def supported(results: Results) -> str:
    """The table of supported operators as markdown."""
    names = sorted({pair.operator for pair in _counted(results)})
    silent = sorted(
        f"{pair.operator} ({pair.dtype})"
        for pair, found in results.items()
        if any(each.outcome == Outcome.DIFFERENT.value for each in found)
    )
    lines = [
        "# Supported operators",
        "",
        "Operators of PyTorch's operator database, exported and compared with eager PyTorch in ONNX Runtime on the CPU. Written by",
        f"`make operators` on {datetime.date.today().isoformat()}, torch {torch.__version__} and ONNX Runtime {onnxruntime.__version__}.",
        "",
        "yes: all samples are right; part: some are; no: none is; empty: PyTorch does not have the operator for the dtype.",
        "",
        f"Different from eager PyTorch without a finding: {', '.join(silent) or 'none'}.",
        "",
        f"| operator | {' | '.join(_DTYPES)} |",
        f"|---|{'---|' * len(_DTYPES)}",
    ]
    for name in names:
        marks = [_mark(results.get(Pair(name, dtype), ())) for dtype in _DTYPES]
        lines.append(f"| {name} | {' | '.join(marks)} |")
    return "\n".join(lines) + "\n"


def supports(results: Sequence[Result]) -> bool:
    """Whether all samples that eager PyTorch runs are right."""
    return all(map(_is_ok, results))


def _counted(results: Results) -> Iterator[Pair]:
    """The pairs of which eager PyTorch runs a sample."""
    return (pair for pair, found in results.items() if any(each.outcome != Outcome.NO_SAMPLE.value for each in found))


def _share(results: Results, title: str, pairs: Sequence[Pair]) -> str:
    right = sum(supports(results[pair]) for pair in pairs)
    return f"{title}: {right} of {len(pairs)} pairs ({right / max(len(pairs), 1):.1%})"


def _is_ok(result: Result) -> bool:
    return result.outcome in (Outcome.OK.value, Outcome.NO_SAMPLE.value)


def _mark(results: Sequence[Result]) -> str:
    known = [each for each in results if each.outcome != Outcome.NO_SAMPLE.value]
    right = sum(map(_is_ok, known))
    return "" if not known else "yes" if right == len(known) else "part" if right else "no"
