"""Example inputs of other sizes, for the comparison of a model with dynamic dims."""

from __future__ import annotations

import dataclasses
import itertools
import random
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch

from onnxplain.request import DimNames, Request, fake_inputs, flat_inputs, signature_of
from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.python_values import is_a
from onnxplain.torch_internals.symbolic_expressions import expression_of

from . import eager

_TRIES = 4
_MORE = 8
"""By how much random sizes may be larger than twice those of the example."""
_Sizes = Mapping[sympy.Symbol, int]


@dataclasses.dataclass(frozen=True)
class Resized:
    """A request with inputs of other sizes.

    Attributes:
        sizes: The sizes by torch's symbols.
        request: The request.
        is_taken: Whether the program takes the inputs: torch checks there what it assumed of sizes.
    """

    sizes: Mapping[sympy.Basic, int]
    request: Request
    is_taken: bool


@dataclasses.dataclass(frozen=True)
class Unfit:
    """Sizes that the user asks for, by the names of dims, and that the model has no inputs for.

    Attributes:
        sizes: The sizes.
        reason: Why.
    """

    sizes: Mapping[str, int]
    reason: str


@dataclasses.dataclass(frozen=True)
class _Dim:
    """A dim of the exported model: its name, the symbols that stand for it, its size in the example, and its range."""

    name: str
    symbols: tuple[sympy.Symbol, ...]
    size: int
    least: int
    most: int


def requests(program: torch.export.ExportedProgram, request: Request, dim_names: DimNames) -> Iterator[Resized | Unfit]:
    """Requests with inputs of other sizes: those that the user asks for; or larger, smaller, and then random ones, as many as asked for.

    Where the user names no sizes, every dynamic dim gets another one, within its range: a little larger, the least, or any. Of each kind
    there are some that the program refuses, and at most one that it takes. The values along a dim are repeated or cut off, so that dtypes
    and ranges of values stay. Offsets still rise, and end with the other size of the dim with whose size they ended.

    Args:
        program: The program.
        request: The export.
        dim_names: The names of dims. Dims with one name keep one size: the exported model says that they are equal.
    """
    wanted = request.verify_sizes
    flat = flat_inputs(program, request.args, request.kwargs, signature_of(request.model))
    sizes = {(id(tensor), axis): size for tensor, fake in zip(flat, fake_inputs(program), strict=True) for axis, size in _dynamic(fake)}
    tensors = {id(tensor): tensor for tensor in flat if is_a(tensor, torch.Tensor)}
    named = _by_name(program, _example(sizes, tensors), dim_names)

    def resized(chosen: Sequence[int]) -> Resized | None:
        tried = {symbol: size for dim, size in zip(named, chosen, strict=True) for symbol in dim.symbols}
        other = _resized(request, tensors, sizes, tried)
        return None if other is None else Resized(tried, other, eager.takes(program, other))

    if not isinstance(wanted, int):
        for asked in wanted:
            unfit = _unfit(named, asked)
            found = None if unfit else resized([asked.get(dim.name, dim.size) for dim in named])
            yield found or Unfit(asked, unfit or "a dim of an input cannot have this size")
        return
    for tries in itertools.islice(_kinds(named), wanted if named else 0):
        for chosen in itertools.islice(tries, _TRIES):
            found = resized(chosen)
            if found is not None:
                yield found
                if found.is_taken:
                    break


def _unfit(dims: Sequence[_Dim], asked: Mapping[str, int]) -> str:
    """Why the dims cannot have the sizes that the user asks for; empty if they can."""
    known = {dim.name: dim for dim in dims}
    for name, size in asked.items():
        if name not in known:
            return f"no dynamic dim is named {name} (there is {', '.join(known) or 'none'})"
        if not known[name].least <= size <= known[name].most:
            return f"{name} is at least {known[name].least} and at most {known[name].most}"
    return ""


def _kinds(dims: Sequence[_Dim]) -> Iterator[Iterator[Sequence[int]]]:
    """Sizes to try, by kind; of each kind, those that the program takes are alike."""
    yield _larger(dims)
    yield _smaller(dims)
    for seed in itertools.count():
        yield _random(dims, random.Random(seed))


def _dynamic(fake: Any) -> list[tuple[int, sympy.Expr]]:
    """The dims of an input that vary, with their sizes."""
    if not isinstance(fake, torch.Tensor):
        return []
    shape: list[Any] = list(fake.shape)
    sizes = ((axis, expression_of(size)) for axis, size in enumerate(shape) if isinstance(size, torch.SymInt))
    return [(axis, expression) for axis, expression in sizes if not expression.is_number]


