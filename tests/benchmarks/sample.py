"""The cost of first and later exports over the sample of architectures, as multiples of bare capture."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table

import onnxplain

from . import contenders, models, show
from .architectures import FAMILIES, Architecture
from .verdict import FIRST_OVER_CAPTURE, Verdict, quantile


@dataclass(frozen=True)
class Cost:
    """The cost of exporting one architecture.

    Attributes:
        family: Its family.
        name: Its name.
        capture: CPU seconds of bare capture, the least of all rounds.
        first: Its first export in the process, as a multiple of its first capture.
        later: The cheapest of its later exports, as a multiple of `capture`.
        stages: Seconds of the stages of the cheapest later export.
        is_traced_twice: Whether an export traces its whole program a second time.
    """

    family: str
    name: str
    capture: float
    first: float
    later: float
    stages: dict[str, float]
    is_traced_twice: bool


def compare(console: Console, families: Sequence[str], repeat: int) -> None:
    """Prints the distribution of export / capture over the architectures of the families, in CPU time.

    The process is warm: it has exported an LSTM before. Captures and exports of an architecture alternate.
    """
    contenders.ours(models.build("lstm"))
    costs: list[Cost] = []
    failures: dict[str, str] = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for family in families:
        for name, builder in FAMILIES[family].items():
            try:
                costs.append(_cost(family, name, builder, repeat))
            except onnxplain.ExportFailed as failed:
                failures[name] = str(failed).splitlines()[0]
    torch.set_num_threads(threads)
    _print(console, costs, failures)


def _cost(family: str, name: str, builder: Architecture, repeat: int) -> Cost:
    torch.manual_seed(0)
    subject = builder()
    subject.model.eval()
    captures, exports, stages = [], [], []
    # NOTE: a model imports modules when it first runs. Captures and exports differ in options on which torch's cache of fake tensors
    # depends, so neither is faster for coming second.
    subject.inputs.outputs_of(subject.model)
    with _second_traces() as traces:
        for _ in range(repeat + 1):
            captures.append(_processor_seconds(lambda: contenders.capture(subject)))
            exports.append(_processor_seconds(lambda: stages.append(contenders.ours(subject).diagnostics.stages)))
    least, later = min(captures), exports[1:]
    best = stages[1 + later.index(min(later))]
    in_stages = {stage.name: stage.seconds for stage in best}
    return Cost(family, name, least, exports[0] / captures[0], min(later) / least, in_stages, bool(traces))


@contextmanager
def _second_traces() -> Iterator[list[object]]:
    """A list with one entry for each call that traces a whole program again."""
    traces: list[object] = []
    original = torch.export.ExportedProgram.run_decompositions

    def counted(program: torch.export.ExportedProgram, *args: object, **kwargs: object) -> torch.export.ExportedProgram:
        traces.append(program)
        return original(program, *args, **kwargs)

    torch.export.ExportedProgram.run_decompositions = counted
    try:
        yield traces
    finally:
        torch.export.ExportedProgram.run_decompositions = original


def _processor_seconds(call: Callable[[], object]) -> float:
    gc.collect()
    started = time.process_time()
    call()
    return time.process_time() - started


def _print(console: Console, costs: Sequence[Cost], failures: dict[str, str]) -> None:
    table = Table("family", "model", "capture ms", "first", "later", *(f"{stage} ms" for stage in show.STAGES), "traced twice")
    for cost in costs:
        stages = (f"{1000 * cost.stages.get(stage, 0):.0f}" for stage in show.STAGES)
        numbers = (f"{1000 * cost.capture:.0f}", f"{cost.first:.2f}", f"{cost.later:.2f}")
        table.add_row(cost.family, cost.name, *numbers, *stages, "yes" if cost.is_traced_twice else "")
    console.print(table)
    for name, failure in failures.items():
        console.print(f"{name}: onnxplain fails: {failure}", markup=False)
    if not costs:
        return
    summary = Table("export / capture", "models", "p50", "p75", "p90", "worst", title="CPU time", title_justify="left")
    for title, ratios in (("first export", [cost.first for cost in costs]), ("later export", [cost.later for cost in costs])):
        summary.add_row(title, str(len(ratios)), *(f"{quantile(ratios, share):.2f}" for share in (0.5, 0.75, 0.9, 1.0)))
    console.print(summary)
    console.print(f"{sum(cost.is_traced_twice for cost in costs)} of {len(costs)} programs are traced twice")
    first = [cost.first for cost in costs]
    for share, limit in FIRST_OVER_CAPTURE.items():
        reached = quantile(first, share)
        show.verdict(console, Verdict(f"first export / capture, p{100 * share:.0f} <= {limit}", f"{reached:.2f}", reached <= limit))
