"""Assumptions of a graph about sizes that should vary: branches that were taken, parts that were counted, sizes of 1."""

from __future__ import annotations

import dataclasses
import itertools
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

import sympy
import torch
from torch.export import Dim

from onnxplain.capture.finding import Finding, fallback
from onnxplain.capture.observe import replays, size_limits
from onnxplain.capture.observe.dim_symbols import as_text
from onnxplain.capture.observe.guards import Guard, Guards, larger, smaller
from onnxplain.capture.observe.replays import Call
from onnxplain.capture.rewrite import control_flow
from onnxplain.diagnostics import Confidence, Evidence, Fix, Location
from onnxplain.request import InputDim, Kind, Request
from onnxplain.rules import ConstraintViolated, SpecializedDynamicDim
from onnxplain.source import locations, syntax
from onnxplain.torch_internals.operators import failed

from . import shapes_argument

_EXAMPLE = "Name the dims to drop, such as squeeze(2); or pass an example of another size; or leave the dim out of dynamic_shapes."
_ONE = "Name the dims to drop, such as squeeze(2); or exclude size 1 in dynamic_shapes, with a Dim whose min is 2."
_COMPUTED = "Squeeze only dims that always have size 1, such as squeeze(2); or exclude these sizes in dynamic_shapes."
_LARGER = "Pass an example for which this size is larger than 1: torch then keeps it."
_PARTS = "Rewrite the line so that the number of parts does not depend on the size, or always use this size."
_NUMBER = "Pass a number that does not depend on the size; or exclude the other sizes in dynamic_shapes, with bounds or a multiple."
_STATE = "State it in dynamic_shapes."
_REWRITE = "Rewrite the line so that it is right for all sizes, for example with torch.where instead of the branch."

_TRIES = 8
"""With how many other sizes an operator is tried."""
MORE_THAN_ONE = ">= 2"
"""The limit of a dim that may have all sizes but 1."""


def ones(request: Request, guards: Guards, program: torch.export.ExportedProgram) -> Iterator[Finding]:
    """The findings about operators, such as `squeeze`, that treat size 1 differently in eager mode.

    The graph is right for other sizes, but not for the example.
    """
    dims = [*request.shapes.dynamic, *request.shapes.open]
    for node, expression in kept_ones(guards, program, dims):
        related = guards.symbols.places([expression], dims)
        fix = Fix(_EXAMPLE, Confidence.CHANGES_BEHAVIOUR)
        if expression.is_Symbol and related:
            yield Finding(SpecializedDynamicDim(dim=related[0].name, value=1), locations.at_node(node), fixes=(fix,))
            continue
        constraint = _not_one(guards, expression, {dim: dim.name for dim in related}, guards.symbols.sizes(dims))
        rule = ConstraintViolated(dim=", ".join(dict.fromkeys(dim.name for dim in related)), constraint=constraint)
        yield Finding(rule, locations.at_node(node), fixes=(fix,))


def kept_ones(
    guards: Guards, program: torch.export.ExportedProgram, dims: Sequence[InputDim]
) -> Iterator[tuple[torch.fx.Node, sympy.Basic]]:
    """The operators whose shapes for the example differ from those in the graph, each with an expression of sizes that is 1 there."""
    sizes = guards.symbols.sizes(dims)
    for node, call in replays.calls(program) if sizes else ():
        ones = call.ones(sizes)
        if not ones or not call.differs(node.meta.get("val"), sizes):
            continue
        symbols = {symbol for each in ones for symbol in each.free_symbols}
        alone = {each: sizes | {other: sizes[other] + 2 for other in sizes.keys() & symbols - each.free_symbols} for each in ones}
        decisive = [each for each, other_sizes in alone.items() if call.differs(node.meta.get("val"), other_sizes)]
        yield from ((node, each) for each in sorted(decisive or ones, key=str))


