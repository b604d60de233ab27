"""torch.export's exceptions as findings: recognised by type and attribute, placed at the user's line."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.export import Dim
from torch.fx.experimental import symbolic_shapes

from onnxplain import where
from onnxplain.diagnostics import Confidence, Evidence, Fix, Location, Rule
from onnxplain.options import Request
from onnxplain.rules import (
    CaptureFailed,
    ConstraintViolated,
    DataDependentBranch,
    DataDependentValue,
    DynamicShapesMismatch,
    GraphBreak,
    SpecializedDynamicDim,
    UnsupportedInputType,
    UserCodeRaised,
)

from . import fixes, inputs, spec, syntax
from .frames import Site, site_of
from .guards import Guard, Guards
from .inputs import DynamicDim

# NOTE: read in torch 2.11, 2.13 and 2.15, fx/experimental/symbolic_shapes.py.
_DATA_DEPENDENT: Any = getattr(symbolic_shapes, "GuardOnDataDependentSymNode", ())


@dataclasses.dataclass(frozen=True)
class Finding:
    """What the context will be told.

    Attributes:
        rule: The rule.
        at: Where it stands.
        notes: Further facts.
        fixes: Ways out.
        final: True if no other strategy can do better, because the fault is the model's or the call's own.
        blocking: False if there is a program all the same.
        negligible: True if it is not worth a word where there is a program all the same.
    """

    rule: Rule
    at: Evidence
    notes: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    final: bool = False
    blocking: bool = True
    negligible: bool = False

    @property
    def place(self) -> tuple[str, int | None]:
        """File and line."""
        location = self.at.location
        return (location.file, location.line) if location else ("", None)


def recognised(request: Request, error: Exception, guards: Guards) -> list[Finding]:
    """The findings behind `error`, which ended a capture, as far as its type tells."""
    for recognise in (_faults_of_the_call, _data_dependence, _constraints, _missing_fake_kernel):
        if findings := list(recognise(request, error, guards)):
            return findings
    return []


def explain(request: Request, strategy: str, error: Exception, guards: Guards) -> list[Finding]:
    """The findings behind `error`, which ended a capture; never none. The model is run once without a capture if it has to be."""
    model = _module(request)
    if findings := recognised(request, error, guards):
        return findings
    if (eager := _eager_error(request)) is not None:
        return [_users_own(request, eager, model)]
    return [_scripted(request, error) or _not_one_graph(strategy, error, model) or _unknown(request, error, model)]


def assumptions(request: Request, guards: Guards) -> list[Finding]:
    """A finding for each place where only the example's data let a capture go on."""
    return [_data_dependent_at(request, site, where.at_stack(site.stack)) for site in guards.assumed if site.stack]


def undelivered(request: Request, guards: Guards, program: torch.export.ExportedProgram) -> list[Finding]:
    """The findings about a program that is not what `dynamic_shapes` asks for."""
    if (difference := spec.beyond_rank(request)) is not None:
        return [_misfit(request, *difference)]
    constants = inputs.constant_dims(request, program) | _constants(request, guards)
    return [*_frozen_dims(request, guards, constants), *_limits(request, guards)]


def narrowed(request: Request, error: Exception | None, guards: Guards) -> Request | None:
    """`request` with the `dynamic_shapes` that torch's solver suggests after `error`; None if it suggests nothing."""
    shapes = None if error is None else _refined(error, inputs.shapes_of(request))
    if shapes is None:
        return None
    given_up = {
        dim: Dim.AUTO
        for dim in inputs.dynamic_dims(request)
        # NOTE: the solver takes a number for a dim where it cannot simplify the guards, even if none of them fixes the dim.
        if isinstance(inputs.dim_spec(request, shapes, dim), int) and guards.varies(dim)
    }
    return dataclasses.replace(request, dynamic_shapes=inputs.with_dims(request, shapes, given_up))


def fallback(request: Request) -> Evidence:
    """Where a finding stands that no line of the user's is known for: the model's `forward`, or else the call."""
    model = request.model
    definition = None if isinstance(model, torch.export.ExportedProgram) else where.module_definition(model)
    return Evidence(definition or request.caller)


