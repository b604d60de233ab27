"""Which values of a graph may share memory, so that a write to one changes another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from onnxplain.torch_internals.fake_tensors import mode_of, share_memory
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
"""Composite operators whose result is new memory. All other composite operators may return a view of an argument, or the argument itself,
even if their schema does not say so."""


class UnknownMemory(Exception):
    """Nobody can say whose memory the result of a node has."""


def groups(nodes: Sequence[torch.fx.Node], written: Sequence[torch.fx.Node]) -> set[torch.fx.Node]:
    """The nodes whose results may share memory with one of `written`.

    Args:
        nodes: All nodes of the graph, in order.
        written: Some of them.
    """
    group_of: dict[torch.fx.Node, set[torch.fx.Node]] = {}
    for node in nodes:
        group = {node}
        for source in may_share_memory_with(node):
            other = group_of.get(source)
            if other is not None and other is not group:
                group, other = (group, other) if len(group) > len(other) else (other, group)
                group |= other
                group_of.update(dict.fromkeys(other, group))
        group_of[node] = group
    return set().union(*(group_of[node] for node in written))


def may_share_memory_with(node: torch.fx.Node) -> Iterable[torch.fx.Node]:
    """The inputs of `node` whose memory its result may have."""
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


def selects_new_memory(node: torch.fx.Node) -> bool:
    """Whether `node` selects a result that is new memory, of an operator whose other results may be views."""
    whole, index = node.args
    if not isinstance(whole, torch.fx.Node) or not isinstance(whole.target, OpOverload) or not isinstance(index, int):
        return False
    returns = schema(whole.target).returns
    return len(returns) > 1 and returns[index].alias_info is None


def shares_memory_with(node: torch.fx.Node) -> torch.fx.Node | None:
    """The input of `node`, an operator, whose memory its result has; None if the result is new memory.

    Raises:
        UnknownMemory: The result may have the memory of several inputs.
    """
    sources = list(may_share_memory_with(node))
    if sources and isinstance(node.target, OpOverload) and is_composite(node.target):
        sources = _sources_of_composite(node, sources)
    if len(sources) > 1:
        raise UnknownMemory
    return sources[0] if sources else None


def _sources_of_composite(node: torch.fx.Node, sources: Sequence[torch.fx.Node]) -> list[torch.fx.Node]:
    """Those of `sources` that the result shares memory with: what `reshape` returns depends on the strides of its argument."""
    expected = [value for value in _leaves(node.meta.get("val")) if isinstance(value, torch.Tensor)]
    tensors = {source: value for source in sources if isinstance(value := source.meta.get("val"), torch.Tensor)}
    # NOTE: complex numbers and their parts share memory.
    if not any(each.dtype == value.dtype or each.is_complex() or value.is_complex() for each in expected for value in tensors.values()):
        return []
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda each: each.meta["val"])
    mode = mode_of(expected[0])
    if mode is None:
        raise UnknownMemory
    assert isinstance(node.target, OpOverload)
    try:
        with torch.no_grad(), mode:
            made = [value for value in _leaves(node.target(*args, **kwargs)) if isinstance(value, torch.Tensor)]
    except Exception as error:
        # NOTE: a custom operator may need what fake tensors do not have.
        raise UnknownMemory from error
    # NOTE: `type_as` may return its argument, of which another argument is a view.
    same = [source for source, value in tensors.items() if any(each is value for each in made)]
    return same or [source for source, value in tensors.items() if any(share_memory(each, value) for each in made)]


def _leaves(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else (value,)
