"""Names of the ONNX model's inputs and outputs that follow from where the PyTorch model takes and returns them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.export.graph_signature import InputKind

from onnxplain.torch_internals import pytree

from .dynamic_shapes import DynamicShapes
from .inputs import key_of

_SINGULAR = {"keys": "key", "values": "value"}
_SIDES = {"self_attention_cache": "decoder", "cross_attention_cache": "encoder"}
"""The two caches of transformers' `EncoderDecoderCache`."""


def input_names(program: torch.export.ExportedProgram, shapes: DynamicShapes) -> dict[str, str]:
    """The names of inputs that lie in a cache, such as `past_key_values.0.key`, by the names of their placeholders."""
    specs = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    if len(specs) != len(shapes.leaves):
        return {}
    names = {spec: _in_cache(leaf.way[1:], leaf.way[0]) for spec, leaf in zip(specs, shapes.leaves, strict=True)}
    return {spec: name for spec, name in names.items() if name}


def output_names(program: torch.export.ExportedProgram) -> list[str]:
    """The names of outputs that lie in a cache, such as `present.0.key`, in a dict or in attributes, such as `logits`.

    Returns:
        A name for each output, None and strings included; an empty one for an output that has only a position.
    """
    structure = program.call_spec.out_spec
    if structure is None or structure.is_leaf():
        return []
    try:
        # NOTE: only an object has names for its parts, and its class may insist on tensors, which have four dims in a cache.
        outputs = structure.unflatten([torch.empty(0, 0, 0, 0) for _ in range(structure.num_leaves)])
        paths, _ = pytree.tree_flatten_with_path(outputs)
    except Exception:  # noqa: BLE001  the user's registrations run here
        return []
    if len(paths) != structure.num_leaves:
        return []
    return [_in_cache(path, "present") or _dotted(path) for path, _ in paths]


def _in_cache(path: Sequence[Any], cache: str) -> str:
    """The name of a tensor in a cache, such as `past_key_values.0.key`; empty if the path leads through no layer of a cache.

    Args:
        path: The path in torch's keys.
        cache: The name for the cache.
    """
    # NOTE: with an encoder, optimum and ONNX Runtime's generators expect `past_key_values.0.decoder.key`.
    at = next((at for at, key in enumerate(path) if isinstance(key, pytree.GetAttrKey) and key.name == "layers"), None)
    if at is None or len(path) < at + 3 or not isinstance(path[at + 1], pytree.SequenceKey):
        return ""
    layer, *rest = (str(key_of(key)) for key in path[at + 1 :])
    sides = [_SIDES[name] for key in path[:at] if (name := key_of(key)) in _SIDES]
    return ".".join([cache, layer, *sides, *(_SINGULAR.get(each, each) for each in rest)])


def _dotted(path: Sequence[Any]) -> str:
    """The names of a path, such as `hidden_states.0`; empty if it begins with a position."""
    if not path or isinstance(path[0], pytree.SequenceKey) or not isinstance(key_of(path[0]), str):
        return ""
    return ".".join(str(key_of(key)) for key in path)