def _faults_of_the_call(request: Request, error: Exception, _guards: Guards) -> Iterator[Finding]:
    if isinstance(request.model, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        yield Finding(CaptureFailed(error="the model is TorchScript"), Evidence(request.caller), fixes=(_KEEP_EAGER,), final=True)
        return
    unsupported = [leaf for leaf in inputs.leaves(request) if not inputs.is_supported(leaf.value)]
    for leaf in unsupported:
        cls = type(leaf.value)
        definition = where.class_definition(cls)
        at = Evidence(request.caller, related=(definition.saying("the class is defined here"),) if definition else ())
        wrong = UnsupportedInputType(argument=leaf.path, type=f"{cls.__module__}.{cls.__qualname__}")
        yield Finding(wrong, at, fixes=(_registration(leaf.value),), final=True)
    before_the_model_ran = where.at_exception(error).location is None
    if not unsupported and before_the_model_ran and (difference := spec.mismatch(request)):
        yield _misfit(request, *difference)
    elif not unsupported and before_the_model_ran and (contradiction := spec.contradiction(request)):
        rule = DynamicShapesMismatch(expected=contradiction[0], actual=contradiction[1])
        yield Finding(rule, Evidence(request.caller), final=True)


def _misfit(request: Request, expected: str, actual: str) -> Finding:
    fix = Fix("Mirror the parameters of forward.", Confidence.SAFE, snippet=spec.code(spec.fitting(request)))
    return Finding(DynamicShapesMismatch(expected=expected, actual=actual), Evidence(request.caller), fixes=(fix,), final=True)


def _data_dependence(request: Request, error: Exception, _guards: Guards) -> Iterator[Finding]:
    guard = next((each for each in _chain(error) if isinstance(each, _DATA_DEPENDENT)), None)
    # NOTE: TorchDynamo's own name for a branch on a tensor (torch 2.11 to 2.15, _dynamo/symbolic_convert.py).
    branches = _graph_break_type(error) == "Data-dependent branching"
    if guard is None and not branches:
        return
    evidence = where.at_exception(error, _module(request))
    site = site_of(list(where.walk(guard))) if guard is not None else None
    if site is None or not site.stack:
        # NOTE: TorchDynamo interprets the frames, so there are no local variables to look at.
        site = Site(evidence.stack, evidence.location, branches, None)
    yield _data_dependent_at(request, site, evidence)


def _data_dependent_at(request: Request, site: Site, evidence: Evidence) -> Finding:
    if not site.stack:
        return Finding(DataDependentValue(expression=""), evidence if evidence.location else fallback(request))
    place = syntax.without_body(site.stack[-1])
    test = syntax.test_at(place)
    if test is not None:
        place = dataclasses.replace(place, region=syntax.region(place.file, test))
    expression = _asked_for(site.asking or place)
    at = _pointing_at(evidence, place)
    if site.asks_truth_of_tensor:
        return Finding(DataDependentBranch(condition=expression), at, fixes=tuple(fixes.for_branch(place, site.tensors)))
    return Finding(DataDependentValue(expression=expression), at, fixes=tuple(fixes.for_value(place)))


def _asked_for(place: Location) -> str:
    test = syntax.test_at(place)
    return syntax.text(place.file, test) if test is not None else syntax.expression_at(place)


def _constraints(request: Request, error: Exception, guards: Guards) -> Iterator[Finding]:
    # NOTE: for a Dim.DYNAMIC torch says it with a ValueError instead (torch 2.11 to 2.15, _export/non_strict_utils.py).
    if _user_error_type(error) != "CONSTRAINT_VIOLATION" and not _raised_in(error, "make_constraints"):
        return
    shapes = inputs.shapes_of(request)
    refined = _refined(error, shapes)
    constants = _constants(request, guards)
    given_up: dict[DynamicDim, int] = {}
    relations: dict[str, Finding] = {}
    for dim in inputs.dynamic_dims(request):
        before, after = (inputs.dim_spec(request, each, dim) for each in (shapes, refined))
        if dim in constants:
            continue
        if isinstance(after, int) and not isinstance(before, int):
            (given_up if guards.varies(dim) else constants)[dim] = after
        elif isinstance(before, Dim) and isinstance(after, Dim) and (relation := _relation(before, after)):
            guard = guards.decisive(dim)
            only_lower = before.__name__ == after.__name__ and before.max == after.max
            # NOTE: what is smaller than a kernel or a window fails by itself; what a branch of the model's decides does not.
            negligible = only_lower and not (guard is not None and _is_branch(guard))
            finding = dataclasses.replace(_violated(request, guards, dim, relation, refined), negligible=negligible)
            relations.setdefault(dim.name, finding)
    yield from _frozen_dims(request, guards, constants)
    yield from (dataclasses.replace(finding, negligible=True) for finding in _frozen_dims(request, guards, given_up))
    yield from relations.values()


def _constants(request: Request, guards: Guards) -> dict[DynamicDim, int]:
    return {dim: value for dim in inputs.dynamic_dims(request) if (value := guards.constant(dim)) is not None}


def _frozen_dims(request: Request, guards: Guards, constants: dict[DynamicDim, int]) -> list[Finding]:
    """A finding for each dim that was asked to be dynamic and has only one size; a name counts once."""
    once = {dim.name: (dim, value) for dim, value in reversed(constants.items())}
    return [_frozen_dim(request, guards, dim, value) for dim, value in reversed(once.values())]


def _is_branch(guard: Guard) -> bool:
    # NOTE: TorchDynamo does not run the model's code, so whether Python asked shows in the source only.
    return guard.asked_by_python or syntax.test_at(guard.stack[-1]) is not None


def _violated(request: Request, guards: Guards, dim: DynamicDim, relation: str, stated: Any, guard: Guard | None = None) -> Finding:
    fix = Fix("State it in dynamic_shapes.", Confidence.SAFE, snippet=spec.code(stated))
    at = _evidence_about(request, guard or guards.decisive(dim))
    return Finding(ConstraintViolated(dim=dim.name, constraint=relation), at, _place_note(dim), (fix,))


def _limits(request: Request, guards: Guards) -> Iterator[Finding]:
    """What the graph takes for granted about named dims. A hint such as Dim.DYNAMIC promises no particular size."""
    seen: set[str] = set()
    for dim in inputs.dynamic_dims(request):
        named = inputs.dim_spec(request, inputs.shapes_of(request), dim)
        if not isinstance(named, Dim) or hasattr(named, "root") or named.__name__ in seen:
            continue
        for limit, guard in guards.limits(dim, int(named.min), named.max if isinstance(named.max, int) else sys.maxsize):
            seen.add(named.__name__)
            most = named.max if limit.most is None else limit.most
            stated = Dim(named.__name__, min=named.min, max=most if isinstance(most, int) else None) if limit.factor == 1 else None
            stated = stated or limit.factor * Dim(f"_{named.__name__}")
            shapes = inputs.with_dims(request, inputs.shapes_of(request), dict.fromkeys(_same_name(request, dim), stated))
            yield dataclasses.replace(_violated(request, guards, dim, limit.of(dim.name), shapes, guard), blocking=False)
            break


def _missing_fake_kernel(request: Request, error: Exception, _guards: Guards) -> Iterator[Finding]:
    """An operator of the user's that torch cannot run on shapes alone."""
    operator = _operator_without_fake_kernel(error)
    if operator is None:
        return
    at = where.at_exception(error, _module(request))
    signature = ", ".join(_parameters(operator))
    snippet = f"""\
        @torch.library.register_fake("{operator._schema.name}")
        def _({signature}):
            return torch.empty_like({operator._schema.arguments[0].name})  # the shape and dtype of what the operator returns
        """
    fix = Fix("Say what the operator returns, without computing it.", Confidence.GUESS, snippet=textwrap.dedent(snippet))
    rule = CaptureFailed(error=f"the operator {operator._schema.name} has no fake kernel")
    yield Finding(rule, at if at.location else fallback(request), fixes=(fix,), final=True)


def _parameters(operator: torch._ops.OpOverload) -> Iterator[str]:
    by_keyword_only = False
    for argument in operator._schema.arguments:
        if argument.kwarg_only and not by_keyword_only:
            by_keyword_only = True
            yield "*"
        yield f"{argument.name}={argument.default_value!r}" if argument.has_default_value() else argument.name


def _operator_without_fake_kernel(error: Exception) -> torch._ops.OpOverload | None:
    for each in _chain(error):
        # NOTE: read in torch 2.11, 2.13 and 2.15: _subclasses/fake_tensor.py raises the exception for operators of torch.library.define,
        # _library/custom_ops.py an anonymous one, in `fake_impl`, for those of torch.library.custom_op.
        operators = [getattr(each, "func", None)] if type(each).__name__ == "UnsupportedOperatorException" else []
        frames = [frame for frame, _, _ in where.walk(each)]
        if frames and frames[-1].f_code.co_name == "fake_impl":
            operators += [frame.f_locals.get("op") for frame in frames]
        for operator in operators:
            if isinstance(operator, torch._ops.OpOverload):
                return operator
    return None


def _relation(before: Dim, after: Dim) -> str:
    if before.__name__ != after.__name__:
        return f"{before.__name__} == {after.__name__}"
    bounds = [
        text
        for text, changed in (
            (f"{before.__name__} >= {after.min}", after.min != before.min),
            (f"{before.__name__} <= {after.max}", after.max != before.max),
        )
        if changed
    ]
    return " and ".join(bounds)


def _refined(error: Exception, shapes: Any) -> Any:
    """`dynamic_shapes` with what torch's solver suggests, where it suggests something."""
    with contextlib.suppress(Exception):
        return torch.export.dynamic_shapes.refine_dynamic_shapes_from_suggested_fixes(error.msg, shapes)  # type: ignore[attr-defined]
    return None


def _frozen_dim(request: Request, guards: Guards, dim: DynamicDim, value: int) -> Finding:
    at = _evidence_about(request, guards.decisive(dim))
    remedies = list(fixes.for_int_of_size(at.location)) if at.location else []
    static = Fix(
        "If the size is meant to be fixed, leave the dim out of dynamic_shapes.",
        Confidence.CHANGES_BEHAVIOUR,
        snippet=spec.code(inputs.with_dims(request, inputs.shapes_of(request), dict.fromkeys(_same_name(request, dim)))),
    )
    return Finding(SpecializedDynamicDim(dim=dim.name, value=value), at, _place_note(dim), (*remedies, static))


def _evidence_about(request: Request, guard: Guard | None) -> Evidence:
    evidence = Evidence() if guard is None else where.at_stack((*guard.stack[:-1], syntax.without_body(guard.stack[-1])))
    return evidence if evidence.location else fallback(request)


def _same_name(request: Request, dim: DynamicDim) -> list[DynamicDim]:
    return [each for each in inputs.dynamic_dims(request) if each.name == dim.name]


def _place_note(dim: DynamicDim) -> tuple[str, ...]:
    return () if dim.name == dim.place else (f"The dim '{dim.name}' is {dim.place}.",)


def _users_own(request: Request, error: Exception, model: torch.nn.Module | None) -> Finding:
    at = where.at_exception(error, model)
    if at.location is None:
        # NOTE: `forward` never began: the arguments do not fit it.
        definition = fallback(request).location
        at = Evidence(request.caller, related=(definition.saying("forward is defined here"),) if definition else ())
    return Finding(
        UserCodeRaised(error=headline(error)),
        at,
        notes=("The model fails with these inputs in eager mode, too.",),
        final=True,
    )


def _scripted(request: Request, error: Exception) -> Finding | None:
    if not isinstance(request.model, torch.nn.Module):
        return None
    paths = [path for path, module in request.model.named_modules() if isinstance(module, torch.jit.ScriptModule)]
    if not paths:
        return None
    at = where.at_exception(error, request.model)
    rule = CaptureFailed(error=f"the submodule {paths[0]} is TorchScript")
    return Finding(rule, at if at.location else fallback(request), fixes=(_KEEP_EAGER,), final=True)


def _not_one_graph(strategy: str, error: Exception, model: torch.nn.Module | None) -> Finding | None:
    reason = _graph_break_type(error)
    if strategy != "strict" or not reason:
        return None
    at = where.at_exception(error, model)
    construct = syntax.expression_at(at.location) if at.location else ""
    remedy = Fix(
        "Let the non-strict strategy run the construct in Python during capture.",
        Confidence.CHANGES_BEHAVIOUR,
        snippet='onnxplain.export(model, args, strategies=("non-strict",))',
    )
    return Finding(GraphBreak(construct=construct or reason, reason=reason), at, fixes=(remedy,))


def _unknown(request: Request, error: Exception, model: torch.nn.Module | None) -> Finding:
    at = where.at_exception(error, model)
    return Finding(CaptureFailed(error=_graph_break_type(error) or headline(error)), at if at.location else fallback(request))


_KEEP_EAGER = Fix(
    "Keep the eager module and export that: torch.jit.script and torch.jit.trace leave nothing that torch.export can look into.",
    Confidence.SAFE,
)


def _registration(value: Any) -> Fix:
    """How to make the class of `value` something that torch.export can take apart."""
    cls = type(value)
    name = cls.__name__
    if dataclasses.is_dataclass(cls):
        return Fix("Register the dataclass.", Confidence.SAFE, snippet=f"torch.export.register_dataclass({name})")
    attributes = list(getattr(value, "__dict__", ()))
    try:
        fits = list(inspect.signature(cls).parameters) == attributes
    except (TypeError, ValueError):
        fits = False
    snippet = f"""\
        from torch.utils import _pytree as pytree

        pytree.register_pytree_node(
            {name},
            lambda value: ([{", ".join(f"value.{each}" for each in attributes)}], None),
            lambda children, _: {name}(*children),
            flatten_with_keys_fn=lambda value: ([{", ".join(f"(pytree.GetAttrKey({each!r}), value.{each})" for each in attributes)}], None),
        )"""
    confidence = Confidence.SAFE if fits else Confidence.GUESS
    return Fix("Register the class with a way to take it apart and back.", confidence, snippet=textwrap.dedent(snippet))


def _eager_error(request: Request) -> Exception | None:
    """What the model raises without any capture; None if it runs. What it changes is put back."""
    model: Any = request.model
    args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, (request.args, dict(request.kwargs)))
    buffers = list(model.buffers()) if isinstance(model, torch.nn.Module) else []
    saved = [buffer.clone() for buffer in buffers]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        try:
            model(*args, **kwargs)
        except Exception as error:
            return error
        finally:
            for buffer, value in zip(buffers, saved, strict=True):
                buffer.copy_(value)
    return None


