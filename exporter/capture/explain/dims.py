"""Dims that are less dynamic than `dynamic_shapes` requests: frozen, equal to others, bounded, or multiples."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.export import Dim

from onnxplain.capture.finding import Finding
from onnxplain.capture.observe import size_limits
from onnxplain.capture.observe.guards import Guard, Guards, is_identity
from onnxplain.capture.observe.program_sizes import constant_dims, sizes_in
from onnxplain.capture.rewrite import control_flow, literals, packing, row_loops
from onnxplain.diagnostics import Confidence, Evidence, Fix, Location
from onnxplain.request import InputDim, Kind, Request
from onnxplain.rules import ArgumentIgnored, ConstraintViolated, DimsFixed, SpecializedDynamicDim
from onnxplain.source import locations, syntax

from . import arguments, assumptions, certain_sizes, computed_dims, narrowing, required_sizes, shapes_argument

_TRIED = 64
"""How many sizes below the least one that torch suggests are compared with the model's branches."""
_NOT_EMPTY = "Export with an example that is not empty. The exported model then does with every tensor what the model does with those."
_KEEP = "If these sizes never vary, change nothing; otherwise rewrite the line without them, for example with -1 in a view."


def constraints(request: Request, error: Exception, guards: Guards) -> Iterator[Finding]:
    """The findings about dims that cannot have every size, if `error` is about that."""
    if not narrowing.violates(error):
        return
    refined = narrowing.refined(error, request)
    constants = _constants(request, guards)
    given_up: dict[InputDim, int] = {}
    relations: dict[str, Finding] = {}
    for dim in request.shapes.dynamic:
        if dim in constants:
            continue
        before, after = dim.given, refined.get(dim)
        if isinstance(after, int):
            (given_up if guards.varies(dim) else constants)[dim] = after
        elif isinstance(before, Dim) and isinstance(after, Dim) and (relation := narrowing.relation(before, after)):
            only_lower = before.__name__ == after.__name__ and (before.max == after.max or after.max >= size_limits.LARGEST)
            smaller = guards.excluding(dim, range(max(before.min, 1, after.min - _TRIED), after.min)) if only_lower else iter(())
            larger = guards.excluding(dim, (after.max + 1,)) if after.max < before.max else iter(())
            guard = next(filter(assumptions.is_branch, smaller), None) or next(larger, None) or guards.decisive(dim)
            # NOTE: a size smaller than a kernel or a window fails anyway, and so does one too large for `quantile`; a size that a branch of
            # the model decides by does not.
            negligible = only_lower and not (guard is not None and assumptions.is_branch(guard))
            found = _violated(request, guards, dim, relation, request.shapes.by_parameter(refined), guard)
            finding = dataclasses.replace(found, negligible=negligible or narrowing.gives_up(dim, after, guards))
            # NOTE: a branch may ask for the size of another dim of the same name.
            if dim.name not in relations or relations[dim.name].negligible:
                relations[dim.name] = finding
    yield from _frozen_dims(request, guards, constants)
    yield from (dataclasses.replace(finding, negligible=True) for finding in _frozen_dims(request, guards, given_up))
    yield from relations.values()


