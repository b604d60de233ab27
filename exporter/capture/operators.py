"""Operators that torch cannot run on shapes alone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import torch

from onnxplain import where
from onnxplain.diagnostics import Confidence, Fix
from onnxplain.options import Request
from onnxplain.rules import CaptureFailed

from .finding import Finding, chain, fallback, module_of


def without_fake_kernel(request: Request, error: Exception) -> Iterator[Finding]:
    """The finding about an operator without a fake kernel, if that is what `error` says."""
    operator = _operator_of(error)
    if operator is None:
        return
    at = where.at_exception(error, module_of(request))
    signature = ", ".join(_parameters(operator))
    snippet = f"""\
        @torch.library.register_fake("{operator._schema.name}")
        def _({signature}):
            return torch.empty_like({operator._schema.arguments[0].name})  # the shape and dtype of what the operator returns
        """
    fix = Fix("Say what the operator returns, without computing it.", Confidence.GUESS, snippet=textwrap.dedent(snippet))
    rule = CaptureFailed(error=f"the operator {operator._schema.name} has no fake kernel")
    yield Finding(rule, at if at.location else fallback(request), fixes=(fix,), final=True)


def _operator_of(error: Exception) -> torch._ops.OpOverload | None:
    for each in chain(error):
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


def _parameters(operator: torch._ops.OpOverload) -> Iterator[str]:
    by_keyword_only = False
    for argument in operator._schema.arguments:
        if argument.kwarg_only and not by_keyword_only:
            by_keyword_only = True
            yield "*"
        yield f"{argument.name}={argument.default_value!r}" if argument.has_default_value() else argument.name
