"""Which values of a graph may share memory, so that a write to one changes another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from onnxplain.torch_internals.operators import OpOverload, is_composite, schema

# fmt: off
_FRESH = frozenset({
    "aten::adaptive_avg_pool1d", "aten::adaptive_avg_pool2d", "aten::adaptive_avg_pool3d", "aten::avg_pool1d", "aten::batch_norm",
    "aten::bilinear", "aten::binary_cross_entropy_with_logits", "aten::conv1d", "aten::conv2d", "aten::conv3d",
    "aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d", "aten::cosine_similarity",
    "aten::cross_entropy_loss", "aten::cumulative_trapezoid", "aten::embedding_bag", "aten::group_norm", "aten::gru",
    "aten::instance_norm", "aten::layer_norm", "aten::linear", "aten::log_softmax", "aten::lstm", "aten::matmul",
    "aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d", "aten::mish", "aten::nll_loss_nd", "aten::one_hot", "aten::relu6",
    "aten::rms_norm", "aten::rnn_relu", "aten::rnn_tanh", "aten::scaled_dot_product_attention", "aten::selu", "aten::softmax",
    "aten::std", "aten::upsample_bicubic2d", "aten::upsample_bilinear2d", "aten::upsample_linear1d", "aten::upsample_nearest1d",
    "aten::upsample_nearest2d", "aten::upsample_nearest3d", "aten::upsample_trilinear3d", "aten::var", "aten::where",
})
# fmt: on
"""Composite operators whose result is new memory. All other composite operators may return a view of an argument, or the argument itself
(`dropout` in evaluation does), even if their schema does not say so."""


class Aliases:
    """Groups the values of a graph by the memory that they may share.

    Args:
        nodes: All nodes of the graph, in order.
    """

    def __init__(self, nodes: Sequence[torch.fx.Node]) -> None:
        self._position = {node: position for position, node in enumerate(nodes)}
        self._groups: dict[torch.fx.Node, set[torch.fx.Node]] = {}
        for node in nodes:
            group = {node}
            for source in _shares_memory_with(node):
                group |= self._groups.get(source, {source})
            for member in group:
                self._groups[member] = group

    def is_later(self, node: torch.fx.Node, than: torch.fx.Node) -> bool:
        """Whether `node` runs after `than`."""
        return self._position[node] > self._position[than]

    def seen_later(self, written: torch.fx.Node, writer: torch.fx.Node) -> bool:
        """Whether a node after `writer` may read the memory of `written` through a value other than `written` and the writer's result.

        The caller may always read the memory of inputs, weights and constants.
        """
        for member in self._groups[written]:
            if member.op != "call_function":
                return True
            # NOTE: only values from before the write count. Later ones come from `written`, or from one of them that is used later.
            if member is not written and self.is_later(writer, member) and self._used_after(member, writer):
                return True
        return False

    def renew(self, node: torch.fx.Node) -> None:
        """Records that the result of `node` is new memory from now on, and that later values share it instead of the argument's memory."""
        later = {member for member in self._groups[node] if member is node or self.is_later(member, node)}
        for member in later:
            self._groups[member] = later

    def _used_after(self, node: torch.fx.Node, writer: torch.fx.Node) -> bool:
        return any(user is not writer and self.is_later(user, writer) for user in node.users)


def _shares_memory_with(node: torch.fx.Node) -> Iterable[torch.fx.Node]:
    target = node.target
    if node.op != "call_function":
        return ()
    if not isinstance(target, OpOverload):
        # NOTE: the selection of one of several results, or a higher-order operator.
        return node.all_input_nodes
    described = schema(target)
    if any(returned.alias_info is not None for returned in described.returns):
        named = dict(zip((argument.name for argument in described.arguments), node.args, strict=False)) | dict(node.kwargs)
        shared = [named.get(argument.name) for argument in described.arguments if argument.alias_info is not None]
        return [source for source in shared if isinstance(source, torch.fx.Node)] or node.all_input_nodes
    return node.all_input_nodes if is_composite(target) and described.name not in _FRESH else ()