def undelivered(request: Request, guards: Guards, program: torch.export.ExportedProgram) -> list[Finding]:
    """The findings about a program that does not keep the promises of `dynamic_shapes`."""
    if (difference := shapes_argument.beyond_rank(request.shapes)) is not None:
        return [arguments.misfit(request, difference)]
    if (contradiction := shapes_argument.contradiction(request.shapes)) is not None:
        return [arguments.contradictory(request, contradiction)]
    promised = request.shapes.dynamic
    stretched = {dim: 1 for dim in _stretched(sizes_in(program, request.shapes.dims)) if dim in promised}
    constants = constant_dims(request.shapes, program) | _constants(request, guards) | stretched
    names = {dim: name for dim, name in request.shapes.names().items() if dim not in constants}
    also = {dim: dim.place for dim in request.shapes.open}
    # NOTE: of the sizes of a dim for which an operator makes as many parts, torch's guards tell the largest only.
    decided = list(assumptions.decided(guards, program, names, also))
    rules = {_subject(finding): finding.rule for finding in decided}
    others = [*assumptions.ones(request, guards, program), *assumptions.branches(request, guards, program, names, also)]
    # NOTE: where a line limits a size in several ways, these tell all of them.
    in_full = {subject for finding in others for subject in _subjects(finding)}
    limits = [finding for finding, is_partial in _limits(request, guards) if not is_partial or _subject(finding) not in in_full]
    limited = [each for each in (*limits, *_divisors(request, guards)) if rules.get(_subject(each), each.rule) == each.rule]
    subjects = {_subject(finding) for finding in limited}
    equations = list(_equations(request, guards))
    exact = {finding.rule: finding.at for finding in equations}
    # NOTE: of a limit, torch tells no line; the operator that asks for it has one.
    limited = [dataclasses.replace(finding, at=exact.get(finding.rule, finding.at)) for finding in limited]
    told = [
        *_frozen_dims(request, guards, constants),
        *limited,
        *(finding for finding in others if not _subjects(finding) <= subjects),
        *(finding for finding in decided if _subject(finding) not in subjects),
        *computed_dims.findings(request, guards, program),
    ]
    # NOTE: an `assert` before an operator may say what the operator requires.
    places, known = {finding.place for finding in told}, {finding.rule for finding in told}
    told += [finding for finding in equations if finding.place not in places and finding.rule not in known]
    merged = [finding for finding in assumptions.taken_for_one(guards, program, names, also) if finding.place not in places]
    # NOTE: with a size that counts as 1, operators seem to refuse sizes that they take.
    return [*told, *merged] if merged else [*told, *required_sizes.findings(request, guards, {finding.place for finding in told})]


def _subject(finding: Finding) -> tuple[object, str]:
    return finding.place, finding.rule.dim if isinstance(finding.rule, ConstraintViolated) else ""


def _subjects(finding: Finding) -> set[tuple[object, str]]:
    """The place of `finding`, with each dim that it is about."""
    place, dims = _subject(finding)
    return {(place, dim) for dim in dims.split(", ")}


def broadcast(request: Request, guards: Guards) -> list[Finding]:
    """The findings about dims of size 1 that the model broadcasts, if they ended the capture."""
    return _frozen_dims(request, guards, {dim: dim.size for dim in guards.broadcast(request.shapes.dynamic)})


def fixed(request: Request, guards: Guards, program: torch.export.ExportedProgram | None, *, own: bool) -> dict[InputDim, Evidence]:
    """The dims that the model fixes among those that may be dynamic, each with the line that fixes it.

    Args:
        request: The export.
        guards: torch's decisions during the capture.
        program: The program; None if the dims ended the capture.
        own: Whether the strategy is the user's, which may have asked torch for fewer dims.
    """
    open_dims = request.shapes.open
    if program is None:
        return {dim: assumptions.evidence_about(request, guard) for dim, guard in guards.broadcast(open_dims).items()}
    sizes = {dim: size for dim, size in sizes_in(program, open_dims).items() if not own or dim in guards.symbols}
    stretched = _stretched(sizes_in(program, request.shapes.dims))
    found: dict[InputDim, Evidence] = {}
    for dim, size in sizes.items():
        fixing = guards.fixing(dim)
        if isinstance(size, int) or fixing is not None or dim in stretched:
            found[dim] = assumptions.evidence_about(request, fixing or guards.decisive(dim))
    for _, related, guard in guards.equations(open_dims):
        for dim in related:
            found.setdefault(dim, assumptions.evidence_about(request, guard))
    for node, expression in assumptions.kept_ones(guards, program, open_dims):
        for dim in guards.symbols.places([expression], open_dims):
            found.setdefault(dim, locations.at_node(node))
    for node, _, dim, limits in assumptions.other_sizes(guards, program, open_dims, request.shapes.dynamic):
        # NOTE: a dim that may have all sizes but 1 is worth more than a static one. `left_open` tells about it.
        if limits not in ([], [assumptions.MORE_THAN_ONE]):
            found.setdefault(dim, locations.at_node(node))
    return {dim: found[dim] for dim in open_dims if dim in found}


def _stretched(sizes: Mapping[InputDim, Any]) -> list[InputDim]:
    """The dims of size 1 that equal a larger dim in the graph. The model broadcasts them; with another size it would not."""
    larger = {size for dim, size in sizes.items() if dim.size > 1}
    return [dim for dim, size in sizes.items() if dim.size == 1 and size in larger and not isinstance(size, int)]


