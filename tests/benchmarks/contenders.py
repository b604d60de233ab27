"""Who is compared: bare capture, onnxplain and `torch.onnx.export`, each with everything optional off and the defaults for the rest."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import onnx_ir as ir
import onnxplain
import torch

from .models import Subject


def capture(subject: Subject) -> torch.export.ExportedProgram:
    """What no exporter on torch.export can do without."""
    return torch.export.export(subject.model, subject.inputs.args, dict(subject.inputs.kwargs), strict=False)


def ours(subject: Subject, **options: Any) -> onnxplain.ONNXProgram:
    """An export with onnxplain, to memory."""
    return onnxplain.export(subject.model, subject.inputs.args, kwargs=subject.inputs.kwargs, **options)


def theirs(subject: Subject) -> torch.onnx.ONNXProgram:
    """The same with torch's own exporter."""
    with _quiet():
        program = torch.onnx.export(
            subject.model, subject.inputs.args, kwargs=dict(subject.inputs.kwargs), dynamo=True, verbose=False, report=False, verify=False
        )
    assert program is not None
    return program


EXPORTERS: dict[str, Callable[[Subject], onnxplain.ONNXProgram | torch.onnx.ONNXProgram]] = {"ours": ours, "theirs": theirs}


def nodes(model: ir.Model) -> Iterator[ir.Node]:
    """All nodes, those of subgraphs and functions included. Constants are none: whether they are nodes or initializers is spelling."""
    for graph in (model.graph, *model.functions.values()):
        yield from (node for node in graph.all_nodes() if node.op_type != "Constant")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