def branches(
    request: Request, guards: Guards, program: torch.export.ExportedProgram, names: Mapping[InputDim, str], others: Mapping[InputDim, str]
) -> list[Finding]:
    """A finding for each line that took a branch by the sizes of the named dims.

    Args:
        request: The export.
        guards: torch's decisions during the capture.
        program: The program.
        names: The dims with their names.
        others: Further dims on which such a decision may depend as well.
    """
    known = {**others, **names}
    sizes = guards.symbols.sizes(request.shapes.dims)
    # NOTE: `other_sizes` knows which of the parts that an operator of the graph returns are in use.
    counted = {node.target for node in program.graph.nodes}
    by_place: dict[Location | None, list[tuple[str, Guard]]] = {}
    for relation, guard in guards.asked(names, others):
        # NOTE: libraries often ask whether a tensor is empty, and whether sizes of several inputs belong together.
        users = locations.is_users(guard.stack[-1].file)
        least = 0 if users else 2
        if (
            (users or not _belong_together(guard.relation, sizes))
            and (is_branch(guard) or guards.decided(guard, request.shapes.dims, counted))
            and size_limits.excludes(guard.relation, least)
        ):
            by_place.setdefault(evidence_about(request, guard).location, []).append((relation, guard))
    found = []
    for taken in by_place.values():
        dims = guards.symbols.places([guard.relation for _, guard in taken], known)
        constraint = " and ".join(dict.fromkeys(relation for relation, _ in taken))
        interval, stated = _stated(request, guards, [guard for _, guard in taken])
        at = evidence_about(request, taken[0][1])
        # NOTE: the export goes on, so nothing tries the edits.
        edits = control_flow.for_int_of_size(at.location) if at.location is not None else []
        guesses = [dataclasses.replace(each, confidence=Confidence.GUESS) for each in edits]
        advice = _NUMBER if all(guard.makes_number and not is_branch(guard) for _, guard in taken) else _REWRITE
        rewrite = Fix(advice, Confidence.CHANGES_BEHAVIOUR)
        if stated and all(syntax.refuses(guard.stack[-1]) for _, guard in taken):
            # NOTE: eager mode refuses the other sizes as well.
            constraint, rewrite, stated = interval, dataclasses.replace(stated[0], confidence=Confidence.SAFE), []
        elif " and " not in interval and not all(any(side.is_Symbol for side in guard.relation.args) for _, guard in taken):
            # NOTE: a computed size, as in `(n - 5) // 4 >= 1`, is harder to read.
            constraint = interval or constraint
        rule = ConstraintViolated(dim=", ".join(dict.fromkeys(known[dim] for dim in dims)), constraint=constraint)
        found.append(Finding(rule, at, fixes=(*guesses, rewrite, *stated), blocking=False))
    return found


def _stated(request: Request, guards: Guards, taken: Sequence[Guard]) -> tuple[str, list[Fix]]:
    """The sizes of a named dim for which all these decisions are right, as a relation of its name, and the fix that states them."""
    symbols = {symbol for guard in taken for symbol in guard.relation.free_symbols}
    dims = [dim for dim in request.shapes.dynamic if guards.symbols.of(dim) in symbols]
    names = {dim.name for dim in dims if dim.kind in (Kind.NAMED, Kind.DIM)}
    if len(symbols) != 1 or len(names) != 1 or not all(dim.name in names and dim.name.isidentifier() for dim in dims):
        return "", []
    name, example, (symbol,) = dims[0].name, dims[0].size, symbols
    least, most = max(1, *(dim.least for dim in dims)), min(dim.most for dim in dims)
    same = [each for dim in dims for each in request.shapes.same_name(dim)]
    limits = [size_limits.limit_of(guard.relation, symbol, example, least, most) for guard in taken]
    if all(limit is not None and limit.most is None for limit in limits):
        factor = math.lcm(*(limit.factor for limit in limits if limit is not None))
        stated = shapes_argument.multiple(name, factor, least, most)
        structure = request.shapes.by_parameter(dict.fromkeys(same, stated))
        return f"{name} % {factor} == 0", [shapes_argument.fix(request, _STATE, Confidence.CHANGES_BEHAVIOUR, structure)]
    intervals = [size_limits.interval_of(guard.relation, symbol, example, least, most) for guard in taken]
    known = [each for each in intervals if each is not None]
    first, last = max((each for each, _ in known), default=0), min((each for _, each in known), default=0)
    if len(known) < len(intervals) or first >= last:
        return "", []
    bounds = {"min": first} if first > least or any(dim.least > 1 for dim in dims) else {}
    bounds |= {"max": last} if last < sys.maxsize else {}
    texts = [*([f"{name} >= {first}"] if first > least else []), *([f"{name} <= {last}"] if last < most else [])]
    structure = request.shapes.by_parameter(dict.fromkeys(same, Dim(name, **bounds)))
    return " and ".join(texts), [shapes_argument.fix(request, _STATE, Confidence.CHANGES_BEHAVIOUR, structure)]