def emptied(request: Request, guards: Guards, guard: Guard) -> list[Finding]:
    """The findings about dims that the example has as 0, for which `guard` decides otherwise than for other sizes; a name counts once."""
    once = {dim.name: dim for dim in reversed(request.shapes.dynamic) if dim.size == 0}
    static = _as_static(request, once.values())
    found = [_frozen_dim(request, guards, guard, dim, 0, static) for dim in reversed(once.values())]
    return [dataclasses.replace(each, fixes=(Fix(_NOT_EMPTY, Confidence.CHANGES_BEHAVIOUR), *each.fixes)) for each in found]


def closed(request: Request, dims: Iterable[InputDim]) -> Request:
    """`request` with those dims fixed at the size of the example."""
    return dataclasses.replace(request, shapes=request.shapes.replaced(dict.fromkeys(dims)))


def left_open(
    request: Request, guards: Guards, program: torch.export.ExportedProgram, fixed: Mapping[InputDim, Evidence]
) -> Iterator[Finding]:
    """The findings about the sizes that a program with all dims dynamic leaves out.

    Args:
        request: The export, without the fixed dims.
        guards: torch's decisions during the capture.
        program: The program.
        fixed: The dims that the model fixes.
    """
    static = [dim.place for dim, size in sizes_in(program, request.shapes.open).items() if isinstance(size, int)]
    if static:
        # NOTE: the user's strategy did not ask torch to let them vary, so the model does not fix them.
        reason = f"the strategy made a program in which {', '.join(static)} cannot vary"
        yield Finding(ArgumentIgnored(argument="dynamic_shapes", reason=reason), Evidence(request.caller))
    by_place: dict[Location | None, list[InputDim]] = {}
    for dim, at in fixed.items():
        by_place.setdefault(at.location, []).append(dim)
    for dims in by_place.values():
        sizes = tuple(f"{dim.place} == {dim.size}" for dim in dims)
        keep = Fix(_KEEP, Confidence.CHANGES_BEHAVIOUR)
        yield Finding(DimsFixed(sizes=sizes), fixed[dims[0]], fixes=(keep,))
    names = {dim: dim.place for dim in request.shapes.open}
    yield from assumptions.branches(request, guards, program, names, {})
    yield from assumptions.decided(guards, program, names, others := {dim: dim.name for dim in request.shapes.dynamic})
    yield from assumptions.taken_for_one(guards, program, names, others)


def _constants(request: Request, guards: Guards) -> dict[InputDim, int]:
    return {dim: value for dim in request.shapes.dynamic if (value := guards.constant(dim)) is not None}


def _frozen_dims(request: Request, guards: Guards, constants: dict[InputDim, int]) -> list[Finding]:
    """A finding for each dim that should be dynamic and has only one size; a name counts once."""
    once = {dim.name: (dim, value) for dim, value in reversed(constants.items())}
    if not once:
        return []
    static = _as_static(request, [dim for dim, _ in once.values()])
    return [_frozen_dim(request, guards, guards.decisive(dim), dim, value, static) for dim, value in reversed(once.values())]


def _as_static(request: Request, dims: Iterable[InputDim]) -> Fix:
    """The fix that leaves dims out of `dynamic_shapes`. The edit covers all of them, so that several findings share one edit."""
    without = request.shapes.by_parameter(dict.fromkeys(each for dim in dims for each in request.shapes.same_name(dim)))
    advice = "If the size is meant to be fixed, leave the dim out of dynamic_shapes."
    return shapes_argument.fix(request, advice, Confidence.CHANGES_BEHAVIOUR, without)


def each_frozen(request: Request, guards: Guards, told: Sequence[Finding]) -> list[Finding]:
    """The lines that fix dims, beside those of findings.

    Args:
        request: The export.
        guards: torch's decisions during a capture that forgets which dims it has fixed.
        told: The findings about dims that are fixed.
    """
    known = {finding.rule.dim for finding in told if isinstance(finding.rule, SpecializedDynamicDim)}
    first: dict[str, tuple[InputDim, Guard]] = {}
    for dim in request.shapes.dynamic:
        guard = next(guards.each_fixing(dim), None)
        # NOTE: torch takes size 1 for any size.
        if guard is not None and dim.name not in known and dim.size > 1:
            first.setdefault(dim.name, (dim, guard))
    static = _as_static(request, [dim for dim, _ in first.values()]) if first else None
    new = [_frozen_dim(request, guards, guard, dim, dim.size, static) for dim, guard in first.values() if static is not None]
    return [*new, *also_frozen(request, guards, [*told, *new])]


