"""Brings a graph to the ONNX opset of the request."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import onnx
import onnx_ir as ir

from onnxplain.diagnostics import Confidence, DiagnosticContext, Evidence, Fix
from onnxplain.registry import qualified_name
from onnxplain.request import DEFAULT_OPSET, Request
from onnxplain.rules import OperatorNeedsNewerOpset, OpsetUnknown
from onnxplain.source import call_sites, locations
from onnxplain.source.call_sites import SourceExpression

from . import older
from .older import BUILT

__all__ = ["BUILT", "bring_to", "check", "lower"]

_REWRITTEN = {"DFT": 20, "GridSample": 20, "GroupNormalization": 21}
"""Operators that mean something else, or take other arguments, from an opset on. Between opsets 13 and 23 all others only gained dtypes or
optional arguments, so a node for an older version is valid in the newer one (read in onnx 1.23)."""


def check(context: DiagnosticContext, request: Request) -> None:
    """Checks that ONNX has the opset, before the work is done."""
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= request.opset_version <= newest:
        place = _asked_for(request)
        unknown = OpsetUnknown(asked=request.opset_version, newest=newest, onnx=onnx.__version__)
        raise context.fail(unknown, at=call_sites.at(place, request), fixes=[_other(place, DEFAULT_OPSET, "Export to the default opset.")])


def bring_to(context: DiagnosticContext, model: ir.Model, request: Request) -> None:
    """Makes `model` a model of the requested ONNX opset, or of opset 18 if an older one is requested; `lower` does the rest.

    It reports each operator that the opset does not have yet.
    """
    opset = max(request.opset_version, BUILT)
    too_new: list[tuple[ir.Node, int]] = []
    rewrite = False
    for node in model.graph.all_nodes():
        if node.domain != "":
            model.graph.opset_imports.setdefault(node.domain, node.version or 1)
            continue
        version = node.version or onnx.defs.get_schema(node.op_type, BUILT, "").since_version
        if version > opset:
            too_new.append((node, version))
        rewrite = rewrite or version < _REWRITTEN.get(node.op_type, version) <= opset
        node.version = None
    _refuse(context, request, too_new)
    if rewrite:
        _rewrite(model, opset)
    model.graph.opset_imports[""] = opset


def lower(context: DiagnosticContext, model: ir.Model, request: Request) -> None:
    """Makes a model of opset 18 one of the older opset that is requested, and reports each operator that it cannot say.

    It comes after the optimization, which knows the operators of opset 18.
    """
    if request.opset_version >= BUILT:
        return
    refused = older.lower(model, max(request.opset_version, older.OLDEST))
    if request.opset_version < older.OLDEST and not refused:
        refused = [(node, older.OLDEST) for node in list(model.graph)[:1]]
    _refuse(context, request, refused)


def _refuse(context: DiagnosticContext, request: Request, too_new: Sequence[tuple[ir.Node, int]]) -> None:
    place = _asked_for(request) if too_new else None
    for node, version in too_new:
        origin = node.meta.get(locations.FX_NODE)
        name = qualified_name(origin.target) if origin else f"onnx::{node.op_type}"
        enough = max(needed for _, needed in too_new)
        at = locations.at_node(origin) if origin else Evidence(request.caller)
        if place is not None:
            calls = (at.location.saying("the operator is called here"),) if at.location is not None else ()
            at = dataclasses.replace(at, location=place.place, related=calls)
        context.report(
            OperatorNeedsNewerOpset(operator=name, needed=version, asked=request.opset_version),
            at=at,
            fixes=[_other(place, enough, "Export to an opset that has all operators.")],
            blocking=True,
        )
    if too_new:
        raise context.stop()


def _asked_for(request: Request) -> SourceExpression | None:
    return call_sites.argument(request, "opset_version", lambda node: call_sites.literal(node) == request.opset_version)


def _other(place: SourceExpression | None, opset: int, description: str) -> Fix:
    edits = () if place is None else place.replaced(str(opset))
    return Fix(description, Confidence.SAFE, edits=edits, snippet="" if edits else f"opset_version={opset}")


def _rewrite(model: ir.Model, opset: int) -> None:
    from onnxscript import version_converter

    model.graph.opset_imports[""] = BUILT
    # NOTE: it knows opsets up to 25 only (onnxscript 0.7.2), and no operator changes after the last of these.
    version_converter.convert_version(model, min(opset, max(_REWRITTEN.values())))
    for node in model.graph.all_nodes():
        node.version = None
