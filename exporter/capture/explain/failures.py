"""Turns torch.export's exceptions into findings at the user's line. Recognises them by type and attribute."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import torch

from onnxplain.capture.eager import EagerRuns
from onnxplain.capture.finding import Finding, fallback, graph_break_type, headline, module_of
from onnxplain.capture.observe.guards import Guards
from onnxplain.capture.rewrite import control_flow
from onnxplain.capture.strategies import ALL, UnfitProgram
from onnxplain.diagnostics import Confidence, Evidence, Fix
from onnxplain.request import Request
from onnxplain.rules import CaptureFailed, GraphBreak, PackedSequenceUsed, QuantizedWeights, ScriptedModel
from onnxplain.source import call_sites, locations, syntax
from onnxplain.torch_internals import dynamo, functorch
from onnxplain.torch_internals.fake_tensors import has_no_data
from onnxplain.torch_internals.modules import named_modules
from onnxplain.torch_internals.operators import OpOverload

from . import arguments, data_dependence, dims, eager_failures, fake_kernels, known_causes, observers, remedies, set_up

_OWN = Fix(
    "Repair your strategy, or list one of onnxplain's strategies after it, which the export then tries.",
    Confidence.GUESS,
    snippet='strategies=[own, "non-strict"]',
)

_GRADIENT = Fix("Differentiate with torch.autograd.grad, which torch.export traces.", Confidence.GUESS, snippet=remedies.GRADIENT)
_PRODUCTS = frozenset(getattr(torch.ops.aten, name) for name in ("linear", "matmul", "mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addmv"))
_UNFOLLOWED = Fix(
    "Compute the tensor of others with functions of torch, in `forward`: torch.export does not see where it comes from.", Confidence.GUESS
)


def explain(request: Request, strategy: str, error: Exception, guards: Guards, runs: EagerRuns) -> list[Finding]:
    """At least one finding about `error`, which ended a capture. Runs the model eagerly if the type of `error` does not tell enough."""
    if isinstance(error, UnfitProgram):
        place = locations.module_definition(error.generate_fx)
        return [Finding(CaptureFailed(error=headline(error)), Evidence(place) if place else fallback(request), fixes=(_OWN,))]
    if found := list(set_up.missing(request, error, runs)) or recognised(request, error, guards, runs):
        return found
    # NOTE: a torch.cond also captures its branches in eager mode.
    if (without_capture := runs.error()) is not None and graph_break_type(without_capture) != dynamo.ALIASING:
        return [eager_failures.finding(request, without_capture, runs)]
    known = (
        next(_packed_sequence(request, error), None)
        or _scripted(request, error)
        or _packed(request)
        or _not_one_graph(request, strategy, error)
    )
    return [known or _unknown(request, strategy, error, runs)]


def recognised(request: Request, error: Exception, guards: Guards, runs: EagerRuns) -> list[Finding]:
    """The findings about `error` that follow from its type."""
    kinds = (
        arguments.faults(request, error),
        observers.running(request, error),
        _packed_sequence(request, error) if data_dependence.is_about_data(error) else (),
        data_dependence.dependence(request, error, guards, runs),
        dims.constraints(request, error, guards),
        dims.broadcast(request, guards),
        fake_kernels.without_fake_kernel(request, error, runs),
    )
    return next(filter(None, map(list, kinds)), [])


def of_mixed_dtypes(request: Request, program: torch.export.ExportedProgram, runs: EagerRuns) -> list[Finding]:
    """The finding about a product of tensors of different dtypes, such as half-precision weights and a float32 input.

    A capture computes the shape of the product only, and eager mode refuses it.
    """
    modules = (each for each in program.graph_module.modules() if isinstance(each, torch.fx.GraphModule))
    if not any(_mixes_dtypes(node) for module in modules for node in module.graph.nodes):
        return []
    error = runs.error()
    return [] if error is None else [eager_failures.finding(request, error, runs)]


def _mixes_dtypes(node: torch.fx.Node) -> bool:
    if not isinstance(node.target, OpOverload) or node.target.overloadpacket not in _PRODUCTS:
        return False
    values = (each.meta.get("val") for each in node.all_input_nodes)
    return len({value.dtype for value in values if isinstance(value, torch.Tensor)}) > 1


def lost(request: Request, program: torch.export.ExportedProgram) -> list[Finding]:
    """The findings about tensors without data that torch.export took for constants, for example within torch.func.grad."""
    # NOTE: seen in torch 2.13, in both strategies: the program then lacks what the model computes from them.
    constants = {name: value for name, value in program.constants.items() if isinstance(value, torch.Tensor)}
    differentiated = {name for name, value in constants.items() if functorch.is_wrapped(value)}
    is_fake = any(map(has_no_data, program.state_dict.values()))
    unfollowed = set() if is_fake else {name for name, value in constants.items() if has_no_data(value)} - differentiated
    found = []
    for names, text, fix in (
        (differentiated, "the argument of a function of torch.func", _GRADIENT),
        (unfollowed, "a tensor", _UNFOLLOWED),
    ):
        specs = [spec.arg.name for spec in program.graph_signature.input_specs if spec.target in names]
        uses = [user for node in program.graph.nodes if node.name in specs for user in node.users]
        if uses:
            at = locations.at_node(uses[0])
            rule = CaptureFailed(error=f"torch.export takes {text} for a constant")
            found.append(Finding(rule, at if at.location else fallback(request), fixes=(fix,)))
    return found


def _packed_sequence(request: Request, error: Exception) -> Iterator[Finding]:
    """The finding about a packed sequence, if `error` comes from one: at the call that packs it."""
    evidence = locations.at_exception(error, module_of(request))
    known = remedies.for_packed_sequence(error, evidence.location)
    if known is None:
        return
    at, fixes = known
    related = (
        () if evidence.location is None or at == evidence.location else (evidence.location.saying("the packed sequence is used here"),)
    )
    at_call = dataclasses.replace(evidence, location=at, related=(*evidence.related, *related))
    yield Finding(PackedSequenceUsed(error=headline(error)), at_call, fixes=tuple(fixes))


def _scripted(request: Request, error: Exception) -> Finding | None:
    if not isinstance(request.model, torch.nn.Module):
        return None
    paths = [path for path, module in named_modules(request.model) if isinstance(module, torch.jit.ScriptModule)]
    if not paths:
        return None
    at = locations.at_exception(error, request.model)
    rule = ScriptedModel(module=paths[0])
    fix = arguments.without_scripting(arguments.scripting(request, paths[0].rpartition(".")[2]))
    return Finding(rule, at if at.location else fallback(request), fixes=(fix,), final=True)


def _packed(request: Request) -> Finding | None:
    found = remedies.for_packed_weights(request)
    if found is None:
        return None
    path, at, fix = found
    return Finding(QuantizedWeights(module=path or "the model"), at, fixes=(fix,), final=True)


def _not_one_graph(request: Request, strategy: str, error: Exception) -> Finding | None:
    reason = graph_break_type(error)
    if strategy != "strict" or not reason:
        return None
    at = locations.at_exception(error, module_of(request))
    construct = syntax.expression_at(at.location) if at.location else ""
    remedy = Fix(
        "Use the non-strict strategy, which runs this construct in Python during capture.",
        Confidence.CHANGES_BEHAVIOUR,
        snippet='strategies=("non-strict",)',
    )
    return Finding(GraphBreak(construct=construct or reason, reason=reason), at, fixes=(remedy,))


def _unknown(request: Request, strategy: str, error: Exception, runs: EagerRuns) -> Finding:
    at = locations.at_exception(error, module_of(request))
    if at.location is None and (differentiating := call_sites.call_of(request, "grad", "backward")) is not None:
        # NOTE: torch raises such errors after the model has run.
        at = call_sites.at(differentiating, request)
    rule, fix = remedies.for_error(error, at.location, runs.holds)
    if strategy not in ALL and isinstance(rule, CaptureFailed):
        fix = _OWN
    messages = control_flow.for_message(at.location) if at.location is not None else []
    if at.location is None and (returned := known_causes.place_of(error, request)) is not None:
        at = Evidence(returned)
    return Finding(rule, at if at.location else fallback(request), fixes=tuple(messages) or (fix,))
