"""Results as tables and as a picture."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from .measure import Pair, Result
from .verdict import WORST_OVER_CAPTURE, Verdict

STAGES = ("capture", "passes", "dispatch", "build", "optimize", "serialize", "save")
_PARTS = (*STAGES, "rest")


def table(results: Sequence[Result]) -> Table:
    """One line for each model. Times in seconds, stages and latency in milliseconds, memory in MiB."""
    made = Table(title="ours | theirs", title_justify="left")
    made.add_column("model")
    for title in ("bare\ncapture s", "ours s", "theirs s", "ours /\ncapture", "theirs /\nours"):
        made.add_column(title, justify="right")
    for stage in _PARTS:
        made.add_column(f"{stage}\nms", justify="right")
    for title in ("nodes", "latency ms", "latency\nratio", "peak MiB over\nthe model's"):
        made.add_column(title, justify="right")
    for result in results:
        ratio = result.seconds.ratio
        made.add_row(
            result.name,
            f"{result.capture:.2f}",
            f"{result.seconds.ours:.2f}",
            _number(result.seconds.theirs, ".2f"),
            f"{result.over_capture:.2f}",
            _number(None if ratio is None else 1 / ratio, ".1f"),
            *(f"{1000 * result.stages.get(stage, 0):.0f}" for stage in _PARTS),
            both(result.nodes, ".0f"),
            both(result.latency, ".2f"),
            _number(None if result.latency is None else result.latency.ratio, ".3f"),
            both(result.memory, ".0f"),
        )
    return made


def differences(results: Sequence[Result]) -> Table:
    """The ONNX operators of which our graphs have more or fewer nodes than theirs."""
    made = Table(title="ONNX operators", title_justify="left")
    for title in ("model", "more than theirs", "fewer"):
        made.add_column(title, overflow="fold")
    for result in results:
        if result.more or result.fewer:
            made.add_row(result.name, counts(result.more), counts(result.fewer))
    return made


def everything(console: Console, results: Sequence[Result], failures: Mapping[str, str], verdicts: Sequence[Verdict]) -> None:
    """Prints the tables, the failures and the verdicts."""
    console.print(table(results))
    if any(result.more or result.fewer for result in results):
        console.print(differences(results))
    for result in results:
        if result.failure:
            console.print(f"{result.name}: torch.onnx.export fails and is left out of its ratios: {result.failure}", markup=False)
    for name, failure in failures.items():
        console.print(f"{name}: onnxplain fails: {failure}", markup=False)
    for each in verdicts:
        verdict(console, each)


def verdict(console: Console, reached: Verdict) -> None:
    """Prints a target and whether it was met."""
    missed = f"; missed by {', '.join(reached.missed_by)}" if reached.missed_by else ""
    console.print(f"[{'green]met   ' if reached.met else 'red]missed'}[/] {reached.target}: {reached.reached}{missed}")


def picture(results: Sequence[Result], path: pathlib.Path) -> None:
    """Draws three bars for each model: bare capture, ours by its stages, theirs."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (whole, close) = plt.subplots(2, 1, figsize=(14, 9), sharex=True, layout="constrained")
    colours = dict(zip(_PARTS, mpl.colormaps["tab10"](range(len(_PARTS))), strict=True))
    names = [result.name for result in results]
    for axes in (whole, close):
        axes.bar([place - 0.28 for place in range(len(names))], [1.0] * len(names), 0.26, color="0.6", label="bare capture")
        bottom = [0.0] * len(names)
        for stage in _PARTS:
            heights = [result.stages.get(stage, 0.0) / sum(result.stages.values()) * result.over_capture for result in results]
            axes.bar(range(len(names)), heights, 0.26, bottom=bottom, color=colours[stage], label=f"onnxplain: {stage}")
            bottom = [one + other for one, other in zip(bottom, heights, strict=True)]
        known = [(place, result) for place, result in enumerate(results) if result.seconds.ratio]
        theirs = [result.over_capture / result.seconds.ratio for _, result in known if result.seconds.ratio]
        bars = axes.bar([place + 0.28 for place, _ in known], theirs, 0.26, color="0.25", label="torch.onnx.export")
        axes.bar_label(bars, [f"{height:.1f}" for height in theirs], fontsize=8)
        axes.set_ylabel("times bare capture")
        axes.spines[["top", "right"]].set_visible(False)
    for place, result in enumerate(results):
        close.text(place, result.over_capture + 0.01, f"{result.over_capture:.2f}", ha="center", fontsize=8)
        if not result.seconds.ratio:
            whole.text(place + 0.28, 0.1, "fails", rotation=90, ha="center", va="bottom", fontsize=8)
    close.set_ylim(0, max(WORST_OVER_CAPTURE, *(result.over_capture for result in results)) * 1.1)
    close.set_xticks(range(len(names)), [f"{result.name}\n{result.capture:.2f} s" for result in results])
    close.set_xlabel("model, and seconds of bare capture")
    whole.legend(fontsize=8, ncols=3)
    whole.set_title("Export to ONNX: all, and from close by")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def both(pair: Pair | None, spec: str) -> str:
    """Our number beside theirs."""
    return "" if pair is None else f"{pair.ours:{spec}} | {_number(pair.theirs, spec)}"


def _number(value: float | None, spec: str) -> str:
    return "-" if value is None else f"{value:{spec}}"


def counts(operators: Mapping[str, int]) -> str:
    """ONNX operators and how many nodes of each."""
    return ", ".join(f"{operator} {count}" for operator, count in operators.items())