def _belong_together(relation: sympy.Basic, sizes: Mapping[sympy.Basic, int]) -> bool:
    """Whether a size is the sum of others in the example, such as the length of a mask for the past and for new tokens.

    Of two sizes that are equal in the example, one may well be another size later; a sum is no coincidence.
    """
    if not isinstance(relation, sympy.Le | sympy.Ge) or len(relation.free_symbols) < 3:
        return False
    return bool((relation.lhs - relation.rhs).xreplace(sizes) == 0)


def decided(
    guards: Guards, program: torch.export.ExportedProgram, names: Mapping[InputDim, str], others: Mapping[InputDim, str]
) -> Iterator[Finding]:
    """The findings about operators that decided by the sizes of dims: how many parts to make, which dims to drop.

    The arguments are those of `branches`.
    """
    yield from _caught(guards, program, names, others)
    yield from _squeezed(guards, program, names, others)
    for node, call, dim, limits in other_sizes(guards, program, list(names), list(others)):
        constraint = " and ".join(f"{names[dim]} {limit}" for limit in _joined(limits) or ("!= 1",))
        fix = Fix(_ONE if call.squeezes else _PARTS, Confidence.CHANGES_BEHAVIOUR)
        yield Finding(ConstraintViolated(dim=names[dim], constraint=constraint), locations.at_node(node), fixes=(fix,), blocking=False)


def _caught(
    guards: Guards, program: torch.export.ExportedProgram, names: Mapping[InputDim, str], others: Mapping[InputDim, str]
) -> Iterator[Finding]:
    """The findings about operators that refused the example's sizes, whose exception the model caught, and that take other sizes."""
    sizes = guards.symbols.sizes([*others, *names])
    own = guards.symbols.sizes(names).keys()
    for node, call in replays.calls(program) if own else ():
        for symbol in sorted(call.symbols() & own, key=str) if failed(node) else ():
            dim = guards.symbols.places([symbol], list(names))[0]
            for size, tried in _allowed(guards, dim, symbol, sizes):
                if call.parts(tried) is not None:
                    rule = ConstraintViolated(dim=names[dim], constraint=f"{names[dim]} != {size}")
                    yield Finding(rule, locations.at_node(node), fixes=(Fix(_REWRITE, Confidence.CHANGES_BEHAVIOUR),), blocking=False)
                    break


