"""Measures where the time and the memory of a run go: ONNX Runtime's profile, joined with what an export knows of each node."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import pathlib
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from onnxplain.diagnostics import OnnxExporterError, visible
from onnxplain.memory import Origin, origin_of, readable

from .options import ONNXRuntimeOptions, considerate
from .sessions import WriteModel, run, session

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = "(unknown)"
"""The line and the module of nodes that ONNX Runtime adds, or of a model that onnxplain did not export."""
_SUFFIX = "_kernel_time"
_COLUMNS = ("by", "name", "self_seconds", "share", "calls", "self_bytes")
_WIDTH = 60


@dataclasses.dataclass(frozen=True, slots=True)
class ProfileRow:
    """What the nodes of an operator, of a line or of a module take, in one run.

    Attributes:
        name: The operator, the line or the module.
        self_seconds: The seconds that its nodes run, without those in their graphs, such as the body of a loop.
        calls: How often one of them runs.
        self_bytes: The bytes of all tensors that they make.
    """

    name: str
    self_seconds: float
    calls: float
    self_bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Profile:
    """Where time and memory go in a run of a model, the longest first.

    Attributes:
        operators: By the operator that ONNX Runtime runs; its optimizer makes operators such as `FusedMatMul`.
        lines: By the user's line, such as `model.py:12`.
        modules: By the path of the module, such as `encoder.layers.3`.
        seconds: The seconds of all nodes in one run.
        runs: The number of runs that were measured.
    """

    operators: tuple[ProfileRow, ...]
    lines: tuple[ProfileRow, ...]
    modules: tuple[ProfileRow, ...]
    seconds: float
    runs: int

    def tables(self) -> Mapping[str, tuple[ProfileRow, ...]]:
        """The three tables, by what their rows stand for."""
        return {"operator": self.operators, "line": self.lines, "module": self.modules}

    def to_csv(self) -> str:
        """All tables as one, in CSV with a header. The column `by` is operator, line or module."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(self._records())
        return text.getvalue()

    def to_dataframe(self) -> pd.DataFrame:
        """All tables as one DataFrame of pandas, with the columns of `to_csv`.

        Raises:
            OnnxExporterError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise OnnxExporterError("to_dataframe needs pandas, which is not installed: pip install pandas") from error
        return pd.DataFrame(list(self._records()), columns=list(_COLUMNS))

    def __str__(self) -> str:
        return "\n".join(line for by, rows in self.tables().items() for line in self._text(by, rows))

    def _records(self) -> Iterator[tuple[str, str, float, float, float, int]]:
        for by, rows in self.tables().items():
            for row in rows:
                yield by, row.name, row.self_seconds, self._share(row), row.calls, row.self_bytes

    def _share(self, row: ProfileRow) -> float:
        return row.self_seconds / self.seconds if self.seconds else 0.0

    def _text(self, by: str, rows: Iterable[ProfileRow]) -> Iterator[str]:
        yield f"{by:{_WIDTH}}  {'self time':>12}  {'share':>6}  {'calls':>7}  {'self memory':>11}"
        for row in rows:
            name = visible(row.name)
            name = name if len(name) <= _WIDTH else f"...{name[3 - _WIDTH :]}"
            time = f"{row.self_seconds * 1000:.3f} ms"
            yield f"{name:{_WIDTH}}  {time:>12}  {self._share(row):>6.1%}  {row.calls:>7g}  {readable(row.self_bytes):>11}"
        yield ""


def profile(
    model: ir.Model, inputs: Sequence[torch.Tensor | complex], *, write: WriteModel, path: pathlib.Path | None = None, runs: int = 1
) -> Profile:
    """Runs a model in ONNX Runtime on the CPU, once without and then `runs` times with a measurement.

    Args:
        model: The model.
        inputs: As for `run`.
        write: As for `session`.
        path: Where the model was saved, if it was.
        runs: How often it runs.
    """
    with tempfile.TemporaryDirectory() as folder:
        options = considerate()
        options.enable_profiling = True
        options.profile_file_prefix = str(pathlib.Path(folder) / "profile")
        optimized = pathlib.Path(folder) / "optimized.onnx"
        options.optimized_model_filepath = str(optimized)
        # NOTE: a model with its weights may not fit into one protobuf message.
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "optimized.data")
        running = session(model, path, ONNXRuntimeOptions(session_options=options).make, write=write)
        for _ in range(runs + 1):
            run(running, inputs)
        events = json.loads(pathlib.Path(running.end_profiling()).read_text(encoding="utf-8"))
        origins = _origins(model, ir.load(optimized))
    return _joined(events, origins, runs)


def _origins(model: ir.Model, optimized: ir.Model) -> dict[str, Origin]:
    """Where the nodes of the optimized model come from, by their names. A node that takes the place of several makes what the last made."""
    nodes = list(model.graph.all_nodes())
    makers = {value.name: origin_of(node) for node in nodes for value in node.outputs if value.name}
    found = {node.name: origin_of(node) for node in nodes if node.name}
    for node in optimized.graph.all_nodes():
        made = next((makers[value.name] for value in node.outputs if value.name in makers), None)
        if node.name and made is not None:
            found[node.name] = made
    return {name: origin for name, origin in found.items() if name is not None}


def _joined(events: Sequence[Mapping[str, Any]], origins: Mapping[str, Origin], runs: int) -> Profile:
    begin = min(sorted(event["ts"] for event in events if event["name"] == "model_run")[-runs:], default=0)
    nodes = (event for event in events if event.get("cat") == "Node" and event["ts"] >= begin)
    kernels = [event for event in nodes if event["name"].endswith(_SUFFIX)]
    tables: dict[str, dict[str, list[tuple[float, int]]]] = {by: defaultdict(list) for by in ("operator", "line", "module")}
    for event, seconds in _self_times(kernels):
        facts = event.get("args", {})
        origin = origins.get(event["name"].removesuffix(_SUFFIX), Origin(""))
        names = {"operator": facts.get("op_name") or UNKNOWN, "line": origin.source or UNKNOWN, "module": origin.module or UNKNOWN}
        for by, name in names.items():
            tables[by][str(name)].append((seconds, int(facts.get("output_size") or 0)))
    rows = {by: _rows(table, runs) for by, table in tables.items()}
    total = sum(row.self_seconds for row in rows["operator"])
    return Profile(rows["operator"], rows["line"], rows["module"], total, runs)


def _self_times(kernels: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], float]]:
    """The seconds of each event, without those of the events within it."""
    around: list[tuple[Mapping[str, Any], float, list[float]]] = []
    for event in sorted(kernels, key=lambda event: (event["ts"], -event["dur"])):
        while around and around[-1][1] <= event["ts"]:
            ended, _, inner = around.pop()
            yield ended, (ended["dur"] - sum(inner)) / 1e6
        if around:
            around[-1][2].append(event["dur"])
        around.append((event, event["ts"] + event["dur"], []))
    for event, _, inner in around:
        yield event, max(0.0, event["dur"] - sum(inner)) / 1e6


def _rows(table: Mapping[str, Sequence[tuple[float, int]]], runs: int) -> tuple[ProfileRow, ...]:
    rows = (
        ProfileRow(name, sum(seconds for seconds, _ in each) / runs, len(each) / runs, sum(size for _, size in each) // runs)
        for name, each in table.items()
    )
    return tuple(sorted(rows, key=lambda row: -row.self_seconds))
