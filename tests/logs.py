"""Logs for tests of sinks and readers."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import math
import pathlib
import typing
from collections.abc import Iterable
from typing import Any

from onnxplain.diagnostics import (
    DIFFERENCES,
    Confidence,
    DiagnosticContext,
    DiagnosticOptions,
    Difference,
    Edit,
    Evidence,
    ExportFailed,
    Fix,
    Graph,
    Level,
    Location,
    Log,
    Node,
    Region,
    Rule,
    Tool,
    differences_text,
)
from onnxplain.rules import DataDependentBranch, ExportCutShort, InternalError, TrainingMode, UnsupportedOperator

SOURCE = """\
import torch


class Flip(torch.nn.Module):
    def forward(self, x):
        if x.sum() < 0:
            return -x
        return torch.linalg.foo(x)


model = Flip()  # onnxplain: ignore[OXP1007] Dropout is wanted here.
"""

HOSTILE = "`` ` ``` </details><img src=x onerror=alert(1)> [a](http://evil) **b** _c_ | # \x1b[31m \u202e"
"""Text that a model may contain, and that every sink must show as text."""


GRAPH = Graph(
    nodes=(
        Node("foo", "aten.foo.default", "float32[batch, 3]"),
        Node("linear_1", "aten.linear.default", "float32[batch, 3]"),
        Node("p_weight", "input", "float32[3, 3]"),
        Node("output", "output"),
        Node("(above)", "..."),
    ),
    edges=(("linear_1", "foo"), ("p_weight", "linear_1"), ("foo", "output"), ("(above)", "linear_1")),
    blamed="foo",
)


def context(options: DiagnosticOptions | None = None, *places: Location) -> DiagnosticContext:
    """A context whose clock advances by an eighth of a second with every reading."""
    clock = itertools.count(1_767_225_600, 0.125)
    made = DiagnosticContext(
        tool=Tool("onnxplain", "0.1.0", "https://example.com"),
        subject="Flip",
        options=options or DiagnosticOptions(),
        internal_error=lambda stage, error: InternalError(stage=stage, error=str(error)),
        cut_short=lambda stage, reason: ExportCutShort(stage=stage, reason=reason),
        clock=lambda: float(next(clock)),
        command_line="onnxplain export flip.py:model --report",
        places=lambda: places,
        draw=lambda graph: graph,
    )
    made.environment.update({"python": "3.11.7", "torch": "2.13.0+cpu"})
    return made


def failed(source: str) -> Log:
    """The log of an export with findings of all kinds."""
    at = Location(source, Region(6, 12, 6, 23), "forward", "blocks.0")
    stack = (Location(source, Region(11, 1, 11, 6), "<module>"), at)
    made = context(DiagnosticOptions(levels={"OXP3001": Level.WARNING}))
    with contextlib.suppress(ExportFailed), made.stage("capture"):
        made.event("The strategy non-strict failed; strict is tried.")
        made.report(TrainingMode(layers=("dropout",)), at=Location(source, Region(11)))
        made.report(TrainingMode(layers=("dropout", "norm.0")), at=Location(source, Region(4)))
        made.report(
            UnsupportedOperator(operator="aten::foo"),
            at=Evidence(Location(source, Region(8, 16, 8, 35), "forward", "blocks.0"), node=GRAPH),
            notes=["Inputs of the operator:\nx  float32[2, 3]", "No decomposition of `aten::foo` is known."],
            fixes=[Fix("Write the line with other operators.", Confidence.GUESS)],
        )
        raise made.fail(
            DataDependentBranch(condition="x.sum() < 0"),
            at=Evidence(at, stack, related=(Location(source, Region(4), message="The module is defined here"),)),
            fixes=[
                Fix(
                    "Choose by element with `torch.where`.",
                    Confidence.SAFE,
                    edits=(Edit(source, Region(6, 9, 8, 35), "return torch.where(x.sum() < 0, -x, torch.linalg.foo(x))"),),
                ),
                Fix("Keep both branches.", Confidence.CHANGES_BEHAVIOUR, snippet="torch.cond(x.sum() < 0, negative, positive, (x,))"),
            ],
            cause=RuntimeError("Could not guard on data-dependent expression Eq(u0, 1).\n\n```\nUser code\n```"),
        )
    return made.log()


def hostile(source: str) -> Log:
    """The log of an export in which every text is hostile."""
    made = context()
    at = Location(source, Region(4), HOSTILE, HOSTILE, HOSTILE)
    graph = Graph((Node(HOSTILE, f'"]\n{HOSTILE}', HOSTILE), Node("end", "style a:b#c;", "%%{init}%%")), ((HOSTILE, "end"),), HOSTILE)
    with contextlib.suppress(ExportFailed), made.stage("capture"):
        made.event(HOSTILE)
        row = Difference(HOSTILE, HOSTILE, f"a.{HOSTILE}", 4, 0.5, 0.5, 1e-4, HOSTILE)
        made.attach(
            DIFFERENCES, lambda: differences_text([row, dataclasses.replace(row, module="b", rule="", difference=math.inf)]), logging.ERROR
        )
        raise made.fail(
            UnsupportedOperator(operator=HOSTILE),
            at=Evidence(at, (at, at), related=(at,), node=graph),
            notes=[HOSTILE, f"{HOSTILE}\n{HOSTILE}"],
            fixes=[Fix(HOSTILE, Confidence.GUESS, snippet=HOSTILE), Fix("x", Confidence.GUESS, edits=(Edit(HOSTILE, Region(1), HOSTILE),))],
            cause=RuntimeError(HOSTILE),
        )
    return made.log()


def abroad(source: str) -> Log:
    """The log of a finding on every line of `source`, whose text is not only ASCII."""
    made = context()
    made.subject = "模型😀"
    for number, line in enumerate(pathlib.Path(source).read_text(encoding="utf-8").splitlines(), 1):
        if start := len(line) - len(line.lstrip()) + 1 if line.strip() else 0:
            at = Location(source, Region(number, start, number, len(line) + 1), "前进", "层.0", "这里😀")
            made.report(DataDependentBranch(condition=f"{line.strip()} 😀"), at=at)
    return made.log()


def many(source: str) -> Log:
    """The log of many findings: of one rule, at one line, at several places, with long texts, suppressed, without a place."""
    made = context(None, Location(source, Region(4)))
    for number in range(120):
        made.report(UnsupportedOperator(operator=f"aten::foo_{number}"), at=Location(source, Region(6)))
    for line in (4, 5, 6, 7, 11):
        made.report(TrainingMode(layers=tuple(f"norm.{number}" for number in range(50))), at=Location(source, Region(line)))
    made.report(TrainingMode(layers=("dropout",)), at=Location(source, Region(11)))
    made.report(DataDependentBranch(condition=" and ".join(f"x{number}" for number in range(500))), at=Location(source, Region(4, 1, 8, 9)))
    made.report(DataDependentBranch(condition="self.layers[0](x) > 0"))
    return made.log()


def every_rule(source: str, rules: Iterable[type[Rule]]) -> Log:
    """The log with one finding of each of `rules`."""
    values: dict[object, Any] = {str: "x", int: 2, float: 0.5, bool: True, tuple[str, ...]: ("x", "y")}
    made = context()
    for rule in rules:
        kinds = typing.get_type_hints(rule)
        made.report(rule(**{name: values[kinds[name]] for name in rule.fields()}), at=Location(source, Region(8, 16, 8, 35)))
    return made.log()


def exported(folder: pathlib.Path) -> Log:
    """The log of an export without findings."""
    model = folder / "flip.onnx"
    model.write_bytes(b"\0" * 1_234_567)
    made = context()
    for stage in ("capture", "build", "serialize"):
        with made.stage(stage):
            pass
    made.wrote(model, "resultFile", "5f" * 32)
    return made.finish()
