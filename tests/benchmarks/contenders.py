"""Who is compared: bare capture, onnxplain and `torch.onnx.export`, each without reports, verification or files, else with defaults."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import onnx_ir as ir
import torch

import onnxplain

from .models import Subject


def capture(subject: Subject) -> torch.export.ExportedProgram:
    """What no exporter on torch.export can do without."""
    return torch.export.export(subject.model, subject.inputs.args, dict(subject.inputs.kwargs), strict=False)


def ours(subject: Subject, **options: Any) -> onnxplain.ONNXProgram:
    """An export with onnxplain, to memory."""
    return onnxplain.export(subject.model, subject.inputs.args, kwargs=subject.inputs.kwargs, **options)


def theirs(subject: Subject) -> torch.onnx.ONNXProgram:
    """The same with torch's own exporter."""
    program = torch.onnx.export(
        subject.model, subject.inputs.args, kwargs=dict(subject.inputs.kwargs), dynamo=True, verbose=False, report=False, verify=False
    )
    assert program is not None
    return program


EXPORTERS: dict[str, Callable[[Subject], onnxplain.ONNXProgram | torch.onnx.ONNXProgram]] = {"ours": ours, "theirs": theirs}


def nodes(model: ir.Model) -> Iterator[ir.Node]:
    """All nodes, those of subgraphs and functions included. Constants are none: whether they are nodes or initializers is spelling."""
    graphs: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for graph in graphs:
        yield from (node for node in graph.all_nodes() if node.op_type != "Constant")


def hush() -> None:
    """Silences other libraries in this process: their warnings would be all that one sees."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