def _squeezed(
    guards: Guards, program: torch.export.ExportedProgram, names: Mapping[InputDim, str], others: Mapping[InputDim, str]
) -> Iterator[Finding]:
    """The findings about squeezes of a computed size, such as `n % 3`, that is 1 for other sizes than the example's.

    NOTE: without a guard of torch's, `branches` does not know these.
    """
    known = {**others, **names}
    sizes = guards.symbols.sizes(known)
    own = guards.symbols.sizes(names).keys()
    asked = {guard.relation for guard in guards.made}
    told = set()
    for node, call in replays.calls(program) if own else ():
        for symbol in sorted(call.symbols() & own, key=str) if call.squeezes and _is_predicted(node, call, sizes) else ():
            ones: dict[sympy.Basic, Mapping[sympy.Basic, int]] = {}
            for tried in _together(guards, symbol, call.symbols(), list(known)):
                others_of_one = call.ones(tried) - ones.keys()
                new = {each for each in others_of_one if not each.is_Symbol and not asked & {sympy.Eq(each, 1), sympy.Ne(each, 1)}}
                if new and call.differs(node.meta.get("val"), tried):
                    ones |= dict.fromkeys(new, tried)
            if not ones:
                continue
            related = guards.symbols.places(ones, list(known))
            dims = dict.fromkeys(name for dim, name in known.items() if dim in related)
            constraint = " and ".join(sorted(_not_one(guards, each, known, tried) for each, tried in ones.items()))
            rule = ConstraintViolated(dim=", ".join(dims), constraint=constraint)
            if (node, rule) not in told:
                told.add((node, rule))
                yield Finding(rule, locations.at_node(node), fixes=(Fix(_COMPUTED, Confidence.CHANGES_BEHAVIOUR),), blocking=False)


def _not_one(guards: Guards, size: sympy.Basic, names: Mapping[InputDim, str], sizes: Mapping[sympy.Basic, int]) -> str:
    """That a computed `size` is not 1, as it is for `sizes`: about the dim alone if there is one size, or a range from 1, to exclude."""
    # NOTE: dims of one name may have a symbol each (torch 2.15).
    named, examples = size.xreplace(guards.symbols.named(names)), {sizes[symbol] for symbol in size.free_symbols & sizes.keys()}
    if len(named.free_symbols) == len(examples) == 1:
        (symbol,), (example,) = named.free_symbols, examples
        ends = size_limits.around(sympy.Eq(named, 1), symbol, example, 1, sys.maxsize)
        if ends is not None and ends[0] == ends[1]:
            return f"{as_text(symbol)} != {ends[0]}"
        if ends is not None and ends[0] == 1:
            return f"{as_text(symbol)} > {ends[1]}"
    return as_text(sympy.Ne(named, 1, evaluate=False))


def taken_for_one(
    guards: Guards, program: torch.export.ExportedProgram, names: Mapping[InputDim, str], others: Mapping[InputDim, str]
) -> Iterator[Finding]:
    """The findings about computed sizes, such as `height // 32`, that are 1 for the example, and 1 for all sizes in an operator's results.

    torch asked whether they are 1, for example to multiply matrices, and goes by the answer where it broadcasts tensors later.
    """
    known = {**others, **names}
    sizes, own = guards.symbols.sizes(known), guards.symbols.sizes(names).keys()
    # NOTE: a product is 1 as well where torch asked about its factors.
    asked = {
        symbol for guard in guards.made if (size := size_limits.computed_one(guard.relation)) is not None for symbol in size.free_symbols
    }
    told = set[sympy.Basic]()
    for node, call in replays.calls(program) if own and asked else ():
        ones = {each for each in call.ones(sizes) if not each.is_Symbol and each.free_symbols <= asked} - told
        if not ones or call.squeezes or call.differs(node.meta.get("val"), sizes):
            continue
        further = itertools.chain.from_iterable(_together(guards, each, call.symbols(), list(known)) for each in call.symbols() & own)
        apart = itertools.islice((tried for tried in further if ones - call.ones(tried)), _TRIES)
        if any(call.differs(node.meta.get("val"), tried) for tried in apart):
            told |= ones
            related = guards.symbols.places(ones, list(known))
            dims = dict.fromkeys(name for dim, name in known.items() if dim in related)
            constraint = " and ".join(sorted(guards.symbols.text(sympy.Eq(each, 1, evaluate=False), known) for each in ones))
            fix = Fix(_LARGER, Confidence.CHANGES_BEHAVIOUR)
            rule = ConstraintViolated(dim=", ".join(dims), constraint=constraint)
            yield Finding(rule, locations.at_node(node), fixes=(fix,), blocking=False)


