"""Brings a graph to the ONNX opset that was asked for."""

from __future__ import annotations

import onnx
import onnx_ir as ir

from onnxplain.diagnostics import Confidence, DiagnosticContext, Fix
from onnxplain.rules import OperatorNeedsNewerOpset

from . import where
from .registry import qualified_name

_REWRITTEN = {"DFT": 20, "GridSample": 20, "GroupNormalization": 21}
"""Operators that mean something else, or are called otherwise, from an opset on. All others between 13 and 23 only took more dtypes or
optional arguments, so a node written for an older version is a node of the newer one (read in onnx 1.23)."""


def bring_to(context: DiagnosticContext, model: ir.Model, opset: int) -> None:
    """Makes `model` one of ONNX opset `opset`, and reports each operator that this opset does not have yet."""
    too_new: list[tuple[ir.Node, int]] = []
    rewrite = False
    for node in model.graph.all_nodes():
        if node.domain != "":
            model.graph.opset_imports.setdefault(node.domain, node.version or 1)
            continue
        version = node.version or onnx.defs.get_schema(node.op_type, 18, "").since_version
        if version > opset:
            too_new.append((node, version))
        rewrite = rewrite or version < _REWRITTEN.get(node.op_type, 0) <= opset
        node.version = None
    for node, version in too_new:
        origin = node.meta.get("fx_node")
        name = qualified_name(origin.target) if origin else f"onnx::{node.op_type}"
        enough = max(needed for _, needed in too_new)
        context.report(
            OperatorNeedsNewerOpset(operator=name, needed=version, asked=opset),
            at=where.at_node(origin) if origin else None,
            fixes=[Fix("Export to an opset that has all operators.", Confidence.SAFE, snippet=f"opset_version={enough}")],
            blocking=True,
        )
    if too_new:
        raise context.stop()
    if rewrite:
        _rewrite(model, opset)
    model.graph.opset_imports[""] = opset


def _rewrite(model: ir.Model, opset: int) -> None:
    from onnxscript import version_converter

    model.graph.opset_imports[""] = 18
    version_converter.convert_version(model, opset)
