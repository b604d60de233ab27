"""Attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxplain.recording import op, small_constant, uniform_number

from . import random, translates

# NOTE: torchlib's translation takes 4-D tensors only, transposes the keys with two reshapes, and gives a row that sees nothing the mean of
# all values, where PyTorch gives zero (read in onnxscript 0.7.2).


@translates("aten::scaled_dot_product_attention")
def scaled_dot_product_attention(
    query: ir.Value,
    key: ir.Value,
    value: ir.Value,
    attn_mask: ir.Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, ...) -> Tensor.

    softmax(query @ key^T * scale + mask) @ value. A row that sees nothing is zero.

    Args:
        query: (..., L, E).
        key: (..., S, E).
        value: (..., S, Ev).
        attn_mask: Broadcastable to (..., L, S): BOOL, True for what is seen, or a float that is added.
        dropout_p: The probability with which a weight becomes zero.
        is_causal: Whether position i sees only the positions up to i.
        scale: By default 1 / sqrt(E).
        enable_gqa: Whether `query` (B, H, L, E) has more heads than the others (B, Hkv, S, E), each of which serves H / Hkv heads of it.

    Returns:
        (..., L, Ev).

    Raises:
        ValueError: With `enable_gqa`, a number of heads or the size of a head is dynamic.
    """
    assert query.shape is not None
    assert key.shape is not None
    assert value.shape is not None
    rank = len(key.shape)
    if enable_gqa and query.shape[1] != key.shape[1]:
        heads = query.shape[1]
        key, value = _repeated(key, heads), _repeated(value, heads)
    # NOTE: ONNX Runtime takes a scale before a MatMul, and a transposition of the last two dims, into the MatMul.
    keys = op.Transpose(key, perm=[*range(rank - 2), rank - 1, rank - 2])
    scores = op.MatMul(op.Mul(query, _scale(query, scale)), keys)
    if key.shape is not None and query.shape[:-2] == key.shape[:-2]:
        scores.shape = ir.Shape([*query.shape[:-1], key.shape[-2]])
    bias, sees = (_causal(query, key), None) if is_causal else _bias(attn_mask, query)
    weights = op.Softmax(scores if bias is None else op.Add(scores, bias), axis=-1)
    if dropout_p:
        weights = random.dropout(weights, dropout_p, True)
    result = op.MatMul(weights, value)
    return result if sees is None else op.Where(sees, result, op.CastLike(0.0, query))


def _repeated(heads: ir.Value, count: Any) -> Any:
    """(B, Hkv, S, E) to (B, count, S, E): every head as often as it serves a head of the query."""
    assert heads.shape is not None
    _, own, _, size = heads.shape
    if not isinstance(own, int) or not isinstance(count, int) or not isinstance(size, int):
        raise ValueError(f"the numbers of heads and their size must be fixed, they are {count}, {own} and {size}")
    spread = op.Expand(op.Unsqueeze(heads, [2]), [1, 1, count // own, 1, 1])
    repeated = op.Reshape(spread, [0, count, -1, size])
    repeated.shape = ir.Shape([heads.shape[0], count, heads.shape[2], size])
    return repeated


def _scale(query: ir.Value, scale: float | None) -> Any:
    assert query.shape is not None
    size = query.shape[-1]
    if scale is None and isinstance(size, int):
        scale = 1 / math.sqrt(size)
    if scale is not None:
        return op.CastLike(scale, query)
    return op.Reciprocal(op.Sqrt(op.CastLike(op.Squeeze(op.Shape(query, start=-1)), query)))


def _bias(mask: ir.Value | None, query: ir.Value) -> tuple[Any, Any]:
    """What is added to the scores, and which rows see anything; each None where it is not needed. Softmax gives NaN for a row of -inf."""
    if mask is None:
        return None, None
    lowest = op.CastLike(-math.inf, query)
    if mask.dtype is not ir.DataType.BOOL:
        known = small_constant(mask)
        if known is not None and np.isfinite(known.max(axis=-1)).all():
            return mask, None
        return mask, op.Greater(op.ReduceMax(mask, [-1]), lowest)
    if uniform_number(mask):
        return None, None
    bias = op.Where(mask, op.CastLike(0.0, query), lowest)
    known = small_constant(mask)
    if known is not None and known.any(axis=-1).all():
        return bias, None
    return bias, op.Cast(op.ReduceMax(op.Cast(mask, to=int(ir.DataType.FLOAT)), [-1]), to=int(ir.DataType.BOOL))


def _causal(query: ir.Value, key: ir.Value) -> Any:
    """What is added to the scores so that position i sees only the positions up to i."""
    assert query.shape is not None
    assert key.shape is not None
    rows, columns = (op.Unsqueeze(op.Range(0, _length(value), 1), [axis]) for value, axis in ((query, 1), (key, 0)))
    # NOTE: nothing else tells that the dims are those of the scores, which matters for `optimize="memory"`.
    rows.shape, columns.shape = ir.Shape([query.shape[-2], 1]), ir.Shape([1, key.shape[-2]])
    seen = op.GreaterOrEqual(rows, columns)
    return op.Where(seen, op.CastLike(0.0, query), op.CastLike(-math.inf, query))


def _length(value: ir.Value) -> Any:
    assert value.shape is not None
    size = value.shape[-2]
    return size if isinstance(size, int) else op.Squeeze(op.Shape(value, start=-2, end=-1))