def _together(
    guards: Guards, symbol: sympy.Basic, related: Iterable[sympy.Basic], dims: Sequence[InputDim]
) -> Iterator[Mapping[sympy.Basic, int]]:
    """Sizes that `dims` may have in which `symbol` has another size: alone, with the dims of the same name, and with all `related` ones.

    A product, for example, is 1 only if each of its factors is.
    """
    sizes = guards.symbols.sizes(dims)
    places = {each: guards.symbols.places([each], dims)[0] for each in sizes}
    same = guards.alike(dims).get(symbol, {symbol})
    for size, tried in _allowed(guards, places[symbol], symbol, sizes):
        yield {**tried, **dict.fromkeys(same, tried[symbol])}
        if all(places[each].allows(size) for each in related if each in places):
            yield {**sizes, **dict.fromkeys(related, tried[symbol])}


def _allowed(
    guards: Guards, dim: InputDim, symbol: sympy.Basic, sizes: Mapping[sympy.Basic, int]
) -> Iterator[tuple[int, Mapping[sympy.Basic, int]]]:
    """Other sizes that `dim` may have, each with `sizes` in which `symbol` gives it this size."""
    expression = _expression(guards, dim, symbol)
    for tried in ({**sizes, symbol: 1}, *smaller(symbol, sizes), *larger(symbol, sizes)):
        size = int(expression.xreplace({symbol: sympy.Integer(tried[symbol])}))
        if dim.allows(size):
            yield size, tried


def other_sizes(
    guards: Guards, program: torch.export.ExportedProgram, dims: Sequence[InputDim], others: Sequence[InputDim]
) -> Iterator[tuple[torch.fx.Node, Call, InputDim, list[str]]]:
    """The operators whose results have other shapes for other sizes of a dim than the graph says.

    Args:
        guards: torch's decisions during the capture.
        program: The program.
        dims: The dims.
        others: The other dims that may vary.

    Yields:
        The node, its call, the dim, and the limits of the sizes for which the graph is right, such as `<= 8`; no limits where only size 1
        is wrong.
    """
    sizes = guards.symbols.sizes([*others, *dims])
    own = guards.symbols.sizes(dims).keys()
    for node, call in replays.calls(program) if own else ():
        if not (call.counts or call.squeezes):
            continue
        for symbol in sorted(call.symbols() & own, key=str):
            dim = next(iter(guards.symbols.places([symbol], dims)), None)
            # NOTE: a graph that fixed a dim of size 1 was captured again with size 2, and a squeeze keeps computed sizes that are 1.
            tried = (sizes, {each: max(size, 2) if call.counts else size + 2 for each, size in sizes.items()})
            example = next((each for each in tried if _is_predicted(node, call, each)), None)
            if dim is None or example is None:
                continue
            one = {**example, symbol: 1}
            if call.squeezes and dim.allows(1) and symbol in call.ones(one) - call.ones(sizes) and call.differs(node.meta.get("val"), one):
                yield node, call, dim, []
            # NOTE: an operator that changes its argument's shape in place is no use to `branches`, which asks it about other sizes.
            limits = list(_limits(guards, node, call, symbol, example, dim)) if call.counts or call.squeezes_in_place else []
            # NOTE: where the line unpacks the parts, eager mode refuses a single part as well.
            if limits and not (limits == [MORE_THAN_ONE] and syntax.unpacks(locations.at_node(node).location)):
                yield node, call, dim, limits


