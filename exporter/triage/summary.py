"""The outcome of a triage as a table: which fixes unblock the most models, and what became of the models."""

from __future__ import annotations

import collections
import urllib.parse
from collections.abc import Iterator, Sequence

from onnxplain.diagnostics import Span, shown_path, visible

from .clusters import Cluster
from .run import Triaged
from .verdicts import OUTCOMES, Verdict

_SHOWN = 10
"""Clusters that the terminal shows."""
_LISTED = 100
"""Clusters, and models, that the markdown lists."""
_CELL = 90
"""Characters of a message in a table."""


def to_lines(triaged: Triaged) -> Iterator[list[Span]]:
    """The clusters as a table, and the counts."""
    if triaged.clusters:
        yield [("The fixes that unblock the most models:", "headline")]
        rows = [_row(each) for each in triaged.clusters[:_SHOWN]]
        heads = ("models", "alone", "rule", "cause", "smallest model", "what it says there")
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        yield [(_line(heads, widths), "faint")]
        yield from ([(_line(row, widths), "")] for row in rows)
        if len(triaged.clusters) > _SHOWN:
            yield [(f"and {len(triaged.clusters) - _SHOWN} further causes, in summary.md", "faint")]
        yield []
    for name, path in triaged.scripts.items():
        yield [(visible(f"{name} fails alike in {shown_path(str(path))}"), "faint")]
    if triaged.flaky:
        models = sorted({model for model, _ in triaged.flaky})
        yield [(visible(f"Flaky, with other findings in each export: {_several(models)}"), "label")]
    yield [(_counts(triaged), "headline" if triaged.succeeded else "error")]


def to_markdown(triaged: Triaged) -> str:
    """The clusters and the models that were not exported as markdown, for the summary of a job."""
    parts = ["# Triage", "", _counts(triaged), ""]
    if triaged.clusters:
        parts += [
            "## The fixes that unblock the most models",
            "",
            "A model that a cause blocks alone exports once it is fixed.",
            "",
            *_table(("Models", "Alone", "Rule", "Cause", "Smallest model", "What it says there"), map(_row, triaged.clusters[:_LISTED])),
            *_more(len(triaged.clusters) - _LISTED, "causes"),
        ]
    parts += _by_family(triaged)
    if triaged.scripts:
        parts += ["## Scripts that fail alike", "", *_scripts(triaged)]
    failed = [verdict for verdict in triaged.verdicts if verdict.outcome != "exported"]
    if failed:
        rows = (
            (
                verdict.name,
                verdict.outcome,
                f"{verdict.seconds:.1f}",
                ", ".join(sorted({each.rule for each in verdict.findings if each.fails})),
            )
            for verdict in failed[:_LISTED]
        )
        parts += ["## Models that were not exported", "", *_table(("Model", "Outcome", "Seconds", "Rules"), rows)]
        parts += _more(len(failed) - _LISTED, "models")
    if triaged.flaky:
        models = sorted({model for model, _ in triaged.flaky})[:_LISTED]
        parts += ["## Flaky models", "", "Their findings differ between two exports of the same input.", ""]
        parts += _table(("Model",), ((model,) for model in models))
    return "\n".join(parts)


def _scripts(triaged: Triaged) -> list[str]:
    """A list of links, in the order of the causes."""
    # NOTE: as in `_table`.
    from onnxplain.diagnostics import markdown

    links = (
        f"- {markdown.cell(visible(f'{each.rule} {each.cause}'))}: {markdown.cell(each.first)} in "
        f"[{path.name}](logs/{urllib.parse.quote(path.name)})"
        for each in triaged.clusters
        if (path := triaged.scripts.get(each.first))
    )
    return [*links, ""]


def _by_family(triaged: Triaged) -> list[str]:
    """How many models of each family were exported, if there are families with several."""
    families = {model.name: model.family for model in triaged.models}
    found: dict[str, list[Verdict]] = {}
    for verdict in triaged.verdicts:
        found.setdefault(families[verdict.name], []).append(verdict)
    if not 1 < len(found) < len(triaged.verdicts):
        return []
    rows = sorted((-sum(each.outcome != "exported" for each in verdicts), family) for family, verdicts in found.items())
    cells = ((family, str(len(found[family])), str(len(found[family]) + failed)) for failed, family in rows[:_LISTED])
    return ["## Models by family", "", *_table(("Family", "Models", "Exported"), cells), *_more(len(rows) - _LISTED, "families")]


def _row(cluster: Cluster) -> tuple[str, ...]:
    message = cluster.message if len(cluster.message) <= _CELL else f"{cluster.message[: _CELL - 3]}..."
    cause = cluster.cause if cluster.cause != cluster.message else ""
    cells = (str(len(cluster.models)), str(cluster.alone), f"{cluster.rule} {cluster.title}", cause, cluster.smallest, message)
    return tuple(map(visible, cells))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _table(heads: Sequence[str], rows: Iterator[tuple[str, ...]]) -> list[str]:
    # NOTE: the help of the command needs none of its libraries.
    from onnxplain.diagnostics import markdown

    lines = [f"| {' | '.join(map(markdown.cell, row))} |" for row in rows]
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *lines, ""]


def _more(count: int, what: str) -> list[str]:
    return [f"And {count} further {what}.", ""] if count > 0 else []


def _several(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _counts(triaged: Triaged) -> str:
    found = collections.Counter(verdict.outcome for verdict in triaged.verdicts)
    told = ", ".join(f"{found[outcome]} {outcome}" for outcome in OUTCOMES if found[outcome])
    unchanged = len(triaged.verdicts) - triaged.exported_now
    known = f" {unchanged} of them have not changed since an earlier run." if unchanged else ""
    return f"{len(triaged.verdicts)} {'model' if len(triaged.verdicts) == 1 else 'models'}: {told}.{known}"
