"""Edits of the model's source, tried before they are offered: the model is run and captured with the edited functions."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import gc
import textwrap
import types
from collections.abc import Iterator, Sequence

import torch

from onnxplain import process
from onnxplain.capture import strategies
from onnxplain.capture.explain import data_dependence, dims
from onnxplain.capture.finding import Finding, chain, module_of
from onnxplain.capture.observe import eager
from onnxplain.capture.observe.attributes import Attributes
from onnxplain.capture.observe.frames import Frames
from onnxplain.capture.observe.program_sizes import constant_dims
from onnxplain.capture.strategies import CaptureStrategy
from onnxplain.diagnostics import Confidence, DiagnosticContext, Edit, Fix
from onnxplain.request import Request
from onnxplain.rules import SpecializedDynamicDim
from onnxplain.source import locations, syntax
from onnxplain.torch_internals import pytree

from . import blocks


def proven(context: DiagnosticContext, request: Request, model: torch.nn.Module, finding: Finding) -> tuple[Fix, ...]:
    """The fixes of `finding`, those with edits only if the model can be captured further with them than without.

    Args:
        context: Where torch's own words go.
        request: The export.
        model: The model as a module.
        finding: The finding.
    """
    if finding.final:
        # NOTE: the model does not run as it is: there is nothing to compare with.
        return finding.fixes
    fixes: list[Fix] = []
    proved: set[str] = set()
    for fix in finding.fixes:
        tried = _code_of(finding, fix.edits) if fix.description not in proved else {}
        if tried is None:
            fixes.append(fix)
        elif tried and _works(context, request, model, finding, fix.edits, tried):
            proved.add(fix.description)
            fixes.append(fix)
        elif fix.edits[0].replacement.count("(") and fix.description not in proved:
            snippet = textwrap.dedent(" " * ((fix.edits[0].region.column or 1) - 1) + fix.edits[0].replacement).strip()
            fixes.append(dataclasses.replace(fix, edits=(), snippet=snippet, confidence=Confidence.GUESS))
    return tuple(fixes)


def _code_of(finding: Finding, edits: Sequence[Edit]) -> dict[types.FunctionType, types.CodeType] | None:
    """The functions with the line of `finding` that `edits` change, each with its new code; None if they change another one."""
    place = finding.at.location
    if not edits or place is None or place.region is None or {edit.file for edit in edits} != {place.file}:
        return None
    function = syntax.innermost(place.file, place.region, ast.FunctionDef)
    if function is None or not all(function in syntax.around(place.file, edit.region) for edit in edits):
        return None
    file, source = edits[0].file, syntax.source(edits[0].file)
    lines = source.split("\n")
    everything = dataclasses.replace(edits[0].region, line=1, column=1, end_line=len(lines), end_column=len(lines[-1]) + 1)
    text = blocks.spliced(source, everything, [blocks.Rewrite(edit.region, edit.replacement) for edit in edits])
    names = {
        (node.name, min([node.lineno, *(each.lineno for each in node.decorator_list)]))
        for edit in edits
        for node in syntax.around(file, edit.region)
        if isinstance(node, ast.FunctionDef)
    }
    try:
        new = {(code.co_name, code.co_firstlineno): code for code in _codes(compile(text, file, "exec", dont_inherit=True))}
    except (SyntaxError, ValueError):
        return {}
    functions = [each for each in gc.get_objects() if type(each) is types.FunctionType and each.__code__.co_filename == file]  # noqa: TID251
    keys = {each: (each.__code__.co_name, each.__code__.co_firstlineno) for each in functions}
    return {
        each: new[key]
        for each, key in keys.items()
        if key in names and key in new and len(new[key].co_freevars) == len(each.__code__.co_freevars)
    } or None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _codes(each)


def _works(
    context: DiagnosticContext,
    request: Request,
    model: torch.nn.Module,
    finding: Finding,
    edits: Sequence[Edit],
    codes: dict[types.FunctionType, types.CodeType],
) -> bool:
    attributes = Attributes(model)
    try:
        with process.kept(context, locations.user_speaks):
            before = eager.result(request)
            attributes.put_back()
            with _swapped(codes):
                if not _same(before, eager.result(request)):
                    return False
                attributes.put_back()
                names = [name for name in request.strategies if name != "draft"] or ["non-strict"]
                return any(_goes_on(request, model, finding, edits, strategies.of(name)) for name in names)
    except Exception:
        return False
    finally:
        attributes.put_back()


def _goes_on(request: Request, model: torch.nn.Module, finding: Finding, edits: Sequence[Edit], strategy: CaptureStrategy) -> bool:
    """Whether a capture passes the edited lines."""
    try:
        with Frames() as frames:
            program = strategy(model, request, frames)
    except Exception as error:
        return _stopped_elsewhere(request, finding, error, edits)
    frozen = isinstance(finding.rule, SpecializedDynamicDim) and finding.rule.dim
    return frozen not in {dim.name for dim in constant_dims(request.shapes, program)}


@contextlib.contextmanager
def _swapped(codes: dict[types.FunctionType, types.CodeType]) -> Iterator[None]:
    old = {function: function.__code__ for function in codes}
    try:
        for function, code in codes.items():
            function.__code__ = code
        yield
    finally:
        for function, code in old.items():
            function.__code__ = code


def _stopped_elsewhere(request: Request, finding: Finding, error: Exception, edits: Sequence[Edit]) -> bool:
    if dims.violates(error):
        return not isinstance(finding.rule, SpecializedDynamicDim)
    if not any(isinstance(each, data_dependence.kinds()) for each in chain(error)):
        return False
    location = locations.at_exception(error, module_of(request)).location
    if location is None or location.line is None:
        return False
    first, last = edits[0].region.line, edits[0].region.line + edits[0].replacement.count("\n")
    return location.file != edits[0].file or not first <= location.line <= last


def _same(before: object, after: object) -> bool:
    """Whether two results of the model are equal, up to rounding."""
    try:
        torch.testing.assert_close(_leaves(after), _leaves(before), equal_nan=True)
    except Exception:
        return False
    return True


def _leaves(result: object) -> list[object]:
    # NOTE: eager torch.while_loop makes tensors of the numbers that it carries.
    return [torch.as_tensor(leaf) if isinstance(leaf, torch.Tensor | int | float) else str(leaf) for leaf in pytree.tree_leaves(result)]