def _is_predicted(node: torch.fx.Node, call: Call, sizes: Mapping[sympy.Basic, int]) -> bool:
    """Whether `call` returns for the example what the graph says: as many parts, or the same shapes."""
    parts = node.meta.get("val")
    if call.counts and isinstance(parts, list | tuple):
        # NOTE: the parts of an `unbind` of a dynamic dim have one dim too many in torch's graph (seen in 2.13).
        return call.parts(sizes) == len(parts)
    return not call.differs(parts, sizes)


def _joined(limits: Sequence[str]) -> Sequence[str]:
    """`limits`; one for a single size."""
    numbers = {limit.split()[1] for limit in limits}
    return [f"== {number}" for number in numbers] if len(limits) == 2 and len(numbers) == 1 else limits


def _limits(
    guards: Guards, node: torch.fx.Node, call: Call, symbol: sympy.Basic, sizes: Mapping[sympy.Basic, int], dim: InputDim
) -> Iterator[str]:
    """The limits of the sizes of `dim` for which `call` returns as many parts or dims as for the example, or the shapes in the graph."""
    parts, expression = call.parts(sizes), _expression(guards, dim, symbol)
    collects = syntax.collects(locations.at_node(node).location)

    def differs(size: int) -> bool:
        others = {**sizes, symbol: size}
        if not call.counts:
            return call.differs(node.meta.get("val"), others)
        count = call.parts(others)
        if count is None or count == parts:
            return False
        # NOTE: where size 1 makes a part smaller than the graph says, the model runs all the same; not so without the part, or with
        # further parts where a loop takes all.
        if collects:
            return True
        matters = size > 1 or not call.used or count <= call.used[-1] or (count > len(call.used) and len(call.used) == parts)
        return matters and call.differs(node.meta.get("val"), others)

    one = [{**sizes, symbol: 1}] if sizes[symbol] > 1 and call.counts else []
    for relation, step, tried in (">=", -1, [*smaller(symbol, sizes), *one]), ("<=", 1, larger(symbol, sizes)):
        right = sizes[symbol]
        for each in tried:
            wrong = int(each[symbol])
            if differs(wrong):
                while abs(wrong - right) > 1:
                    middle = (right + wrong) // 2
                    right, wrong = (right, middle) if differs(middle) else (middle, wrong)
                last, beyond = (int(expression.xreplace({symbol: sympy.Integer(each)})) for each in (right, right + step))
                if dim.allows(beyond):
                    yield f"{relation} {last}"
                break
            right = wrong


def _expression(guards: Guards, dim: InputDim, symbol: sympy.Basic) -> sympy.Basic:
    """The size of `dim`, computed from `symbol`: that of a Dim such as `half + 1` from `half`."""
    own = guards.symbols.of(dim)
    return symbol if own in (None, symbol) else guards.symbols.expression(own)


def is_branch(guard: Guard) -> bool:
    """Whether `guard` comes from a decision that Python took, such as an `if`, rather than from an operator.

    An operator that refuses other sizes decides as well where the model catches its exception.
    """
    if guard.asked_by_python or (guard.stack and syntax.catches_refusals(guard.stack[-1])):
        return True
    if not guard.interpreted:
        return False
    # NOTE: TorchDynamo does not run the model's code. It makes numbers of sizes for what takes no symbols, such as a dict; whether Python
    # asked for a truth value shows in the source only.
    made_number = guard.operator is None and isinstance(guard.relation, sympy.Eq) and any(side.is_number for side in guard.relation.args)
    return made_number or syntax.test_at(guard.stack[-1]) is not None or syntax.counts_truth(guard.stack[-1])


def evidence_about(request: Request, guard: Guard | None) -> Evidence:
    """The user's line that made `guard`, without the body of its statement. Without such a line: the fallback of the request."""
    stack = () if guard is None else guard.stack
    evidence = locations.at_stack((*stack[:-1], syntax.without_body(stack[-1]))) if stack else Evidence()
    return evidence if evidence.location else fallback(request)