def also_frozen(request: Request, guards: Guards, told: Sequence[Finding]) -> list[Finding]:
    """Further lines that fix the dims of findings.

    Args:
        request: The export.
        guards: torch's decisions during a capture that forgets which dims it has fixed.
        told: The findings about the first lines.
    """
    known = {finding.rule.dim: finding for finding in told if isinstance(finding.rule, SpecializedDynamicDim)}
    found: dict[tuple[object, str], Finding] = {(finding.place, dim): finding for dim, finding in known.items()}
    for dim in request.shapes.dynamic:
        for guard in guards.each_fixing(dim) if dim.name in known and dim.size > 1 else ():
            place = syntax.without_body(guard.stack[-1])
            # NOTE: where the number is not written on the line, it may come from an earlier line, which also fixes the dim.
            own = guard.asked_by_python and not syntax.compares(place)
            if syntax.makes_number(place) or not (own or syntax.has_number(place, dim.size)):
                continue
            # NOTE: a loop or a cache is rewritten, once nothing else fixes the dim.
            if guard.site is None or not (control_flow.for_size(place, guard.site) or control_flow.for_cache(place)):
                finding = _frozen_dim(request, guards, guard, dim, dim.size, known[dim.name].fixes[-1])
                found.setdefault((finding.place, dim.name), finding)
    return list(found.values())[len(known) :]


def avoidable_limits(request: Request, guards: Guards, findings: Sequence[Finding]) -> list[Finding]:
    """The limits among `findings` that come from a loop, unrolled as often as it ran for the example, or from a cache of an earlier run.

    Each has the fixes that keep the loop, or that fill the cache.

    Args:
        request: The export.
        guards: torch's decisions during the capture.
        findings: The findings about it.
    """
    limits = {finding.place: finding for finding in findings if isinstance(finding.rule, ConstraintViolated)}
    # NOTE: a cache for many more sizes than that of the example was filled on purpose. Some grow by doubling.
    ranges = ((dim, guards.symbols.range_of(symbol)) for dim in request.shapes.dynamic if (symbol := guards.symbols.of(dim)) is not None)
    outgrown = any(bounds is not None and bounds[1] <= 2 * dim.size for dim, bounds in ranges)
    fixes: dict[tuple[str, int | None], list[Fix]] = {}
    certain: dict[tuple[str, int | None], tuple[certain_sizes.Sizes, ...]] = {}
    for guard in guards.made if limits else ():
        location = assumptions.evidence_about(request, guard).location if guard.stack else None
        place = None if location is None else (location.file, location.line)
        if place in limits and place is not None and not fixes.get(place):
            fixes[place] = [] if guard.site is None else control_flow.for_size(syntax.without_body(guard.stack[-1]), guard.site)
            if not fixes[place]:
                fixes[place], certain[place] = certain_sizes.found(request, guards, guard)
    for place, limit in limits.items() if outgrown else ():
        if limit.at.location is not None and not fixes.get(place):
            fixes[place] = control_flow.for_cache(limit.at.location) or fixes.get(place, [])
    return [
        dataclasses.replace(limits[place], fixes=tuple(found), blocking=True, certain=certain.get(place, ()))
        for place, found in fixes.items()
        if found
    ]


def _frozen_dim(request: Request, guards: Guards, guard: Guard | None, dim: InputDim, value: int, static: Fix) -> Finding:
    at = assumptions.evidence_about(request, guard)
    remedies, certain = list[Fix](), tuple[certain_sizes.Sizes, ...]()
    if (place := at.location) is not None:
        numbers = literals.fixes(place, dim.place, value)
        # NOTE: a size that Python asks for is still symbolic, so no number made it.
        computed = guard is None or not guard.asked_by_python
        if not numbers and computed and (before := literals.upstream(place, dim.place, value)) is not None:
            used = place.saying("the dim must have this size here")
            stack = (*at.stack[:-1], before[0])
            at, numbers = dataclasses.replace(at, location=before[0], stack=stack, related=(*at.related, used)), before[1]
        # NOTE: a library may need the size, and then the finding is at the user's line that calls it.
        inner = None if guard is None or not guard.stack else syntax.without_body(guard.stack[-1])
        loops = control_flow.for_size(inner, guard.site) if inner is not None and guard is not None and guard.site is not None else []
        loops += [] if inner is None else control_flow.for_cache(inner)
        # NOTE: an example of size 1 is mostly an oversight, and torch takes a larger one for it.
        others, certain = ([], ()) if loops or value == 1 else certain_sizes.found(request, guards, guard)
        remedies = [*control_flow.for_int_of_size(place), *numbers, *row_loops.fixes(place), *packing.fixes(place), *loops, *others]
    rule = SpecializedDynamicDim(dim=dim.name, value=value)
    return Finding(rule, at, _place_note(dim), (*remedies, static), certain=certain)


