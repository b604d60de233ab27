"""Example inputs of other sizes, for the comparison of a model with dynamic dims."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import sympy
import torch

from onnxplain.process import random_numbers_kept
from onnxplain.request import Request, copied, fake_inputs, flat_inputs, signature_of
from onnxplain.torch_internals import pytree
from onnxplain.torch_internals.python_values import is_a
from onnxplain.torch_internals.symbolic_expressions import expression_of

_TRIES = 4
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


def requests(program: torch.export.ExportedProgram, request: Request) -> Iterator[Resized]:
    """Requests with larger and with smaller inputs, of each some that the program refuses, and at most one that it takes.

    Every dynamic dim gets another size, within its range: a little larger, or the least. The values along it are repeated or cut off, so
    that dtypes and ranges of values stay.

    Args:
        program: The program.
        request: The export.
    """
    flat = flat_inputs(program, request.args, request.kwargs, signature_of(request.model))
    sizes = {(id(tensor), axis): size for tensor, fake in zip(flat, fake_inputs(program), strict=True) for axis, size in _dynamic(fake)}
    tensors = {id(tensor): tensor for tensor in flat if is_a(tensor, torch.Tensor)}
    example = _example(sizes, tensors)
    if not example:
        return
    for tries in (_larger(program, example), _smaller(program, example)):
        for tried in itertools.islice(tries, _TRIES):
            other = _resized(request, tensors, sizes, tried)
            if other is None:
                continue
            taken = Resized(tried, other, _takes(program, other))
            yield taken
            if taken.is_taken:
                break


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


def _larger(program: torch.export.ExportedProgram, example: _Sizes) -> Iterator[_Sizes]:
    # NOTE: dims get sizes that differ from each other, so that one is not taken for another; then equal steps, which keep differences.
    for step, more in itertools.chain(((1, number) for number in range(1, 3)), ((0, number) for number in (1, *example.values()))):
        tried = {symbol: size + more + step * index for index, (symbol, size) in enumerate(example.items())}
        if all(_range(program, symbol)[1] >= size for symbol, size in tried.items()):
            yield tried


def _smaller(program: torch.export.ExportedProgram, example: _Sizes) -> Iterator[_Sizes]:
    least = {symbol: max(1, _range(program, symbol)[0]) for symbol in example}
    tries = [least, {symbol: max(2, least[symbol]) for symbol in example}]
    tries += [{symbol: max(least[symbol], size - less) for symbol, size in example.items()} for less in (1, 2)]
    tries += [{symbol: max(least[symbol], size // 2) for symbol, size in example.items()}]
    yield from (each for index, each in enumerate(tries) if each != example and each not in tries[:index])


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
    for (key, axis), expression in sizes.items():
        size, tensor = expression.xreplace(values), other[key]
        if not size.is_Integer or size < 0 or not tensor.shape[axis]:
            return None
        other[key] = tensor.detach().index_select(axis, torch.arange(int(size), device=tensor.device) % tensor.shape[axis])
    args, kwargs = pytree.tree_map(lambda each: other.get(id(each), each), (request.args, dict(request.kwargs)))
    return dataclasses.replace(request, args=args, kwargs=kwargs)


def _takes(program: torch.export.ExportedProgram, request: Request) -> bool:
    """Whether the program takes the inputs."""
    try:
        args, kwargs = copied(request.args, request.kwargs)
        with torch.no_grad(), random_numbers_kept():
            program.module()(*args, **kwargs)
    except Exception:  # noqa: BLE001  operators refuse sizes with any exception
        return False
    return True
