"""Python code that asks for the data in a tensor during a capture."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import torch

from onnxplain.capture import audit
from onnxplain.capture.eager import EagerRuns
from onnxplain.capture.finding import Finding, fallback, graph_break_type, module_of
from onnxplain.capture.observe.frames import Site, site_of
from onnxplain.capture.observe.guards import Guards
from onnxplain.capture.rewrite import control_flow, general_ways
from onnxplain.diagnostics import Confidence, Evidence, Fix, Location, chain
from onnxplain.request import Request, inputs
from onnxplain.rules import DataDependentBranch, DataDependentValue
from onnxplain.source import locations, syntax
from onnxplain.torch_internals import dynamo, python_frames
from onnxplain.torch_internals.fake_tensors import ANSWER_DEPENDS_ON_DATA
from onnxplain.torch_internals.python_values import is_a
from onnxplain.torch_internals.shape_env import DATA_NEEDED

from . import remedies

_FEW = 64
"""The most elements of an input that may be a setting rather than data."""


def kinds() -> tuple[type[BaseException], ...]:
    """The exceptions about data that must be known, if the installed torch has them."""
    return tuple(each.value for each in (DATA_NEEDED, ANSWER_DEPENDS_ON_DATA) if each.is_present)


def is_about_data(error: Exception) -> bool:
    """Whether `error` is about data that must be known."""
    return any(isinstance(each, kinds()) for each in chain(error))


def _is_symbolic_key(error: BaseException) -> bool:
    """Whether a dict lacks the text of a number that depends on data, such as 'u0'."""
    return isinstance(error, KeyError) and bool(error.args) and re.fullmatch(r"u\d+", str(error.args[0])) is not None


def dependence(request: Request, error: Exception, guards: Guards, runs: EagerRuns) -> Iterator[Finding]:
    """The finding about data that had to be known, if `error` is about that."""
    guard = next((each for each in chain(error) if isinstance(each, kinds()) or _is_symbolic_key(each)), None)
    branches = graph_break_type(error) == dynamo.DATA_DEPENDENT_BRANCH
    if guard is None and not branches:
        return
    evidence = locations.at_exception(error, module_of(request))
    site = site_of(list(python_frames.of_traceback(guard))) if guard is not None else None
    if site is None or not site.stack:
        # NOTE: TorchDynamo interprets the frames, so there are no local variables to look at.
        site = Site(evidence.stack, evidence.location, branches, None)
    if isinstance(guard, ANSWER_DEPENDS_ON_DATA.value) and site.stack and syntax.test_at(site.stack[-1]) is not None:
        site = dataclasses.replace(site, asks_truth_of_tensor=True)
    found = _finding(request, site, evidence, runs)
    held = _held(request, guards) if not any(fix.confidence is Confidence.SAFE for fix in found.fixes) else []
    yield dataclasses.replace(found, fixes=(*found.fixes, *held))


def _held(request: Request, guards: Guards) -> list[Fix]:
    """The fix that has the model hold the few integers that alone decide, such as the sizes of images beside their patches."""
    by_parameter = inputs.bound(request.model, request.args, request.kwargs)
    leaves = [leaf for name in inputs.in_torch_order(by_parameter, request.kwargs) for leaf in inputs.leaves(name, by_parameter[name])]
    read = [leaves[-place] for place in guards.read_inputs if place <= len(leaves)]
    if not read or not all(_is_few_integers(leaf.value) for leaf in read):
        return []
    names = " and ".join(f"'{leaf.path}'" for leaf in read)
    given = ", ".join(f"{leaf.path}={leaf.path}" for leaf in read)
    snippet = f"model = functools.partial(model, {given})" if all(leaf.path.isidentifier() for leaf in read) else ""
    never, it, its = ("never changes", "it", "its") if len(read) == 1 else ("never change", "them", "their")
    advice = f"If {names} {never}, let the model hold {it} instead of taking {it} as input. The export then knows {its} numbers."
    return [Fix(advice, Confidence.GUESS, snippet=snippet)]


def _is_few_integers(value: object) -> bool:
    return is_a(value, torch.Tensor) and not value.is_floating_point() and not value.is_complex() and value.numel() <= _FEW


_UNKNOWN = "an expression without source"


def assumptions(request: Request, guards: Guards, runs: EagerRuns) -> list[Finding]:
    """A finding for each place where a capture went on with the example's data."""
    sites = [site for site in guards.assumed if site.stack]
    # NOTE: TorchDynamo makes a run-time check of a plain `assert`.
    plain = [site for site in sites if "strict" in request.strategies and syntax.is_plain_assert(site.stack[-1])]
    checks = filter(None, (audit.written_check(site.stack) for site in plain))
    sites = [site for site in sites if site not in plain]
    # NOTE: all questions at once, so that the model runs once for them.
    runs.ask(filter(None, (control_flow.question(_place(site)) for site in sites if not site.asks_truth_of_tensor)))
    arrays = [site for site in guards.arrays if site.stack]
    return [
        *(_finding(request, site, locations.at_stack(site.stack), runs) for site in sites),
        *(_numpy(site) for site in arrays),
        *(check.finding for check in checks),
    ]


def _numpy(site: Site) -> Finding:
    place = _place(site)
    rule, fix = remedies.for_numpy(place)
    return Finding(rule, _pointing_at(locations.at_stack(site.stack), place), fixes=(fix,))


def _place(site: Site) -> Location:
    """The narrowest place in the source where the data was needed."""
    place = syntax.without_body(site.stack[-1])
    test = syntax.test_at(place)
    return place if test is None else dataclasses.replace(place, region=syntax.region(place.file, test))


def _finding(request: Request, site: Site, evidence: Evidence, runs: EagerRuns) -> Finding:
    if not site.stack:
        rule = DataDependentBranch(condition=_UNKNOWN) if site.asks_truth_of_tensor else DataDependentValue(expression=_UNKNOWN)
        return Finding(rule, evidence if evidence.location else fallback(request))
    place = _place(site)
    expression = _asked_for(site.asking or place) or _UNKNOWN
    at = _pointing_at(evidence, place)
    if site.asks_truth_of_tensor:
        ways = [*general_ways.for_mask(place, site, runs.always), *control_flow.for_branch(place, site)] or [_elsewhere(site, place)]
        return Finding(DataDependentBranch(condition=expression), at, fixes=tuple(ways))
    ways = control_flow.for_value(place, site, runs.truth_of)
    return Finding(DataDependentValue(expression=expression), at, fixes=tuple(ways))


def _elsewhere(site: Site, place: Location) -> Fix:
    """The fix for code that asks for a truth value outside of a test on the line."""
    users = locations.is_users(place.file) and (site.asking is None or site.asking.file == place.file)
    return remedies.IN_TENSORS if users else remedies.IN_A_LIBRARY


def _asked_for(place: Location) -> str:
    test = syntax.test_at(place)
    return syntax.text(place.file, test) if test is not None else syntax.expression_at(place)


def _pointing_at(evidence: Evidence, place: Location) -> Evidence:
    """`evidence` with the columns of `place` in its locations on the same line."""

    def sharper(location: Location) -> Location:
        same = (location.file, location.function) == (place.file, place.function) and location.line is not None
        return dataclasses.replace(location, region=place.region) if same and _touches(location, place) else location

    location = sharper(evidence.location) if evidence.location else None
    return dataclasses.replace(evidence, location=location, related=tuple(sharper(each) for each in evidence.related))


def _touches(location: Location, place: Location) -> bool:
    first, second = location.region, place.region
    return first is not None and second is not None and first.line <= second.line <= max(first.last_line, second.line)
