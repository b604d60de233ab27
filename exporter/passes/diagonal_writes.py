"""`fill_diagonal_`, which has no operator without side effects, as a write to a view of the diagonal."""

from __future__ import annotations

import torch

from .graphs import arguments, inherit

_aten = torch.ops.aten


def write_to_views(module: torch.fx.GraphModule) -> None:
    """Replaces each `fill_diagonal_` that does not begin anew below a square."""
    for node in list(module.graph.nodes):
        if node.target is not _aten.fill_diagonal_.default:
            continue
        given = arguments(node)
        tensor, value = given["self"], given["fill_value"]
        shown = tensor.meta["val"]
        if given.get("wrap") and not (isinstance(shown.shape[0], int) and shown.shape[0] <= shown.shape[-1]):
            continue
        with module.graph.inserting_before(node):
            view = tensor
            # NOTE: each diagonal becomes the last dim.
            for _ in range(shown.dim() - 1):
                shown = shown.diagonal(0, 0, -1)
                view = module.graph.call_function(_aten.diagonal.default, (view, 0, 0, -1))
                view.meta["val"] = shown
                inherit(node, view)
            written = module.graph.call_function(_aten.fill_.Scalar, (view, value))
            written.meta["val"] = shown
            inherit(node, written)
        node.replace_all_uses_with(tensor)
        module.graph.erase_node(node)