def _pointing_at(evidence: Evidence, place: Location) -> Evidence:
    """`evidence` with the columns of `place`, where it is about the same line."""

    def sharper(location: Location) -> Location:
        same = (location.file, location.function) == (place.file, place.function) and location.line is not None
        return dataclasses.replace(location, region=place.region) if same and _touches(location, place) else location

    location = sharper(evidence.location) if evidence.location else None
    return dataclasses.replace(evidence, location=location, related=tuple(sharper(each) for each in evidence.related))


def _touches(location: Location, place: Location) -> bool:
    first, second = location.region, place.region
    return first is not None and second is not None and first.line <= second.line <= max(first.last_line, second.line)


def _module(request: Request) -> torch.nn.Module | None:
    return request.model if isinstance(request.model, torch.nn.Module) else None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    present: BaseException | None = error
    while present is not None and id(present) not in seen:
        seen.add(id(present))
        yield present
        present = present.__cause__ or present.__context__


def _graph_break_type(error: BaseException) -> str:
    """TorchDynamo's name for what it cannot trace; empty for other errors."""
    return next((gb for each in _chain(error) if isinstance(gb := getattr(each, "gb_type", None), str) and gb), "")


def _user_error_type(error: BaseException) -> str:
    """The name of torch's `UserErrorType`, as far as `error` has one."""
    return str(getattr(getattr(error, "error_type", None), "name", ""))


def _raised_in(error: BaseException, function: str) -> bool:
    return any(frame.f_code.co_name == function for frame, _, _ in where.walk(error))


def headline(error: BaseException) -> str:
    """The type and the first line of an exception."""
    lines: Sequence[str] = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__
