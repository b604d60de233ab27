"""Merges a Pad with zeros into the convolution after it."""

from __future__ import annotations

import onnx_ir as ir

from onnxplain.recording import small_constant


def pad_into_conv(model: ir.Model) -> None:
    """Removes each Pad of the spatial dims with zeros that only a Conv reads: the Conv pads its input itself."""
    for node in list(model.graph.all_nodes()):
        if node.op_type != "Pad" or node.domain:
            continue
        (result,) = node.outputs
        uses = result.uses()
        if len(uses) != 1 or result.is_graph_output():
            continue
        ((conv, index),) = uses
        before = _zeros_before(node)
        if before is None or index != 0 or conv.op_type != "Conv" or conv.domain or "auto_pad" in conv.attributes or node.graph is None:
            continue
        own = conv.attributes["pads"].as_ints() if "pads" in conv.attributes else [0] * len(before)
        conv.attributes["pads"] = ir.AttrInt64s("pads", [one + other for one, other in zip(own, before, strict=True)])
        conv.replace_input_with(0, node.inputs[0])
        node.graph.remove(node, safe=True)


def _zeros_before(node: ir.Node) -> list[int] | None:
    """How many zeros a Pad adds to each spatial dim, at the front of each and then at the back of each; None if it does anything else."""
    data, pads, value, axes = (*node.inputs, None, None, None)[:4]
    mode = node.attributes["mode"].as_string() if "mode" in node.attributes else "constant"
    numbers = None if pads is None else small_constant(pads)
    if data is None or numbers is None or mode != "constant" or axes is not None or (numbers < 0).any():
        return None
    with_number = None if value is None else small_constant(value)
    if value is not None and (with_number is None or with_number.any()):
        return None
    front, back = numbers[: numbers.size // 2].tolist(), numbers[numbers.size // 2 :].tolist()
    return None if any((*front[:2], *back[:2])) else [*front[2:], *back[2:]]
