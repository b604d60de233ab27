"""Functions of torch whose arguments must be Python numbers, or that compare sizes: with sizes, torch.export would fix them.

While a capture runs, such a call is made of other functions, which take sizes: a pooling window of the size of the whole image is a mean,
`linspace` is a formula of `arange`. Calls with plain numbers are not touched.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from . import patching, shape_env, tensor_lists
from .patching import Slot, all_wrapped
from .symbolic_expressions import expression_of

for _file in (__file__, patching.__file__, tensor_lists.__file__):
    shape_env.leave_out(_file)

_IF_NECESSARY = "use_mm_for_euclid_dist_if_necessary"


def taken() -> contextlib.AbstractContextManager[None]:
    """While it is open, these functions take sizes."""
    return all_wrapped(_replacements())


# NOTE: read in torch 2.11, 2.13 and 2.15: the parameters of these public functions.
def _replacements() -> Iterator[tuple[Slot, Callable[..., Any]]]:
    yield Slot(torch, "as_tensor"), _as_tensor
    yield Slot(torch, "tensor"), tensor_lists.made
    yield Slot(Tensor, "new_tensor"), _new_tensor
    yield Slot(torch, "linspace"), _linspace
    yield Slot(torch, "logspace"), _logspace
    yield Slot(F, "one_hot"), _one_hot
    yield Slot(F, "scaled_dot_product_attention"), _attention
    yield Slot(Tensor, "fill_diagonal_"), _fill_diagonal
    yield Slot(torch, "kron"), _kronecker
    yield Slot(torch, "cdist"), _distances
    yield Slot(torch, "gradient"), _gradient
    yield Slot(torch, "take_along_dim"), _take_along_dim
    yield Slot(Tensor, "take_along_dim"), _take_along_dim
    yield Slot(torch, "tensor_split"), _tensor_split
    yield Slot(Tensor, "tensor_split"), _tensor_split
    yield Slot(torch, "repeat_interleave"), _repeat_interleave
    yield Slot(Tensor, "repeat_interleave"), _repeat_interleave
    yield Slot(torch, "triu_indices"), functools.partial(_triangle, True)
    yield Slot(torch, "tril_indices"), functools.partial(_triangle, False)
    yield Slot(torch, "max_pool1d"), _max_pool1d
    yield Slot(torch.nn.utils.rnn, "pad_sequence"), _pad_sequence
    for name in ("rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm"):
        yield Slot(torch, name), _without_generator
    for name in ("cauchy_", "exponential_", "geometric_", "log_normal_"):
        yield Slot(Tensor, name), _without_generator
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        for suffix in ("", "2", "n"):
            yield Slot(torch.fft, name + suffix), _transform(suffix, name in ("irfft", "hfft"))
    for name, weights in _WINDOWS.items():
        yield Slot(torch, name), _window(weights)
    for rank in (1, 2, 3):
        yield Slot(F, f"avg_pool{rank}d"), _pool(rank, Tensor.mean, _AVERAGE)
        yield Slot(F, f"max_pool{rank}d"), _pool(rank, Tensor.amax, _MAXIMUM)
        yield Slot(F, f"adaptive_avg_pool{rank}d"), _adaptive(rank, Tensor.mean)
        yield Slot(F, f"adaptive_max_pool{rank}d"), _adaptive(rank, Tensor.amax)


def _is_size(value: object) -> bool:
    return isinstance(value, torch.SymInt)


def _number(value: Any) -> Any:
    """`value`; the number that a tensor of one integer holds, of which torch takes no number here."""
    is_number = isinstance(value, Tensor) and value.ndim == 0 and not value.is_floating_point()
    return value.item() if is_number else value


def _is_same(size: object, other: object) -> bool:
    """Whether two sizes are the same expression."""
    return isinstance(size, torch.SymInt) and isinstance(other, torch.SymInt) and bool(expression_of(size) == expression_of(other))


def _without_generator(original: Callable[..., Any], *args: Any, generator: object = None, **kwargs: Any) -> Any:
    """Random numbers. An exported model has its own, and with a generator torch takes an operator that has no fake kernel for sizes."""
    del generator
    return original(*args, **kwargs)


def _as_tensor(original: Callable[..., Any], data: Any, *args: Any, **kwargs: Any) -> Any:
    options = {**dict(zip(("dtype", "device"), args, strict=False)), **kwargs}
    if tensor_lists.holds_tensors(data):
        return tensor_lists.made(original, data, **options)
    if not any(isinstance(each, torch.SymInt) for each in tensor_lists.leaves(data)):
        return original(data, *args, **kwargs)
    return torch.tensor(list(data) if isinstance(data, list | tuple) else data, **options)


def _new_tensor(original: Callable[..., Any], self: Tensor, data: Any, **options: Any) -> Any:
    return tensor_lists.made(functools.partial(original, self), data, **{"dtype": self.dtype, "device": self.device, **options})


def _linspace(original: Callable[..., Any], start: Any, end: Any, *args: Any, **kwargs: Any) -> Any:
    """`steps` numbers from `start` to `end`. The second half counts down from the end, as PyTorch's kernels do."""
    given = {**dict(zip(("steps",), args, strict=False)), **kwargs}
    steps, dtype = _number(given.pop("steps", None)), given.get("dtype") or torch.get_default_dtype()
    if not _is_size(steps) or "out" in given or not dtype.is_floating_point:
        return original(start, end, *args, **kwargs)
    index = torch.arange(steps, **{**given, "dtype": dtype})
    step = (end - start) / torch.sym_max(steps - 1, 1)
    # NOTE: the only one of one step is the start.
    return torch.where(index < (steps + 1) // 2, start + step * index, end - step * (steps - 1 - index))


def _logspace(original: Callable[..., Any], start: Any, end: Any, *args: Any, **kwargs: Any) -> Any:
    given = {**dict(zip(("steps", "base"), args, strict=False)), **kwargs}
    given["steps"] = _number(given.get("steps"))
    if not _is_size(given.get("steps")) or "out" in given or not (given.get("dtype") or torch.get_default_dtype()).is_floating_point:
        return original(start, end, *args, **kwargs)
    base = given.pop("base", 10.0)
    return torch.pow(base, torch.linspace(start, end, **given))


def _one_hot(original: Callable[..., Any], tensor: Tensor, num_classes: int = -1) -> Any:
    num_classes = _number(num_classes)
    if not _is_size(num_classes):
        return original(tensor, num_classes)
    return (tensor.unsqueeze(-1) == torch.arange(num_classes, device=tensor.device)).to(torch.int64)


def _attention(original: Callable[..., Any], query: Any, *args: Any, scale: Any = None, **kwargs: Any) -> Any:
    if isinstance(scale, torch.SymInt | torch.SymFloat):
        query, scale = query * scale, 1.0
    given = {**dict(zip(("key", "value", "attn_mask", "dropout_p", "is_causal"), args, strict=False)), **kwargs}
    causal = given.get("is_causal")
    if isinstance(causal, torch.SymBool):
        given["is_causal"] = False
        if given.get("attn_mask") is not None:
            # NOTE: with both, torch refuses to be causal. `length > 1 and mask is None` is a SymBool that the model has tested.
            given["is_causal"] = bool(causal)
        else:
            row, column = (torch.arange(each.shape[-2], device=query.device) for each in (query, given["key"]))
            everything = torch.full((), torch.sym_ite(causal, 0, 1), device=query.device) == 1
            given["attn_mask"] = (column <= row[:, None]) | everything
    return original(query, scale=scale, **given)


def _fill_diagonal(original: Callable[..., Any], matrix: Tensor, fill_value: Any, wrap: bool = False) -> Any:
    if matrix.ndim != 2 or wrap or not any(map(_is_size, matrix.shape)):
        return original(matrix, fill_value, wrap)
    matrix.diagonal().fill_(fill_value)
    return matrix


def _kronecker(original: Callable[..., Any], input: Tensor, other: Tensor, **kwargs: Any) -> Any:
    if kwargs or not any(map(_is_size, (*input.shape, *other.shape))):
        return original(input, other, **kwargs)
    rank = max(input.ndim, other.ndim)
    first, second = ((1,) * (rank - each.ndim) + tuple(each.shape) for each in (input, other))
    spread = input.reshape([size for each in first for size in (each, 1)]) * other.reshape([size for each in second for size in (1, each)])
    return spread.reshape([a * b for a, b in zip(first, second, strict=True)])


def _triangle(upper: bool, original: Callable[..., Any], row: Any, col: Any, offset: Any = 0, **options: Any) -> Any:
    dtype, device = options.get("dtype") or torch.int64, options.get("device")
    if not any(map(_is_size, (row, col, offset))):
        return original(row, col, offset, **options)
    beyond = torch.arange(col, device=device) - torch.arange(row, device=device)[:, None] - offset
    places = beyond >= 0 if upper else beyond <= 0
    # NOTE: only of a square's half is the number of places known without a condition.
    is_square = _is_size(row) and _is_size(col) and expression_of(row) == expression_of(col)
    left_out = offset if upper else -offset
    counted = is_square and type(offset) is int and left_out in (0, 1)
    found = torch.nonzero_static(places, size=row * (row + 1 - 2 * left_out) // 2) if counted else places.nonzero()
    return found.T.to(dtype)


def _distances(original: Callable[..., Any], x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _IF_NECESSARY) -> Any:
    """For more than 25 rows, PyTorch computes the distances by a product of matrices: faster, and the same but for rounding."""
    has_size = any(map(_is_size, (*x1.shape, *x2.shape)))
    return original(x1, x2, p, "donot_use_mm_for_euclid_dist" if has_size and compute_mode == _IF_NECESSARY else compute_mode)


def _gradient(
    original: Callable[..., Any], input: Tensor, *args: Any, spacing: Any = None, dim: Any = None, edge_order: int = 1, **kwargs: Any
) -> Any:
    """Differences of neighbours over their distances: of both neighbours inside, of the nearest ones at the edges."""
    axes = list(range(input.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if args or kwargs or edge_order not in (1, 2) or not any(_is_size(input.shape[axis]) for axis in axes):
        return original(input, *args, dim=dim, edge_order=edge_order, **({} if spacing is None else {"spacing": spacing}), **kwargs)
    steps = list(spacing) if isinstance(spacing, list | tuple) else [1.0 if spacing is None else spacing] * len(axes)
    return tuple(_differences(input, axis, step, edge_order) for axis, step in zip(axes, steps, strict=True))


def _differences(x: Tensor, axis: int, step: Any, edge_order: int) -> Tensor:
    """How fast `x` changes along a dim.

    Args:
        x: A tensor of any shape.
        axis: The dim.
        step: The distance of neighbours, or the places of the elements, of shape `(x.shape[axis],)`.
        edge_order: 1 or 2: whether an edge counts one or two neighbours.
    """
    size = x.shape[axis]
    if isinstance(step, Tensor) and step.ndim:
        step = step.diff().reshape([-1 if each == axis % x.ndim else 1 for each in range(x.ndim)])
    else:
        step = x.new_full([size - 1 if each == axis % x.ndim else 1 for each in range(x.ndim)], 1.0) * step
    slopes = x.diff(dim=axis) / step
    (before, after), (left, right) = ((each.narrow(axis, 0, size - 2), each.narrow(axis, 1, size - 2)) for each in (slopes, step))
    inner = (before * right + after * left) / (left + right)
    first, last = slopes.narrow(axis, 0, 1), slopes.narrow(axis, size - 2, 1)
    if edge_order == 2:
        bends = (after - before) / (left + right)
        first = first - bends.narrow(axis, 0, 1) * step.narrow(axis, 0, 1)
        last = last + bends.narrow(axis, size - 3, 1) * step.narrow(axis, size - 2, 1)
    return torch.cat([first, inner, last], axis)


def _transform(suffix: str, halves: bool) -> Callable[..., Any]:
    """A Fourier transform of given lengths. The functions in C++ ask whether a dim has this length, and fix it if the example's has.

    Args:
        suffix: "" for transforms along one dim, "2" along two, "n" along all dims.
        halves: Whether of the last dim's length a half is given.
    """
    names = ("s" if suffix else "n", "dim", "norm")
    default = {"": -1, "2": (-2, -1), "n": None}[suffix]

    def transform(original: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        sizes, dim = given.get(names[0]), given.get("dim", default)
        if sizes is None or not any(map(_is_size, input.shape)):
            return original(input, *args, **kwargs)
        sizes = list(sizes) if suffix else [sizes]
        dims = range(-len(sizes), 0) if dim is None else list(dim) if suffix else [dim]
        for axis, size in zip(dims, sizes, strict=False):
            if _is_size(input.shape[axis]) and type(size) is int and size > 0:
                length = size // 2 + 1 if halves and axis == dims[-1] else size
                shape = [length if each == axis % input.ndim else known for each, known in enumerate(input.shape)]
                input = torch.cat([input, input.new_zeros(shape)], axis).narrow(axis, 0, length)
        return original(input, **given)

    return transform


def _take_along_dim(original: Callable[..., Any], input: Tensor, indices: Tensor, dim: int | None = None, **kwargs: Any) -> Any:
    if dim is None or kwargs or input.ndim != indices.ndim or not any(map(_is_size, (*input.shape, *indices.shape))):
        return original(input, indices, dim, **kwargs)
    axis = dim % input.ndim
    one, other = ([1 if at == axis else size for at, size in enumerate(each.shape)] for each in (input, indices))
    common = torch.broadcast_shapes(one, other)
    first, second = ([each.shape[axis] if at == axis else size for at, size in enumerate(common)] for each in (input, indices))
    return input.expand(first).gather(axis, indices.expand(second))


def _repeat_interleave(original: Callable[..., Any], input: Tensor, repeats: Any = None, dim: int | None = None, **kwargs: Any) -> Any:
    """The operator on the repeats alone, as ATen's function calls it: the sizes or the constants that these come from tell its size."""
    if kwargs or not isinstance(repeats, Tensor) or repeats.ndim != 1 or not isinstance(repeats.shape[0], int):
        return original(input, *([] if repeats is None else [repeats]), *([] if dim is None else [dim]), **kwargs)
    rows, axis = (input.flatten(), 0) if dim is None else (input, dim)
    each = repeats.expand(rows.shape[axis]) if repeats.shape[0] == 1 else repeats
    if rows.shape[axis] != each.shape[0]:
        return original(input, repeats, dim)
    return rows.index_select(axis, torch.repeat_interleave(each))


def _tensor_split(original: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Parts of almost the same length. Their number is what the function in C++ divides by, and fixes the size for."""
    sections, *rest = args or (kwargs.get("sections"),)
    dim = rest[0] if rest else kwargs.get("dim", 0)
    if type(sections) is not int or sections < 1 or not _is_size(input.shape[dim]):
        return original(input, *args, **kwargs)
    size, start, parts = input.shape[dim], 0, []
    for part in range(sections):
        length = (size + sections - 1 - part) // sections
        parts.append(input.narrow(dim, start, length))
        start = start + length
    return tuple(parts)


def _pad_sequence(
    original: Callable[..., Any], sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """A batch of sequences, each padded at one side to the length of the longest. The function in C++ fixes their lengths."""
    given = list(sequences) if isinstance(sequences, Iterable) else []
    if not all(isinstance(each, Tensor) and each.ndim for each in given) or not any(_is_size(each.shape[0]) for each in given):
        return original(given or sequences, batch_first, padding_value, padding_side)
    longest = functools.reduce(torch.sym_max, [each.shape[0] for each in given])
    rows = []
    for each in given:
        # NOTE: the first sequence decides the dtype.
        known = each.type_as(given[0])
        padding = known.new_full((longest - each.shape[0], *given[0].shape[1:]), padding_value)
        rows.append(torch.cat([known, padding] if padding_side == "right" else [padding, known]))
    return torch.stack(rows, 0 if batch_first else 1)


def _max_pool1d(original: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The function in C++ fixes the length; that for images does not."""
    if not any(map(_is_size, input.shape[-1:])):
        return original(input, *args, **kwargs)
    given = {**dict(zip(_MAXIMUM, args, strict=False)), **kwargs}
    one = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1}
    across = {name: [one[name], *_per_dim(value, 1)] for name, value in given.items() if name in one and value not in (None, [], ())}
    image = torch.max_pool2d(input.unsqueeze(-2), **{**given, "stride": across["kernel_size"], **across})
    return image.squeeze(-2)


_Weights: TypeAlias = Callable[..., Any]
"""The weights of a window by the places of its elements, from 0 on, and its length."""


def _hamming(place: Tensor, length: int, alpha: float = 0.54, beta: float = 0.46) -> Tensor:
    return alpha - beta * torch.cos(place * (2 * math.pi) / length)


def _hann(place: Tensor, length: int) -> Tensor:
    return _hamming(place, length, 0.5, 0.5)


def _blackman(place: Tensor, length: int) -> Tensor:
    angle = place * (2 * math.pi) / length
    return 0.42 - 0.5 * torch.cos(angle) + 0.08 * torch.cos(2 * angle)


def _bartlett(place: Tensor, length: int) -> Tensor:
    return (2 * place / length - 1).abs().neg() + 1


def _kaiser(place: Tensor, length: int, beta: float = 12.0) -> Tensor:
    inside = (1 - (2 * place / length - 1) ** 2).clamp(min=0)
    weights: Tensor = torch.special.i0(beta * inside.sqrt()) / torch.special.i0(torch.full_like(place[:1], beta))
    return weights


_WINDOWS: dict[str, _Weights] = {
    "hann_window": _hann,
    "hamming_window": _hamming,
    "blackman_window": _blackman,
    "bartlett_window": _bartlett,
    "kaiser_window": _kaiser,
}


def _window(weights: _Weights) -> Callable[..., Any]:
    def window(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(("window_length", "periodic", "alpha", "beta"), args, strict=False)), **kwargs}
        length, dtype = given.pop("window_length", None), given.get("dtype") or torch.get_default_dtype()
        if not _is_size(length) or "out" in given or not dtype.is_floating_point:
            return original(*args, **kwargs)
        periodic = given.pop("periodic", True)
        # NOTE: kaiser_window takes `beta` where hamming_window takes `alpha`.
        own = [given.pop(name) for name in ("alpha", "beta") if name in given]
        place = torch.arange(length, **{**given, "dtype": dtype})
        values = weights(place, length if periodic else torch.sym_max(length - 1, 1), *own)
        # NOTE: the only element of a window is 1.
        return torch.where(torch.full_like(place, length) == 1, 1.0, values)

    return window


_AVERAGE = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")
_MAXIMUM = ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
_NEUTRAL = {"padding": 0, "dilation": 1, "divisor_override": None, "return_indices": False}
"""The arguments with which a window of the size of a whole dim sees each of its elements once."""

_Reduce: TypeAlias = Callable[..., Tensor]


def _pool(rank: int, reduce: _Reduce, names: Sequence[str]) -> Callable[..., Any]:
    """Pooling. Along dims whose window is the whole dim, it is a reduction."""

    def pool(original: Callable[..., Any], input: Tensor, *args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        kernel = _per_dim(given.get("kernel_size"), rank)
        options = [(_per_dim(given.get(name, value), rank), value) for name, value in _NEUTRAL.items()]
        whole = [
            index
            for index, (size, window) in enumerate(zip(input.shape[-rank:], kernel, strict=True))
            if _is_same(size, window) and all(values[index] == neutral for values, neutral in options)
        ]
        if not whole or not input.is_floating_point():
            return original(input, *args, **kwargs)
        reduced = reduce(input, [index - rank for index in whole], keepdim=True)
        if len(whole) == rank:
            return reduced
        stride = given.get("stride")
        strides = kernel if stride in (None, [], ()) else _per_dim(stride, rank)
        for name, each in (("kernel_size", kernel), ("stride", strides)):
            given[name] = [1 if index in whole else each[index] for index in range(rank)]
        return original(reduced, **given)

    return pool


def _adaptive(rank: int, reduce: _Reduce) -> Callable[..., Any]:
    """Adaptive pooling. Dims that keep their size are left alone."""

    def pool(original: Callable[..., Any], input: Tensor, output_size: Any, *args: Any, **kwargs: Any) -> Any:
        sizes, wanted = input.shape[-rank:], _per_dim(output_size, rank)
        kept = [each is None or _is_same(each, size) for each, size in zip(wanted, sizes, strict=True)]
        rest = [index - rank for index in range(rank) if not kept[index]]
        told = any(map(_is_size, sizes)) and any(kept) and not any([*args, *kwargs.values()])
        if not told or any(wanted[index] != 1 for index in rest):
            return original(input, output_size, *args, **kwargs)
        return reduce(input, rest, keepdim=True) if rest else input.clone()

    return pool


def _per_dim(value: Any, rank: int) -> list[Any]:
    values = list(value) if isinstance(value, list | tuple) else [value]
    return values * rank if len(values) == 1 else values
