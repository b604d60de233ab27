"""Conditions that the model puts on sizes of dims without a range in `dynamic_shapes`, or of a Dim such as `2 * half`, at their lines."""

from __future__ import annotations

from collections.abc import Container, Iterator

from torch.export import Dim

from onnxplain.capture.finding import Finding
from onnxplain.capture.observe import size_limits
from onnxplain.capture.observe.guards import Guard, Guards
from onnxplain.capture.observe.size_limits import Limit
from onnxplain.diagnostics import Confidence, Fix
from onnxplain.request import InputDim, Kind, Request
from onnxplain.rules import ConstraintViolated, SizesRequired
from onnxplain.torch_internals.operators import OpOverload

from . import assumptions, shapes_argument

_HINTS = (Kind.NAMED, Kind.DYNAMIC)
_TOLD = (*_HINTS, Kind.DERIVED)
"""The dims that no other finding tells of: of a `Dim`, `dims.undelivered` does."""
_KEEP = "If the dims always have such sizes, change nothing; otherwise rewrite the line."


def findings(request: Request, guards: Guards, told: Container[object]) -> Iterator[Finding]:
    """The findings about lines at which the model, in eager PyTorch as well, refuses sizes of such dims.

    Args:
        request: The export.
        guards: torch's decisions during the capture.
        told: The places of other findings about sizes.
    """
    first: dict[object, Finding] = {}
    for dims, guard, constraint, limit in _conditions(request, guards):
        named = ", ".join(dict.fromkeys(dim.name for dim in dims))
        # NOTE: a Dim such as `2 * half` promises all sizes of its range.
        is_promised = any(dim.kind is Kind.DERIVED for dim in dims)
        texts = {"dim": named, "constraint": constraint}
        rule = ConstraintViolated(**texts) if is_promised else SizesRequired(**texts)
        notes = tuple(f"The dim '{dim.name}' is {dim.place}." for dim in dims if dim.name != dim.place)
        at = assumptions.evidence_about(request, guard)
        # NOTE: the equations that one operator asks for mostly follow from one another.
        key = at.location if limit is None else rule
        first.setdefault(key, Finding(rule, at, notes, (_fix(request, dims[0], limit),), blocking=False))
    yield from (finding for finding in first.values() if finding.place not in told)


def _conditions(request: Request, guards: Guards) -> Iterator[tuple[list[InputDim], Guard, str, Limit | None]]:
    """The conditions: their dims, their guards, their texts, and what they are for a single dim."""
    names = request.shapes.names()
    for relation, related, guard in guards.equations(request.shapes.dynamic, all_of_them=True):
        dims = list({dim.name: dim for dim in reversed(related)}.values())[::-1]
        symbol = guards.symbols.of(dims[0])
        if not all(dim.kind in _TOLD for dim in dims) or not _is_torchs(guard):
            continue
        alone = symbol is not None and relation.free_symbols == {symbol}
        limit = size_limits.limit_of(relation, symbol, dims[0].size, dims[0].least, dims[0].most) if alone and symbol is not None else None
        if limit is None:
            yield dims, guard, guards.symbols.text(relation, names), None
        else:
            yield dims[:1], guard, limit.of(dims[0].name), limit
    for dim in request.shapes.dynamic:
        for limit, guard in guards.limits(dim, dim.least, dim.most) if dim.kind in _HINTS else ():
            if _is_required(request, guards, dim, limit, guard):
                yield [dim], guard, limit.of(dim.name), limit


def _is_torchs(guard: Guard) -> bool:
    """Whether an operator of PyTorch made `guard`: the fake kernel of another one may refuse more than the operator does."""
    operator = None if guard.operator is None else guard.operator.operator
    return isinstance(operator, OpOverload) and operator.namespace == "aten"


def _is_required(request: Request, guards: Guards, dim: InputDim, limit: Limit, guard: Guard) -> bool:
    """Whether the operator that made `guard` refuses a size next to those that `limit` allows."""
    symbol, sizes = guards.symbols.of(dim), guards.symbols.sizes(request.shapes.dims)
    if guard.operator is None or symbol is None or not _is_torchs(guard) or not guard.operator.takes(sizes):
        return False
    others = (limit.most + 1 if limit.most is not None else dim.size + 1, *([limit.least - 1] if limit.least is not None else []))
    return not any(guard.operator.takes({**sizes, symbol: other}) for other in others)


def _fix(request: Request, dim: InputDim, limit: Limit | None) -> Fix:
    """The entry of `dynamic_shapes` that states the limit; advice in words where no entry can."""
    stated = None
    if limit is not None and limit.factor > 1 and dim.kind is Kind.NAMED:
        stated = shapes_argument.multiple(dim.name, limit.factor, dim.least, dim.most)
    elif limit is not None and limit.most is not None and (limit.least or dim.least) < limit.most:
        bounds = {"min": limit.least, "max": limit.most} if limit.least is not None else {"max": limit.most}
        stated = Dim(dim.name, **bounds) if dim.kind is Kind.NAMED else Dim.DYNAMIC(**bounds)
    if stated is None:
        return Fix(_KEEP, Confidence.CHANGES_BEHAVIOUR)
    structure = request.shapes.by_parameter(dict.fromkeys(request.shapes.same_name(dim), stated))
    return shapes_argument.fix(request, "State it in dynamic_shapes.", Confidence.CHANGES_BEHAVIOUR, structure)
