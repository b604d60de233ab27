"""Edits of the model's source, tried before they are offered: the model is run and captured with the edited functions."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import gc
import types
from collections.abc import Iterator, Sequence

import torch
from torch.utils import _pytree as pytree

from onnxplain import noise, syntax, where
from onnxplain.diagnostics import Confidence, DiagnosticContext, Edit, Fix
from onnxplain.options import Request

from . import blocks, eager
from .attributes import Attributes
from .finding import Finding, chain, module_of
from .frames import Frames
from .strategies import ALL

Known = tuple[type[BaseException], ...]


def proven(context: DiagnosticContext, request: Request, model: torch.nn.Module, finding: Finding, known: Known) -> tuple[Fix, ...]:
    """The fixes of `finding`, those with edits only if the model can be captured further with them than without.

    Args:
        context: Where torch's own words go.
        request: The export.
        model: The model as a module.
        finding: The finding.
        known: What the capture may stop at all the same, at another line.
    """
    fixes: list[Fix] = []
    for fix in finding.fixes:
        tried = _code_of(fix.edits)
        if tried is None or _works(context, request, model, fix.edits, tried, known):
            fixes.append(fix)
        elif fix.confidence is not Confidence.GUESS or not any(each.snippet for each in finding.fixes):
            fixes.append(dataclasses.replace(fix, edits=(), snippet=fix.edits[0].replacement.strip(), confidence=Confidence.GUESS))
    return tuple(fixes)


def _code_of(edits: Sequence[Edit]) -> dict[types.FunctionType, types.CodeType] | None:
    """The functions that are there already and that `edits` change, each with its new code; None if there are none."""
    if not edits or len({edit.file for edit in edits}) > 1:
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
    functions = [each for each in gc.get_objects() if isinstance(each, types.FunctionType) and each.__code__.co_filename == file]
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
    edits: Sequence[Edit],
    codes: dict[types.FunctionType, types.CodeType],
    known: Known,
) -> bool:
    strategy = ALL[next((name for name in request.strategies if name != "draft"), "non-strict")]
    attributes = Attributes(model)
    try:
        with noise.kept(context):
            before = eager.result(request)
            attributes.put_back()
            with _swapped(codes), Frames() as frames:
                if not codes or not _same(before, eager.result(request)):
                    return False
                attributes.put_back()
                strategy(model, request, frames)
    except Exception as error:
        return _stopped_elsewhere(request, error, edits, known)
    finally:
        attributes.put_back()
    return True


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


def _stopped_elsewhere(request: Request, error: Exception, edits: Sequence[Edit], known: Known) -> bool:
    if not any(isinstance(each, known) for each in chain(error)):
        return False
    location = where.at_exception(error, module_of(request)).location
    if location is None or location.line is None:
        # NOTE: what stopped is no line of the model's, but what was asked for in all, such as a dim that must stay dynamic.
        return True
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
    return [leaf if isinstance(leaf, torch.Tensor) else str(leaf) for leaf in pytree.tree_leaves(result)]
