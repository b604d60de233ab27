"""Where ONNX nodes come from: the FX node in `meta`, and the user's line, the module and the operator in `metadata_props`."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir
import torch

from onnxplain.diagnostics import shown_path
from onnxplain.registry import qualified_name
from onnxplain.source import locations
from onnxplain.torch_internals.operators import OpOverload

_PREFIX = "onnxplain"
"""The prefix of the keys: `.source`, `.module`, `.fx_node`, `.operator`, and `.parent`, the operator that was decomposed into it."""


def add_origin(node: torch.fx.Node, made: Iterable[ir.Node]) -> None:
    """Records `node` as the origin of ONNX nodes."""
    facts = {"fx_node": node.name, "operator": qualified_name(node.target)}
    called = node.meta.get("original_aten")
    if isinstance(called, OpOverload) and called is not node.target:
        facts["parent"] = qualified_name(called)
    place = locations.at_node(node).location
    if place is not None:
        facts["source"] = f"{shown_path(place.file)}:{place.line}"
        facts["module"] = place.module
    entries = {f"{_PREFIX}.{key}": text for key, text in facts.items() if text}
    for each in made:
        # NOTE: the nodes in a graph of control flow already have their origins.
        if locations.FX_NODE not in each.meta:
            each.meta[locations.FX_NODE] = node
            each.metadata_props.update(entries)
