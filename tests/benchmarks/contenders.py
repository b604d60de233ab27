"""The contenders: bare capture, onnxplain and `torch.onnx.export`, with their defaults, but without reports, verification and files."""

from __future__ import annotations

import logging
import pathlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import onnx_ir as ir
import torch

import onnxplain

from .models import Subject


def capture(subject: Subject) -> torch.export.ExportedProgram:
    """Bare capture, which every exporter on torch.export needs."""
    return torch.export.export(subject.model, subject.inputs.args, dict(subject.inputs.kwargs), strict=False)


def ours(subject: Subject, folder: pathlib.Path | None = None, **options: Any) -> onnxplain.ONNXProgram:
    """An export with onnxplain, to memory or to a folder."""
    return onnxplain.export(
        subject.model, subject.inputs.args, _file(folder, "ours"), kwargs=subject.inputs.kwargs, external_data=True, **options
    )


def theirs(subject: Subject, folder: pathlib.Path | None = None) -> torch.onnx.ONNXProgram:
    """An export with torch's exporter."""
    program = torch.onnx.export(
        subject.model,
        subject.inputs.args,
        _file(folder, "theirs"),
        kwargs=dict(subject.inputs.kwargs),
        dynamo=True,
        external_data=True,
        verbose=False,
        report=False,
        verify=False,
    )
    assert program is not None
    return program


def theirs_after_capture(program: torch.export.ExportedProgram) -> object:
    """What torch's exporter does after the capture."""
    return torch.onnx.export(program, dynamo=True, verbose=False, report=False, verify=False)


EXPORTERS: dict[str, Callable[[Subject, pathlib.Path | None], onnxplain.ONNXProgram | torch.onnx.ONNXProgram]] = {
    "ours": ours,
    "theirs": theirs,
}


def nodes(model: ir.Model) -> Iterator[ir.Node]:
    """All nodes, including those of subgraphs and functions. Constants do not count: they may be nodes or initializers."""
    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for graph in graphs:
        yield from (node for node in graph.all_nodes() if node.op_type != "Constant")


def _file(folder: pathlib.Path | None, name: str) -> pathlib.Path | None:
    return None if folder is None else folder / f"{name}.onnx"


def hush() -> None:
    """Silences other libraries in this process: their warnings would hide the results."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
