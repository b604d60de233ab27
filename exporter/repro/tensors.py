"""Tensors as expressions: the same shape, strides, dtype and device, and random numbers."""

from __future__ import annotations

import torch

from onnxplain.request import is_dense
from onnxplain.torch_internals.fake_tensors import is_fake

from .expression import Expression, Items, Text, Unknown, call, literal
from .live_objects import kind_of

RANDOM = Text("random")
"""The script's function for a tensor of random numbers."""

_LARGEST_MASK = 64
"""The largest mask whose elements are kept."""


def like(tensor: torch.Tensor, place: str, *, as_input: bool) -> Expression:
    """An expression for a tensor.

    Args:
        tensor: The tensor.
        place: Where it is, for `Unknown`.
        as_input: Whether it is an input. See `values.example` for the numbers that are kept then.

    Raises:
        Unknown: It is sparse, quantized, or of a subclass of torch.Tensor.
    """
    if not is_dense(tensor):
        raise Unknown(place, f"a tensor of layout {tensor.layout}")
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) and not isinstance(tensor, torch.nn.Buffer) and not is_fake(tensor):
        raise Unknown(place, kind_of(tensor))
    shape = tuple(tensor.shape)
    dtype = {} if tensor.dtype is torch.float32 else {"dtype": literal(tensor.dtype)}
    plain = tensor.is_contiguous() and tensor.device.type == "cpu"
    if plain and not is_fake(tensor) and not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        return _integers(tensor, as_input=as_input)
    if plain and as_input and tensor.dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        return call(Text("torch.randn"), *(map(literal, shape) if shape else [Text("()")]), keywords=dtype)
    stride = {} if tensor.is_contiguous() else {"stride": literal(tensor.stride())}
    device = {} if tensor.device.type == "cpu" else {"device": literal(str(tensor.device))}
    return call(RANDOM, *map(literal, shape), keywords={**dtype, **stride, **device})


def _integers(tensor: torch.Tensor, *, as_input: bool) -> Expression:
    """A tensor of integers or bools. Of its numbers, only equal ones, ranges, small masks and the limits of an input are kept."""
    shape = tuple(tensor.shape)
    size = literal(shape)
    dtype = {} if tensor.dtype is torch.int64 else {"dtype": literal(tensor.dtype)}
    count = tensor.numel()
    zeros = call(Text("torch.zeros"), size, keywords={"dtype": literal(tensor.dtype)})
    if count == 0:
        return zeros
    least, most = tensor.min().item(), tensor.max().item()
    if least == most:
        full = [Text("torch.full"), size] if shape else [Text("torch.tensor")]
        return call(*full, literal(least), keywords=dtype)
    if tensor.dtype is torch.bool:
        if count <= _LARGEST_MASK:
            return call(Text("torch.tensor"), literal(tensor.tolist()))
        return Items(call(Text("torch.rand"), size), (" > ", ""), (("", Text("0.5")),))
    if torch.equal(tensor.flatten(), torch.arange(count, dtype=tensor.dtype)):
        arange = call(Text("torch.arange"), literal(count), keywords=dtype)
        return arange if len(shape) == 1 else Items(arange, (".reshape(", ")"), (("", size),))
    if not as_input:
        # NOTE: these are indices, which must not be too large, or quantized weights, which are the user's data.
        return zeros
    return call(Text("torch.randint"), literal(least), literal(most + 1), size, keywords=dtype)