def _limits(request: Request, guards: Guards) -> Iterator[tuple[Finding, bool]]:
    """The limits that the graph assumes for named dims, each with whether its line excludes further sizes.

    A hint such as Dim.DYNAMIC promises no particular size.
    """
    seen: set[str] = set()
    for dim in request.shapes.dynamic:
        if dim.kind is not Kind.DIM or dim.name in seen:
            continue
        for limit, guard in guards.limits(dim, dim.least, dim.most):
            seen.add(dim.name)
            most = dim.given.max if limit.most is None else limit.most
            least = dim.given.min if limit.least is None else limit.least
            multiple = shapes_argument.multiple(dim.name, limit.factor, dim.least, dim.most)
            stated = multiple if limit.factor > 1 else _range(dim.name, least, most)
            structure = request.shapes.by_parameter(dict.fromkeys(request.shapes.same_name(dim), stated))
            violated = _violated(request, guards, dim, limit.of(dim.name), structure, guard)
            # NOTE: a number on the line that is the size in the example is more likely a mistake than a promise.
            numbers = literals.fixes(violated.at.location, dim.place, dim.size) if violated.at.location and limit.factor > 1 else []
            guesses = [dataclasses.replace(each, confidence=Confidence.GUESS) for each in numbers]
            told = dataclasses.replace(violated, fixes=(*guesses, *violated.fixes), blocking=False)
            yield told, guards.is_partial(limit, guard, dim)
            break


def _equations(request: Request, guards: Guards) -> Iterator[Finding]:
    """The findings about equations between sizes that leave few sizes, such as `4 * (h // 4) * (w // 4) == 256`; a line counts once."""
    told: set[Location | None] = set()
    fixing = {dim: each for dim in request.shapes.dynamic if dim.size > 1 and (each := next(guards.each_fixing(dim), None)) is not None}
    for relation, related, guard in guards.equations(request.shapes.dynamic):
        at = assumptions.evidence_about(request, guard)
        # NOTE: where another line fixes a dim, equations that hold for this size follow from it.
        others = {guards.symbols.of(dim): dim.size for dim, other in fixing.items() if other is not guard}
        if at.location in told or is_identity(relation.xreplace(others)):
            continue
        told.add(at.location)
        dims = list({dim.name: dim for dim in reversed(related)}.values())[::-1]
        dim, symbol = dims[0], guards.symbols.of(dims[0])
        alone = relation.free_symbols == {symbol} and symbol is not None
        limit = size_limits.limit_of(relation, symbol, dim.size, dim.least, dim.most) if alone and dim.kind is not Kind.DERIVED else None
        same = [each for dim in dims for each in request.shapes.same_name(dim)]
        advice, specs = "If these sizes never vary, leave the dims out of dynamic_shapes; otherwise rewrite the line.", dict.fromkeys(same)
        confidence = Confidence.CHANGES_BEHAVIOUR
        if limit is not None and limit.least is not None and limit.most is not None and limit.least < limit.most:
            advice = "State it in dynamic_shapes."
            bounds = {"min": limit.least, "max": limit.most}
            specs = dict.fromkeys(same, Dim.DYNAMIC(**bounds) if dim.kind is Kind.DYNAMIC else Dim(dim.name, **bounds))
        elif (one_from_other := _one_from_other(request, guards, relation, dims)) is not None:
            advice, confidence, specs = "State it in dynamic_shapes.", Confidence.SAFE, one_from_other
        names = request.shapes.names()
        constraint = guards.symbols.text(relation, names) if limit is None else limit.of(dim.name)
        if limit is not None and limit.least is not None and limit.least == limit.most:
            frozen = _frozen_dim(request, guards, guard, dim, limit.least, _as_static(request, [dim]))
            rule = ConstraintViolated(dim=dim.name, constraint=f"{dim.name} == {limit.least}")
            yield Finding(rule, frozen.at, frozen.notes, frozen.fixes, blocking=False)
            continue
        rule = ConstraintViolated(dim=", ".join(each.name for each in dims), constraint=constraint)
        fix = shapes_argument.fix(request, advice, confidence, request.shapes.by_parameter(specs))
        notes = tuple(note for each in dims for note in _place_note(each))
        yield Finding(rule, at, notes, (fix,), blocking=False)


