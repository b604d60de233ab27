"""Example inputs of several blocks, where a loop takes a dim in blocks and all of the example is a single one.

For one block, `for i in range(0, n, 512)` has one iteration, which says nothing of how the blocks belong together.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from onnxplain.diagnostics import Location
from onnxplain.request import Request
from onnxplain.rules import ConstraintViolated, SpecializedDynamicDim
from onnxplain.source import syntax

from . import larger_examples
from .eager import EagerRuns
from .finding import Finding
from .rewrite import block_loops
from .rewrite.scope import Scope

_TIMES = tuple(2**power for power in range(1, 11))
"""How many times larger an example may be."""


def of_several(request: Request, findings: Sequence[Finding], runs: EagerRuns) -> Request | None:
    """`request` with an example of several blocks; None if no finding is about a loop of which the example is a single block.

    Args:
        request: The export.
        findings: What limits its dims.
        runs: The eager runs of the model with the example.
    """
    limits = {each.at.location: each.rule.dim for each in findings if isinstance(each.rule, SpecializedDynamicDim | ConstraintViolated)}
    blocks = [(place, blocks, dim) for place, dim in limits.items() if place is not None for blocks in _blocks(place)]
    runs.ask((place.file, place.line or 0, test) for place, (size, length), _ in blocks for test in _tests(size, length))
    grown: dict[int, int] = {}
    for place, (size, length), name in blocks:
        single, *enough = (runs.holds(place, test) for test in _tests(size, length))
        times = next((each for each, is_enough in zip(_TIMES, enough, strict=True) if is_enough), None)
        for dim in request.shapes.dynamic if single and times is not None else ():
            if dim.name == name:
                grown[dim.size] = max(grown.get(dim.size, 1), times or 1)
    # NOTE: a mask may have to be as long as the input: dims of the same size grow together.
    larger = {dim: dim.size * grown[dim.size] for dim in request.shapes.dynamic if dim.size in grown}
    return larger_examples.with_sizes(request, larger) if larger and all(dim.allows(size) for dim, size in larger.items()) else None


def _blocks(place: Location) -> Iterator[tuple[str, str]]:
    """The size that is taken in blocks at `place`, and the length of a block."""
    file = place.file
    for node in [] if place.region is None else syntax.around(file, place.region):
        match node:
            case ast.Call(func=ast.Name(id="range"), args=[start, stop, step]):
                yield f"(({syntax.text(file, stop)}) - ({syntax.text(file, start)}))", f"({syntax.text(file, step)})"
            case ast.For(target=ast.Name(), iter=ast.Call(func=ast.Name(id="range"), args=[count])):
                function = syntax.innermost(file, syntax.region(file, node), ast.FunctionDef)
                where = None if function is None else Scope(file, function, "torch", None, frozenset())
                if where is not None and (found := block_loops.of(where, node, [count])) is not None:
                    yield where.text(found.stop), f"({where.text(found.step)})"
            case ast.Call(func=ast.Attribute(attr="split")):
                yield from _divided(file, node)


def _divided(file: str, call: ast.Call) -> Iterator[tuple[str, str]]:
    """As `_blocks`, for a call of `split`: a method of a tensor, or a function of torch."""
    assert isinstance(call.func, ast.Attribute)
    named = {each.arg: each.value for each in call.keywords}
    given = [call.func.value, *call.args, *(named[name] for name in ("split_size_or_sections", "split_size", "dim") if name in named)]
    texts = [syntax.text(file, each) for each in given]
    for tensor, length, *dim in (each for each in (texts[:3], texts[1:4]) if len(each) > 1):
        yield f"{tensor}.shape[{dim[0] if dim else 0}]", f"({length})"


def _tests(size: str, length: str) -> list[str]:
    """Whether the size is one block, and whether multiples of it are several blocks, of which the last one may be shorter."""
    return [f"0 < {size} <= {length}", *(f"{size} * {times} > 2 * {length}" for times in _TIMES)]
