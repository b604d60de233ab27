"""Example inputs that are larger where a dim that must stay dynamic has size 1: code often treats that size in a special way."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch

from onnxplain.request import DynamicShapes, InputDim, Request
from onnxplain.rules import SpecializedDynamicDim
from onnxplain.torch_internals import pytree

from .attempts import Attempt
from .explain.assumptions import is_branch
from .finding import Finding
from .observe.guards import Guard, Guards
from .observe.replays import Sizes
from .observe.size_limits import computed_one, holds

_SIZE = 2
_TIMES = 2, 3, 4
"""How many times larger an example may be."""


def without_ones(request: Request, findings: Sequence[Finding]) -> Request | None:
    """`request` with size 2 instead of 1 for each dim that must stay dynamic; None if no finding says that the model fixes such a dim to 1.

    The values along the dim are repeated.
    """
    if not any(isinstance(finding.rule, SpecializedDynamicDim) and finding.rule.value == 1 for finding in findings):
        return None
    return doubled(request)


def doubled(request: Request) -> Request | None:
    """`request` with size 2 instead of 1 for each dim that must stay dynamic; None if there is no such dim."""
    ones = [dim for dim in request.shapes.dynamic if dim.size == 1 and dim.allows(_SIZE)]
    return with_sizes(request, dict.fromkeys(ones, _SIZE)) if ones else None


def without_computed_ones(request: Request, guards: Guards) -> Request | None:
    """`request` with a larger example, for which few of the computed sizes are 1 that operators asked about; None if there is none.

    Such a size is `height // 32`. torch goes by the answer for all sizes.
    """
    dims = (*request.shapes.dynamic, *request.shapes.open)
    sizes = guards.symbols.sizes(dims)
    about = [guard for guard in guards.made if guard.relation.free_symbols and guard.relation.free_symbols <= sizes.keys()]
    ones = [
        guard.relation
        for guard in about
        if guard.operator is not None and not is_branch(guard) and computed_one(guard.relation) is not None
    ]
    others = {guard.relation for guard in about}.difference(ones)
    tried: list[tuple[int, int, dict[InputDim, int]]] = []
    for grown in _grown(sizes, {symbol for relation in ones for symbol in relation.free_symbols}):
        larger = guards.symbols.resized(dims, grown)
        left = sum(holds(each, grown) is not False for each in ones)
        if left < len(ones) and all(dim.allows(size) for dim, size in larger.items()):
            broken = sum(holds(each, grown) is False for each in others)
            tried.append((left, broken, {dim: size for dim, size in larger.items() if size != dim.size}))
    return with_sizes(request, min(tried, key=lambda each: each[:2])[2]) if tried else None


def with_ones_allowed(made: Attempt, request: Request) -> Attempt:
    """`made`, captured for a larger example, without the answers of operators that a computed size is not 1, which it is for `request`.

    Whether the program is right for it all the same is for the caller to find out.
    """
    sizes = made.guards.symbols.sizes((*request.shapes.dynamic, *request.shapes.open))

    def excludes(guard: Guard) -> bool:
        by_operator = guard.operator is not None and not is_branch(guard)
        return by_operator and computed_one(sympy.Not(guard.relation)) is not None and holds(guard.relation, sizes) is False

    kept = tuple(guard for guard in made.guards.made if not excludes(guard))
    return dataclasses.replace(made, guards=dataclasses.replace(made.guards, made=kept))


def _grown(sizes: Sizes, symbols: Collection[sympy.Basic]) -> Iterator[Sizes]:
    """`sizes` in which those of `symbols` are multiples. Some sizes, such as numbers of frames, are multiples but for the first element."""
    for times in _TIMES if symbols else ():
        yield {**sizes, **{symbol: sizes[symbol] * times for symbol in symbols}}
        yield {**sizes, **{symbol: (sizes[symbol] - 1) * times + 1 for symbol in symbols}}


def with_sizes(request: Request, sizes: Mapping[InputDim, int]) -> Request:
    """`request` with an example of these sizes. The values along a dim that is larger are repeated."""
    larger = {id(leaf.value): _repeated(leaf.value, index, sizes) for index, leaf in enumerate(request.shapes.leaves)}

    def replaced(value: Any) -> Any:
        return larger.get(id(value), value)

    args, kwargs = pytree.tree_map(replaced, (request.args, dict(request.kwargs)))
    shapes = DynamicShapes.parse(request.shapes.given, request.model, args, kwargs, argument=request.shapes.argument)
    return dataclasses.replace(request, args=args, kwargs=kwargs, shapes=shapes)


def without_checks(program: torch.export.ExportedProgram) -> torch.nn.Module:
    """`program` as a module that takes the size 1 as well: torch has recorded that it differs from the size of the example."""
    module = program.module(check_guards=False)
    assert isinstance(module, torch.fx.GraphModule)
    # NOTE: the bounds of the inputs come from such records as well (read in torch 2.11, 2.13 and 2.15, export/_unlift.py).
    module.validate_inputs = False  # type: ignore[assignment]  # the flag is an attribute of the class that torch makes
    for graph_module in (each for each in module.modules() if isinstance(each, torch.fx.GraphModule)):
        for node in list(graph_module.graph.nodes):
            if str(node.target) == "aten._assert_scalar.default":
                graph_module.graph.erase_node(node)
        graph_module.recompile()
    return module


def _repeated(value: Any, index: int, sizes: Mapping[InputDim, int]) -> Any:
    own = {dim.axis: size for dim, size in sizes.items() if dim.flat_index == index}
    for axis, size in own.items() if isinstance(value, torch.Tensor) else ():
        value = value.repeat([-(-size // value.shape[axis]) if axis == each else 1 for each in range(value.ndim)]).narrow(axis, 0, size)
    return value