def _one_from_other(request: Request, guards: Guards, relation: sympy.Basic, dims: Sequence[InputDim]) -> dict[InputDim, Any] | None:
    """The entries that compute a dim from another one as `relation` asks for, such as `Dim("n") + 1`; None if it asks for more."""
    stated = guards.symbols.stated(request.shapes.dynamic)
    symbols = {dim: stated.get(symbol) if (symbol := guards.symbols.of(dim)) is not None else None for dim in dims}
    if len(dims) != 2 or not all(dim.kind in (Kind.DIM, Kind.NAMED) and dim.name.isidentifier() for dim in dims):
        return None
    # NOTE: sympy's solver refuses some equations, so what the example suggests is tried. With a negative number, the other dim is computed.
    larger, root = sorted(dims, key=lambda dim: dim.size, reverse=True)
    own, base = symbols[larger], symbols[root]
    for factor, offset in ((1, larger.size - root.size), (larger.size // max(root.size, 1), 0)):
        if own is not None and base is not None and is_identity(relation.xreplace(stated).xreplace({own: factor * base + offset})):
            given = root.given if root.kind is Kind.DIM else Dim(root.name)
            # NOTE: torch reads names as sympy's expressions, in which S, for example, is no symbol and cannot be added to.
            with contextlib.suppress(Exception):
                computed = given + offset if offset else factor * given if factor > 1 else given
                return dict.fromkeys(request.shapes.same_name(root), given) | dict.fromkeys(request.shapes.same_name(larger), computed)
    return None


def _divisors(request: Request, guards: Guards) -> Iterator[Finding]:
    """The findings about named dims that only have sizes up to a bound, such as the divisors of a number, which no Dim can state."""
    for dim in request.shapes.dynamic:
        symbol = guards.symbols.of(dim)
        for relation in guards.symbols.asserted() if dim.kind in (Kind.DIM, Kind.NAMED) and symbol is not None else ():
            guard = next((each for each in guards.made if each.relation == relation and each.stack), None)
            if guard is None or relation.free_symbols != {symbol} or not size_limits.is_bound(relation, symbol, dim.size, dim.most):
                continue
            at = assumptions.evidence_about(request, guard)
            rule = ConstraintViolated(dim=dim.name, constraint=guards.symbols.text(relation, {dim: dim.name}))
            own = literals.own_size(at.location) if at.location is not None else []
            yield Finding(rule, at, _place_note(dim), (*own, Fix(_KEEP, Confidence.CHANGES_BEHAVIOUR)), blocking=False)
            break


def _range(name: str, least: int, most: Any) -> Dim | None:
    """A dim with these bounds; None if it has only one size, which torch allows for static dims only."""
    if not isinstance(most, int):
        return Dim(name, min=least)
    return Dim(name, min=least, max=most) if least < most else None


def _violated(request: Request, guards: Guards, dim: InputDim, relation: str, stated: Any, guard: Guard | None = None) -> Finding:
    fix = shapes_argument.fix(request, "State it in dynamic_shapes.", Confidence.SAFE, stated)
    at = assumptions.evidence_about(request, guard or guards.decisive(dim))
    return Finding(ConstraintViolated(dim=dim.name, constraint=relation), at, _place_note(dim), (fix,))


def made_equal(request: Request, guards: Guards) -> Iterator[Finding]:
    """A finding for each dim that has the size of a dim of another name in the program, which an operator took to be equal."""
    replaced = guards.symbols.replaced()
    first: dict[object, InputDim] = {}
    for dim in request.shapes.dynamic:
        symbol = guards.symbols.of(dim)
        other = first.setdefault(replaced.get(symbol, symbol) if symbol is not None else dim, dim)
        if dim.name != other.name and {dim.kind, other.kind} <= {Kind.DIM, Kind.NAMED}:
            stated = request.shapes.by_parameter(dict.fromkeys(request.shapes.same_name(dim), other.given))
            yield _violated(request, guards, dim, f"{dim.name} == {other.name}", stated)


def _place_note(dim: InputDim) -> tuple[str, ...]:
    return () if dim.name == dim.place else (f"The dim '{dim.name}' is {dim.place}.",)