def _example(sizes: Mapping[tuple[int, int], sympy.Expr], tensors: Mapping[int, torch.Tensor]) -> dict[sympy.Symbol, int]:
    """The sizes in the example that symbols stand for; empty if one cannot be told."""
    found = {size: tensors[key].shape[axis] for (key, axis), size in sizes.items() if size.is_Symbol}
    for (key, axis), size in sizes.items():
        for symbol in size.free_symbols - found.keys():
            # NOTE: for a Dim such as `2 * half`, `half` need not be the size of a dim.
            known = size.xreplace({each: sympy.Integer(value) for each, value in found.items()})
            fitting = (
                value
                for value in range(tensors[key].shape[axis] + 1)
                if known.xreplace({symbol: sympy.Integer(value)}) == tensors[key].shape[axis]
            )
            value = next(fitting, None)
            if value is None:
                return {}
            found[symbol] = value
    return found


def _by_name(program: torch.export.ExportedProgram, example: _Sizes, dim_names: DimNames) -> list[_Dim]:
    """The dims by their names in the exported model, each with the symbols that stand for it."""
    groups: dict[tuple[str, int], list[sympy.Symbol]] = {}
    for symbol, size in example.items():
        groups.setdefault((dim_names.text(symbol), size), []).append(symbol)
    ranges = ([_range(program, symbol) for symbol in symbols] for symbols in groups.values())
    return [
        _Dim(name, tuple(symbols), size, max(lower for lower, _ in each), min(upper for _, upper in each))
        for ((name, size), symbols), each in zip(groups.items(), ranges, strict=True)
    ]


def _larger(dims: Sequence[_Dim]) -> Iterator[Sequence[int]]:
    # NOTE: dims get sizes that differ from each other, so that one is not taken for another; then equal steps, which keep differences.
    for step, more in ((1, 1), (1, 2), (0, 1), *((0, dim.size) for dim in dims)):
        tried = [dim.size + more + step * index for index, dim in enumerate(dims)]
        if all(dim.most >= size for dim, size in zip(dims, tried, strict=True)):
            yield tried


def _smaller(dims: Sequence[_Dim]) -> Iterator[Sequence[int]]:
    least = [max(1, dim.least) for dim in dims]
    tries = [least, [max(2, each) for each in least]]
    tries += [[max(each, dim.size - less) for each, dim in zip(least, dims, strict=True)] for less in (1, 2)]
    tries += [[max(each, dim.size // 2) for each, dim in zip(least, dims, strict=True)]]
    example = [dim.size for dim in dims]
    yield from (each for index, each in enumerate(tries) if each != example and each not in tries[:index])


def _random(dims: Sequence[_Dim], draw: random.Random) -> Iterator[Sequence[int]]:
    while True:
        yield [draw.randint(max(1, dim.least), min(dim.most, 2 * dim.size + _MORE)) for dim in dims]


def _range(program: torch.export.ExportedProgram, symbol: sympy.Symbol) -> tuple[int, int]:
    known = program.range_constraints.get(symbol)
    lower, upper = (0, sys.maxsize) if known is None else (known.lower, known.upper)
    # NOTE: torch's infinity is larger than any int, but is none.
    return int(lower), int(min(upper, sys.maxsize))


def _resized(
    request: Request, tensors: Mapping[int, torch.Tensor], sizes: Mapping[tuple[int, int], sympy.Expr], tried: _Sizes
) -> Request | None:
    """`request` with inputs of other sizes; None if a dim cannot have its size."""
    values = {symbol: sympy.Integer(size) for symbol, size in tried.items()}
    other = dict(tensors)
    offsets = {key for key, tensor in tensors.items() if _are_offsets(tensor)}
    ends: dict[int, set[int]] = {}
    for (key, axis), expression in sizes.items():
        size, tensor = expression.xreplace(values), other[key]
        if not size.is_Integer or size < 0 or not tensor.shape[axis]:
            return None
        ends.setdefault(tensor.shape[axis], set()).add(int(size))
        chosen, last = torch.arange(int(size), device=tensor.device), tensor.shape[axis] - 1
        other[key] = tensor.detach().index_select(axis, chosen.clamp(max=last) if key in offsets else chosen % (last + 1))
    for key in offsets:
        other[key] = _ending(other[key], ends.get(int(tensors[key][-1]), ()))
    args, kwargs = pytree.tree_map(lambda each: other.get(id(each), each), (request.args, dict(request.kwargs)))
    return dataclasses.replace(request, args=args, kwargs=kwargs)


def _are_offsets(tensor: torch.Tensor) -> bool:
    """Whether the values may tell where the rows of a ragged batch begin: numbers from 0 that never fall."""
    if tensor.ndim != 1 or tensor.numel() < 2 or tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        return False
    return not bool(tensor[0]) and bool((tensor[1:] >= tensor[:-1]).all())


def _ending(offsets: torch.Tensor, ends: Collection[int]) -> torch.Tensor:
    """`offsets` that end with the size of a dim which has another size now, one of `ends`."""
    # NOTE: with offsets that end elsewhere, the result of operators such as embedding_bag is undefined.
    if len(ends) != 1 or not offsets.numel():
        return offsets
    (end,) = ends
    ended = offsets.clamp(max=end)
    ended[-1] = end
    return ended
