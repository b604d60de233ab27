"""Dynamic dims that have size 1 in the example, which eager PyTorch broadcasts."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence

from onnxplain.capture.finding import Finding
from onnxplain.request import InputDim
from onnxplain.rules import ExampleOfSizeOne
from onnxplain.source import call_sites

from .finished import Finished

_MAKERS = ("randn", "rand", "zeros", "ones", "randint", "full", "empty")


def findings(finished: Finished) -> Iterator[Finding]:
    """A finding for each input with such dims, at the call that makes it if only one call in the user's files can."""
    request = finished.request
    ones: dict[int, list[InputDim]] = {}
    for dim in request.shapes.dynamic:
        if dim.size == 1:
            ones.setdefault(dim.flat_index, []).append(dim)
    for index, dims in ones.items():
        shape = list(request.shapes.leaves[index].value.shape)
        made = call_sites.call_of(request, *_MAKERS, matches=functools.partial(_makes, shape))
        yield Finding(ExampleOfSizeOne(dims=tuple(dim.place for dim in dims)), call_sites.at(made, request))


def _makes(shape: Sequence[int], call: ast.Call) -> bool:
    """Whether the sizes in the arguments of `call` are `shape`."""
    sizes = [call_sites.literal(argument) for argument in call.args]
    return sizes == shape or (bool(sizes) and isinstance(sizes[0], list | tuple) and list(sizes[0]) == shape)
