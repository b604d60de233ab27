"""Operators that torch cannot run without data."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from onnxplain.capture.eager import EagerRuns
from onnxplain.capture.finding import Finding, fallback, module_of
from onnxplain.capture.observe.guards import Guards
from onnxplain.diagnostics import Confidence, Evidence, Fix, chain
from onnxplain.request import Request
from onnxplain.rules import FakeKernelMissing
from onnxplain.source import call_sites, locations, syntax
from onnxplain.torch_internals import dispatch_modes, torch_frames
from onnxplain.torch_internals.operators import OpOverload, schema


def without_fake_kernel(request: Request, error: Exception, runs: EagerRuns) -> Iterator[Finding]:
    """The finding about an operator without a fake kernel, if `error` is about that."""
    operator = next(filter(None, map(torch_frames.operator_without_fake_kernel, chain(error))), None)
    if operator is None:
        return
    at = locations.at_exception(error, module_of(request))
    yield dataclasses.replace(_finding(request, operator, at, runs), final=True)


def inferred(request: Request, guards: Guards, runs: EagerRuns) -> Iterator[Finding]:
    """The findings about the operators without a fake kernel that a capture with the example's data met, each once."""
    for operator, stack in {schema(operator).name: (operator, stack) for operator, stack in reversed(guards.inferred)}.values():
        yield _finding(request, operator, locations.at_stack(stack), runs)


def _finding(request: Request, operator: OpOverload, at: Evidence, runs: EagerRuns) -> Finding:
    rule = FakeKernelMissing(operator=schema(operator).name)
    return Finding(rule, at if at.location else fallback(request), fixes=(_fake_kernel(request, operator, runs),))


def _fake_kernel(request: Request, operator: OpOverload, runs: EagerRuns) -> Fix:
    """The fix that adds a fake kernel after the operator's definition, if that is found. It returns tensors like those for the example."""
    advice = "Register a fake kernel: a function that returns a result of the right shape and dtype, without computing it."
    definition = call_sites.only(request, ("custom_op", "impl"), lambda node: _definitions(node, schema(operator).name))
    torch_name = "torch" if definition is None else syntax.name_of_torch(definition.file)
    result = _like_example(operator, runs).replace("torch.", f"{torch_name}.")
    signature = ", ".join(_parameters(operator))
    code = f'@{torch_name}.library.register_fake("{schema(operator).name}")\ndef _({signature}):\n    return {result}'
    if definition is None or torch_name is None or not locations.is_users(definition.file):
        return Fix(advice, Confidence.GUESS, snippet=code)
    tree = syntax.tree(definition.file)
    statements = [each for each in ast.walk(tree) if isinstance(each, ast.stmt) and definition.node in ast.walk(each)] if tree else []
    return Fix(advice, Confidence.GUESS, syntax.behind(definition.file, statements[-1], code))


def _definitions(node: ast.AST, name: str) -> Iterator[ast.expr]:
    """The places that name an operator in its definition: the decorator `custom_op`, or else `impl`, which comes after `define`."""
    match node:
        case ast.Call(func=function, args=[ast.Constant(value=str(given)) as named, *_]):
            called = syntax.last_name(function)
            if (called == "custom_op" and given == name) or (called == "impl" and name.endswith(f"::{given.rpartition('::')[2]}")):
                yield named


def _like_example(operator: OpOverload, runs: EagerRuns) -> str:
    """An expression for the operator's result for the example: empty tensors that are made from its arguments."""
    seen: list[tuple[Any, Any]] = []

    def see(called: Any, args: tuple[Any, ...], result: Any) -> None:
        if called is operator:
            seen.append((args, result))

    runs.watched(dispatch_modes.each_call(see))
    names = [argument.name for argument in schema(operator).arguments]
    if not seen:
        return f"torch.empty_like({names[0]})"
    args, result = seen[0]
    tensors = {name: value for name, value in zip(names, args, strict=False) if isinstance(value, torch.Tensor)}
    if isinstance(result, list | tuple):
        return f"({''.join(f'{_empty(each, tensors)}, ' for each in result).strip()})"
    return _empty(result, tensors)


def _empty(result: torch.Tensor, tensors: Mapping[str, torch.Tensor]) -> str:
    alike = [name for name, tensor in tensors.items() if tensor.shape == result.shape]
    for name in alike:
        if tensors[name].dtype == result.dtype:
            return f"torch.empty_like({name})"
    if alike:
        return f"torch.empty_like({alike[0]}, dtype={result.dtype})"
    sizes = {size: f"{name}.shape[{axis}]" for name, tensor in tensors.items() for axis, size in enumerate(tensor.shape)}
    shape = ", ".join(str(sizes.get(size, size)) for size in result.shape)
    return f"torch.empty([{shape}], dtype={result.dtype})"


def _parameters(operator: OpOverload) -> Iterator[str]:
    by_keyword_only = False
    for argument in schema(operator).arguments:
        if argument.kwarg_only and not by_keyword_only:
            by_keyword_only = True
            yield "*"
        yield f"{argument.name}={argument.default_value!r}" if argument.has_default_value() else argument.name
